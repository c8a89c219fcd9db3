"""The ledger holds the same whatever the order of events."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.ledger import Ledger
from kube.objects import names
from kube.ray.wrapped_by import unwrapped
from scheduling.state.node_snapshot import NodeSnapshot
from tests.extender.worlds import (
    Json,
    as_gang,
    as_node,
    as_pod,
    as_watched_pod,
    gang,
    ledger,
    member,
    node,
    pod,
    with_port,
)


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
    return ledger(node("a"), node("b"), gang(slots={"a": 1, "b": 1}, gpu=1), *found)


def said(known: Ledger) -> Sequence[object]:
    """All that a snapshot tells, in a form that can be compared."""
    snapshot = known.snapshot()
    capacity_cache = [
        (each.resources, each.used.tolist()) for each in (snapshot.bound, snapshot.guarded)
    ]
    nominations = sorted(snapshot.nominations, key=lambda each: each.uid)
    members = {key: dict(here) for key, here in snapshot.members.items()}
    return [capacity_cache, nominations, members, dict(snapshot.pods), known.reservations]


@given(st.lists(pods(), max_size=8))
def test_a_ledger_tells_of_the_last_news_alone(news: list[Json]) -> None:
    last = {each["metadata"]["uid"]: each for each in news}
    assert said(world(*news)) == said(world(*last.values()))


def test_a_pod_that_is_asked_about_is_the_one_the_watch_told_of() -> None:
    come = pod("p", gpu=1)
    known = world(come)
    seen = known.snapshot().pods["uid-p"]
    assert known.asked(as_pod(come)) is seen


@pytest.mark.parametrize("version", ["2", ""])
def test_of_another_version_or_of_none_what_comes_with_the_question_counts(version: str) -> None:
    come, asked = pod("p", gpu=1), pod("p", gpu=2)
    asked["metadata"]["resourceVersion"] = version
    come["metadata"]["resourceVersion"] = version and "1"
    assert world(come).asked(as_pod(asked)) == as_watched_pod(asked)


NODES, GANGS, PORT = ("a", "b", "c", "d"), ("train", "tune"), 80


@st.composite
def any_node(draw: st.DrawFn) -> Json:
    """A node of one of a few kinds, which offer different resources."""
    found = node(draw(st.sampled_from(NODES)), gpu=draw(st.sampled_from((0, 4, 8))))
    offered = draw(st.sampled_from(({}, {"x/a": "1"}, {"x/b": "2"}, {"x/c": "3", "x/d": "4"})))
    found["status"]["allocatable"].update(offered)
    return found


@st.composite
def any_gang(draw: st.DrawFn) -> Json:
    slots = draw(st.dictionaries(st.sampled_from((*NODES, "unknown")), st.integers(1, 2)))
    planned = draw(st.dictionaries(st.sampled_from((*NODES, "unknown")), st.integers(1, 2)))
    name, gpu = draw(st.sampled_from(GANGS)), draw(st.integers(0, 2))
    found = gang(name, slots=slots, planned=planned, gpu=gpu)
    ported = draw(st.booleans())
    return with_port(found, PORT) if slots and ported else found


@st.composite
def any_pod(draw: st.DrawFn) -> Json:
    on = draw(st.sampled_from(("", *NODES, "unknown")))
    found = pod(f"p{draw(st.integers(0, 4))}", gpu=draw(st.integers(0, 2)), on=on)
    found = with_port(found, PORT) if draw(st.booleans()) else found
    return member(found, draw(st.sampled_from(GANGS))) if draw(st.booleans()) else found


NEWS = st.tuples(st.one_of(any_node(), any_gang(), any_pod()), st.booleans(), st.booleans())


def per_node(columns: NodeSnapshot) -> dict[str, dict[str, tuple[int, ...]]]:
    """What is offered, used and free on each node, without zeros, and the ports taken there."""
    tables = (columns.allocatable, columns.used, columns.free)
    return {
        name: {
            resource: cells
            for resource, row in columns.row.items()
            if any(cells := tuple(int(table[row, at]) for table in tables))
        }
        | {port: (on[name],) for port, on in columns.ports.items() if name in on}
        for name, at in columns.index.items()
    }


def left(known: Ledger) -> dict[str, dict[str, int]]:
    """What a pod of another workload would find on each node, without zeros."""
    room, columns = known.snapshot().room, known.snapshot().guarded
    return {
        name: {each: n for each, row in columns.row.items() if (n := int(room.free[row, at]))}
        for name, at in columns.index.items()
    }


def all_of(known: Ledger) -> Sequence[object]:
    snapshot = known.snapshot()
    columns = per_node(snapshot.bound), per_node(snapshot.guarded), left(known)
    return *columns, dict(snapshot.ports), known.reservations, known.placed_gangs


@given(st.lists(NEWS, max_size=16))
def test_a_ledger_of_nodes_gangs_and_pods_that_come_and_go_is_one_of_those_that_are_left(
    news: list[tuple[Json, bool, bool]],
) -> None:
    """Whatever order they come in, and whenever a snapshot is taken in between."""
    known, there = Ledger(), dict[str, Json]()
    for found, goes, looked_at in news:
        there.pop(forget(known, found), None)
        if not goes:
            there[tell(known, found)] = found
        if looked_at:
            all_of(known)
    assert all_of(known) == all_of(ledger(*there.values()))


def tell(known: Ledger, found: Json) -> str:
    """Take an object in; returns its kind and name."""
    if "podSets" in found.get("spec", {}):
        known.put_gang(as_gang(found))
        return f"gang {found['metadata']['name']}"
    if "spec" in found:
        known.put_pod(as_watched_pod(found))
        return f"pod {found['metadata']['name']}"
    known.put_node(as_node(found))
    return f"node {found['metadata']['name']}"


def forget(known: Ledger, found: Json) -> str:
    """Have one of this kind and name go, if it is there."""
    name = found["metadata"]["name"]
    if "podSets" in found.get("spec", {}):
        known.remove_gang(as_gang(found))
        return f"gang {name}"
    if "spec" in found:
        known.remove_pod(found["metadata"]["uid"])
        return f"pod {name}"
    known.remove_node(name)
    return f"node {name}"


@pytest.mark.parametrize("found", [pod("p", gpu=1, on="a"), member(pod("p", gpu=1, on="a"))])
def test_news_of_a_status_alone_changes_no_room(found: Json) -> None:
    known = world(found)
    before, known.freed = known.snapshot(), set()
    running = {**found, "status": {**found["status"], "phase": "Running"}}
    known.put_pod(as_watched_pod(running))
    assert known.snapshot() is before
    assert known.freed == set()


def test_a_gang_is_placed_while_it_has_a_placement() -> None:
    known = ledger(node("a"), gang("early"), gang("train", slots={"a": 1}))
    assert known.placed_gangs == 1
    known.remove_gang(as_gang(gang("train", slots={"a": 1})))
    assert known.placed_gangs == 0


def test_a_gang_without_a_ray_cluster_reserves_nothing() -> None:
    """`--cascade=orphan` took its owner away, and no pod can take its slots any more."""
    orphan = gang(slots={"a": 1})
    orphan["metadata"]["ownerReferences"] = []
    left = ledger(node("a"), gang(slots={"a": 1}))
    assert left.reservations == 1
    left.put_gang(as_gang(orphan))
    assert (left.reservations, left.placed_gangs) == (0, 0)


def test_nodes_that_only_pods_name_leave_nothing_behind() -> None:
    """A tenant that may create pods may name any node."""
    known = ledger(node("a"))
    before = set(known._capacity_cache._changed)
    for number in range(10):
        seen = as_watched_pod(pod(f"p{number}", on=f"no-such-node-{number}"))
        known.put_pod(seen)
        known.remove_pod(seen.pod.uid)
    assert known._capacity_cache._changed == before


def test_without_app_wrappers_a_labelled_pod_is_of_the_gang_of_its_ray_cluster() -> None:
    found = member(pod("w", gpu=1), "train")
    found["metadata"]["labels"] |= {names.APP_WRAPPER: "a", names.APP_WRAPPER_UID: "u"}
    for known, of_gang in ((Ledger(unwrapped), True), (Ledger(), False)):
        known.put_gang(as_gang(gang(slots={"a": 1})))
        seen = known.asked(as_pod(found)).pod
        assert (known.snapshot().gang_of(seen) is not None) is of_gang
