"""No pod takes reserved room when the scheduler moves to a replica that lags behind.

A small scheduler asks one replica, binds where it may, and from some moment on asks the other one.
What was bound comes to each replica late, by less than the time of doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from extender.filter import filter_nodes
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.wire.node_lists import NodeList
from tests.extender.worlds import Json, as_watched_pod, gang, ledger, node, pod

SETTLE = 5.0
KEPT = 4


@dataclass
class Replica:
    """One extender; `late` are bound pods that it has not heard of, with the time when it will."""

    lag: float
    ledger: Ledger = field(
        default_factory=lambda: ledger(node("a"), gang(slots={"a": 1}, gpu=KEPT))
    )
    in_flight_pods: InFlightPods = field(
        default_factory=lambda: InFlightPods(settle=SETTLE, keep=30.0, limit=100)
    )
    late: list[tuple[float, Json]] = field(default_factory=list)

    def passes(self, found: Json, now: float) -> bool:
        self._hear(now)
        in_flight = self.in_flight_pods.view_for(as_watched_pod(found).pod.uid, now)
        answer = filter_nodes(
            as_watched_pod(found), NodeList(["a"]), self.ledger.snapshot(), in_flight
        )
        self.in_flight_pods.answered(as_watched_pod(found).pod.uid, answer.remember, now)
        return bool(answer.passed)

    def _hear(self, now: float) -> None:
        while self.late and self.late[0][0] <= now:
            _, bound = self.late.pop(0)
            self.ledger.put_pod(as_watched_pod(bound))
            self.in_flight_pods.settled(as_watched_pod(bound).pod.uid)


waits = st.lists(st.sampled_from((0.01, 0.1, 1.0, 4.0, 7.0)), min_size=12, max_size=30)
lags = st.sampled_from((0.0, 0.5, SETTLE - 0.1))


@given(waits, st.integers(0, 12), lags, lags)
@example([0.01] * 12, 4, SETTLE - 0.1, SETTLE - 0.1)  # the second one was never asked before
def test_going_over_to_the_other_one_opens_no_gap(
    gaps: list[float], change: int, first: float, second: float
) -> None:
    replicas = (Replica(first), Replica(second))
    now, used = SETTLE + 0.1, 0
    replicas[0].passes(pod("earlier", gpu=9), 0.0)  # asked before, so not in doubt now
    for number, gap in enumerate(gaps):
        now += gap
        asked = replicas[number >= change]
        if asked.passes(pod(f"p{number}", gpu=1), now):
            used += 1
            for each in replicas:
                each.late.append((now + each.lag, pod(f"p{number}", gpu=1, on="a")))
    assert used <= 8 - KEPT


def test_in_the_end_the_other_one_gives_what_is_free() -> None:
    replica = Replica(lag=1.0)
    assert not replica.passes(pod("p0", gpu=1), 0.0)
    assert replica.passes(pod("p0", gpu=1), SETTLE + 0.1)
