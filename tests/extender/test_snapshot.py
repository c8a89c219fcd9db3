"""Is what the extender knows the same, however its news came?"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.snapshot import Ledger
from tests.extender.worlds import Json, as_gang, as_seen, gang, ledger, member, node, pod


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """One of three pods at some moment: waiting, nominated, bound, ending, ended."""
    at = draw(st.sampled_from(("", "a", "b")))
    nominated = "" if at else draw(st.sampled_from(("", "a")))
    found = pod(f"p{draw(st.integers(0, 2))}", gpu=draw(st.integers(0, 2)), on=at)
    found["status"] = {
        "phase": draw(st.sampled_from(("Pending", "Running", "Succeeded"))),
        "nominatedNodeName": nominated,
    }
    if draw(st.booleans()):
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return member(found) if draw(st.booleans()) else found


def world(*found: Json) -> Ledger:
    return ledger(node("a"), node("b"), gang(seats={"a": 1, "b": 1}, gpu=1), *found)


def said(known: Ledger) -> Sequence[object]:
    """All that a snapshot tells, in a form that can be compared."""
    snapshot = known.snapshot()
    rooms = [(each.resources, each.used.tolist()) for each in (snapshot.bound, snapshot.guarded)]
    nominations = sorted(snapshot.nominations, key=lambda each: each.uid)
    members = {key: dict(here) for key, here in snapshot.members.items()}
    return [rooms, nominations, members, dict(snapshot.pods), known.reservations]


@given(st.lists(pods(), max_size=8))
def test_a_ledger_tells_of_the_last_news_alone(news: list[Json]) -> None:
    last = {each["metadata"]["uid"]: each for each in news}
    assert said(world(*news)) == said(world(*last.values()))


@pytest.mark.parametrize("found", [pod("p", gpu=1, on="a"), member(pod("p", gpu=1, on="a"))])
def test_news_of_a_status_alone_changes_no_room(found: Json) -> None:
    known = world(found)
    before, known.freed = known.snapshot(), set()
    running = {**found, "status": {**found["status"], "phase": "Running"}}
    known.put_pod(as_seen(running))
    assert known.snapshot() is before
    assert known.freed == set()


def test_a_gang_is_placed_while_it_has_a_placement() -> None:
    known = ledger(node("a"), gang("early"), gang("train", seats={"a": 1}))
    assert known.placed_gangs == 1
    known.remove_gang(as_gang(gang("train", seats={"a": 1})))
    assert known.placed_gangs == 0


def test_a_gang_without_a_ray_cluster_reserves_nothing() -> None:
    """`--cascade=orphan` took its owner away, and no pod can take its slots any more."""
    orphan = gang(seats={"a": 1})
    orphan["metadata"]["ownerReferences"] = []
    left = ledger(node("a"), gang(seats={"a": 1}))
    assert left.reservations == 1
    left.put_gang(as_gang(orphan))
    assert (left.reservations, left.placed_gangs) == (0, 0)


def test_nodes_that_only_pods_name_leave_nothing_behind() -> None:
    """Whoever may create pods may name any node."""
    known = ledger(node("a"))
    before = set(known._rooms._changed)
    for number in range(10):
        seen = as_seen(pod(f"p{number}", on=f"no-such-node-{number}"))
        known.put_pod(seen)
        known.remove_pod(seen.pod.uid)
    assert known._rooms._changed == before
