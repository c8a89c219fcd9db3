"""Which gangs a cycle stops, and which it does not."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from scheduling.cycle import next_cycle
from scheduling.model.constraints import PodTerm, SpreadConstraint
from scheduling.model.gang import Member, PendingGang
from scheduling.model.queue import (
    Ordering,
    Queue,
)
from scheduling.model.shape.host_ports import HostPort
from scheduling.model.verdict import Refusal, Verdict
from scheduling.preemption.needs_ending_pods import AFFINITY, PORTS
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import GPU, columns, gang, group, node, require, shape
from tests.scheduling.preemption.cluster import Cluster, Spec, part
from tests.scheduling.preemption.company import LOWER, taken


def test_a_higher_priority_stops_a_lower_one_of_its_queue_and_is_told_what_it_waits_for() -> None:
    low = part("low", {"n1": 8})
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 8, priority=1)], [low]
    )
    assert taken(cluster) == {"high": ["low"]}
    assert cluster.says("high") == (
        "Preempting: waits until 1 gang (team/low) has ended: 8 pods left; the room is held for it"
    )


def test_nothing_is_stopped_where_the_queue_does_not_say_so() -> None:
    cluster = Cluster(
        [Queue("a")], {"n1": 8}, [Spec("high", "a", 8, priority=1)], [part("low", {"n1": 8})]
    )
    assert taken(cluster) == {}
    assert cluster.says("high").startswith("InsufficientResources")


def test_an_equal_priority_is_not_stopped() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("new", "a", 8)], [part("old", {"n1": 8})]
    )
    assert taken(cluster) == {}


def test_surplus_goes_before_gangs_and_only_as_much_as_is_needed() -> None:
    parts = [
        part("old", {"n1": 4}, admitted=1),
        part("old", {"n1": 1}, replica="r1", admitted=1),
        part("old", {"n1": 1}, replica="r2", admitted=1),
        part("new", {"n1": 2}, admitted=2),
    ]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 1, priority=1)], parts
    )
    assert taken(cluster) == {"high": ["old/r2"]}


def test_a_gang_that_outlived_its_duration_goes_first_then_the_newest() -> None:
    parts = [
        part("first", {"n1": 2}, admitted=1),
        part("late", {"n1": 2}, admitted=9),
        part("outlived", {"n1": 2}, admitted=2, outlived=True),
    ]
    queue = Queue("a", within_queue=LOWER)
    one = Cluster([queue], {"n1": 6}, [Spec("high", "a", 2, priority=1)], parts)
    assert taken(one) == {"high": ["outlived"]}
    two = Cluster([queue], {"n1": 6}, [Spec("high", "a", 4, priority=1)], parts)
    assert taken(two) == {"high": ["late", "outlived"]}


def test_a_gang_that_outlived_its_duration_stays_where_one_of_a_lower_priority_is_enough() -> None:
    parts = [
        part("outlived", {"n1": 2}, priority=5, admitted=2, outlived=True),
        part("lower", {"n1": 2}, admitted=1),
    ]
    queue, gangs = Queue("a", within_queue=LOWER), [Spec("high", "a", 2, priority=10)]
    assert taken(Cluster([queue], {"n1": 4}, gangs, parts)) == {"high": ["lower"]}


def test_with_its_minimum_a_gang_loses_its_surplus() -> None:
    parts = [part("low", {"n1": 6}), part("low", {"n1": 2}, replica="r1")]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 6, priority=1)], parts
    )
    assert taken(cluster) == {"high": ["low", "low/r1"]}
    assert "1 gang (team/low) has ended: 8 pods left" in cluster.says("high")


def test_it_is_decided_on_nodes_not_on_sums() -> None:
    """`x` and `y` have four GPUs together, but only `whole` leaves three on one node."""
    parts = [
        part("x", {"n1": 2, "n2": 1}, admitted=3),
        part("y", {"n2": 1}, admitted=2),
        part("rest", {"n1": 2, "n2": 2}, admitted=0, priority=1),
        part("whole", {"n3": 4}, admitted=1),
    ]
    gangs = [Spec("high", "a", 1, priority=1, each=3)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 4, "n2": 4, "n3": 4}, gangs, parts)
    assert taken(cluster) == {"high": ["whole"]}


def test_what_is_ending_already_is_waited_for_and_nothing_more_is_taken() -> None:
    parts = [part("low", {"n1": 4}), part("gone", {"n1": 4}, ending=True)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 4, priority=1)], parts
    )
    assert taken(cluster) == {"high": ["gone"]}
    assert not cluster.stop(cluster.cycle())
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 4
    assert cluster.runs("low") == 4


def test_a_victim_that_cannot_be_taken_is_replaced() -> None:
    parts = [
        part("new", {"n1": 8}, admitted=2, kept="a PodDisruptionBudget forbids it"),
        part("old", {"n2": 8}, admitted=1),
    ]
    queue = Queue("a", within_queue=LOWER)
    cluster = Cluster([queue], {"n1": 8, "n2": 8}, [Spec("high", "a", 8, priority=1)], parts)
    assert taken(cluster) == {"high": ["old"]}


def test_where_nothing_can_be_taken_the_refusal_says_why() -> None:
    parts = [part(n, {"n1": 2}, kept=f"{n} is precious") for n in ("x", "y", "z")]
    queue = Queue("a", within_queue=LOWER)
    cluster = Cluster([queue], {"n1": 6}, [Spec("high", "a", 2, priority=1)], parts)
    assert taken(cluster) == {}
    assert cluster.says("high").endswith(
        "; team/x cannot be stopped for it: x is precious; team/y cannot be stopped for it: "
        "y is precious; nor can 1 more"
    )


ONES = [part(f"one-{at}", {"n1": 1}, admitted=10.0 + at) for at in range(8)]


def test_one_large_gang_is_stopped_where_many_small_ones_would_be() -> None:
    """Though it was admitted before all of them."""
    parts = [*ONES, part("large", {"n2": 8})]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8, "n2": 8}, [Spec("p", "a", 8, priority=1)], parts
    )
    assert taken(cluster) == {"p": ["large"]}


def test_many_small_gangs_are_stopped_where_the_large_one_has_a_higher_priority() -> None:
    parts = [*ONES, part("large", {"n2": 8}, priority=1)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8, "n2": 8}, [Spec("p", "a", 8, priority=2)], parts
    )
    assert taken(cluster) == {"p": sorted(f"one-{at}" for at in range(8))}


def test_of_as_many_gangs_those_with_fewer_pods_are_stopped() -> None:
    """Each node alone is enough; the gang with many pods is the newest."""
    few = replace(part("few", {"n2": 8}), room=(("n2", ((GPU, 8), ("pods", 1))),))
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8, "n2": 8},
        [Spec("p", "a", 8, priority=1)],
        [part("many", {"n1": 8}, admitted=10.0), few],
    )
    assert taken(cluster) == {"p": ["few"]}


def test_a_surplus_stops_nothing() -> None:
    parts = [part("high", {"n1": 4}, priority=1), part("low", {"n1": 4})]
    gangs = [Spec("high", "a", 4, priority=1, surplus=2)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs, parts)
    assert taken(cluster) == {}


def test_a_gang_that_may_stop_one_which_was_admitted_before_it_is_asked_again() -> None:
    """In a FIFO queue the older one comes first, and the higher priority stops it then."""
    queue = Queue("a", ordering=Ordering.FIFO, within_queue=LOWER)
    gangs = [Spec("low", "a", 8), Spec("high", "a", 8, priority=1, created=1)]
    cluster = Cluster([queue], {"n1": 8}, gangs)
    assert cluster.rest(9)
    assert (cluster.runs("high"), cluster.runs("low")) == (8, 0)


def test_a_gang_that_may_stop_nothing_of_what_was_admitted_asks_for_no_cycle() -> None:
    gangs = [Spec("low", "a", 8), Spec("other", "a", 8, created=1)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs)
    cluster.cycle()
    assert cluster.memory is not None
    assert (cluster.runs("low"), cluster.memory.asks_again_in) == (8, inf)


def test_what_can_never_fit_stops_nothing() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 9, priority=1)],
        [part("low", {"n1": 8})],
    )
    assert taken(cluster) == {}
    assert cluster.says("high").startswith("NeverFits")


# ---- pods that need others


def wanting(**terms: Iterable[PodTerm | SpreadConstraint | HostPort]) -> PendingGang:
    one = shape(gpu=1, **terms)  # type: ignore[arg-type]
    asked = gang("high", group("workers", 8, one), priority=1)
    labels = (("app", "ray"),)
    return replace(asked, queue="a", members=(Member("workers", one, labels),) * 8)


def decided(asked: PendingGang, *, app: str) -> tuple[Verdict, list[str]]:
    """The verdict for a gang, and what it stops, where a pod of this app is on the node."""
    waiting = WaitingGangs(QuotaTree([Queue("a", within_queue=LOWER)]))
    waiting.put(asked)
    low = part("low", {"n1": 8})
    index = PodIndex()
    index.use(("team", (("app", app),)), (), "n1", 1)
    nodes = columns(node("n1", gpu=8, labels={"host": "n1"}), used={"n1": {GPU: 8, "pods": 8}})
    queues = Queues(waiting, np.zeros((1, 0), dtype=np.int64), parts=lambda: (low,))
    found, memory = next_cycle(queues, nodes, None, existing=ExistingPods(index))
    return found[0].verdict, [p.gang.name for each in memory.preemptions for p in each.parts]


RAY = (require("app", "In", "ray"),)
NEAR_RAY = PodTerm("host", RAY, ("team",))


@pytest.mark.parametrize("app", ["ray", "other"])
@pytest.mark.parametrize(
    "asked",
    [wanting(affinity=[NEAR_RAY]), wanting(spread=[SpreadConstraint(NEAR_RAY, 8)])],
    ids=["affinity", "spread"],
)
def test_pods_that_might_end_are_not_counted_as_those_that_it_needs(
    asked: PendingGang, app: str
) -> None:
    verdict, stopped = decided(asked, app=app)
    assert isinstance(verdict, Refusal)
    assert stopped == ([] if app == "ray" else ["low"])
    assert (AFFINITY in verdict.message) == (app == "ray")


def test_for_host_ports_nothing_is_stopped_and_it_is_said() -> None:
    verdict, stopped = decided(wanting(ports=[("", "", 8000)]), app="other")
    assert isinstance(verdict, Refusal)
    assert stopped == []
    assert PORTS in verdict.message
