"""The checks of the history notice each fault. Without a control plane."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from kube.objects import names
from testbed.api import Json
from testbed.following import ADDED, DELETED, MODIFIED
from tests.faults.ledger import Ledger, gang_change, never_whole, pod_change, problems

OWNER = "uid-of-the-cluster"
ROOM = {"a": 1, "b": 1}
_VERSIONS = count(1)


def pod(name: str, node: str = "", *, gated: bool = False, bound: bool = False) -> Json:
    """A worker; pinned to `node` unless that is empty."""
    owner = {"kind": "RayCluster", "name": "c", "uid": OWNER, "controller": True}
    labels = {names.RAY_CLUSTER: "c", names.RAY_GROUP: "workers"}
    metadata = {"namespace": "n", "name": name, "uid": name, "ownerReferences": [owner]}
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {kind: {"nodeSelectorTerms": [pin]}}} if node else {}
    gates = [{"name": names.GATE}] if gated else []
    spec = {"schedulingGates": gates, "affinity": affinity, **({"nodeName": node} if bound else {})}
    ready = [{"type": "Ready", "status": "True"}] if bound else []
    versioned = {**metadata, "labels": labels, "resourceVersion": str(next(_VERSIONS))}
    return {"metadata": versioned, "spec": spec, "status": {"conditions": ready}}


def promise(**nodes: int) -> Json:
    """A Gang with a placement."""
    assignments = [{"shape": "s", "nodes": nodes}]
    placement = {"podSets": [{"name": "workers", "assignments": assignments}]}
    owners = [{"uid": OWNER}]
    metadata = {"ownerReferences": owners, "resourceVersion": str(next(_VERSIONS))}
    return {"metadata": metadata, "status": {"epoch": 1, "placement": placement}}


def ledger_of(*changes: tuple[str, Json]) -> Ledger:
    """The ledger of changes in this order."""
    pods = [pod_change(0.0, kind, obj) for kind, obj in changes if "spec" in obj]
    gangs = [gang_change(kind, obj) for kind, obj in changes if "spec" not in obj]
    return Ledger(pods, gangs)


def released(name: str, node: str) -> list[tuple[str, Json]]:
    """The way of a pod to its node."""
    gated = pod(name, gated=True)
    pinned, bound = pod(name, node), pod(name, node, bound=True)
    return [(ADDED, gated), (MODIFIED, pinned), (MODIFIED, bound)]


def said(*changes: Any) -> str:
    """What is found to be wrong."""
    return "; ".join(problems(ledger_of(*changes), ROOM))


def test_a_promised_release_is_right() -> None:
    """A check that complains always is as worthless as one that never does."""
    assert said((ADDED, promise(a=1)), *released("one", "a")) == ""


def test_a_release_before_its_placement_is_seen() -> None:
    assert "placement of that moment" in said(*released("one", "a"), (ADDED, promise(a=1)))


def test_a_release_to_another_node_is_seen() -> None:
    assert "placement of that moment" in said((ADDED, promise(a=1)), *released("one", "b"))


def test_one_release_too_many_is_seen() -> None:
    said_of = said((ADDED, promise(a=1)), *released("one", "a"), *released("two", "a"))
    assert "two was released to a" in said_of
    assert "a has room for 1 and was given to ['one', 'two']" in said_of


def test_a_pod_that_takes_the_place_of_one_that_is_gone_is_right() -> None:
    gone = (DELETED, pod("one", "a", bound=True))
    assert said((ADDED, promise(a=1)), *released("one", "a"), gone, *released("two", "a")) == ""


def test_a_pod_that_slipped_through_is_seen() -> None:
    assert "never gated" in said((ADDED, promise(a=1)), (ADDED, pod("one", "a")))


@pytest.mark.parametrize("later", [[], [DELETED]])
def test_a_replacement_that_slipped_through_is_seen_while_its_cluster_lives(
    later: list[str],
) -> None:
    """It comes after the pods of its gang, and may be gone in the end."""
    slipped = [(kind, pod("two")) for kind in [ADDED, *later]]
    assert "two was never gated" in said((ADDED, promise(a=1)), *released("one", "a"), *slipped)


def test_a_pod_that_slipped_through_as_its_gang_ended_is_seen() -> None:
    """The webhook refuses it, or gates it while the end is not known to it."""
    before = [(ADDED, promise(a=1)), *released("one", "a"), (DELETED, promise(a=1))]
    assert "two was never gated" in problems(ledger_of(*before, (ADDED, pod("two"))), ROOM)


def test_a_second_pin_is_seen() -> None:
    moved = (MODIFIED, pod("one", "b"))
    assert "pinned to ['a', 'b']" in said((ADDED, promise(a=1, b=1)), *released("one", "a"), moved)


def test_a_pod_that_cannot_be_scheduled_is_seen() -> None:
    waiting = pod("one", "a")
    reason = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    waiting["status"]["conditions"] = [reason]
    changes = [(ADDED, promise(a=1)), *released("one", "a")[:2], (MODIFIED, waiting)]
    assert "and then: no" in said(*changes)


def test_a_gang_that_was_never_whole_is_seen() -> None:
    ledger = ledger_of(*released("one", "a"), *released("two", "b"))
    assert never_whole(ledger, {"c": 2}) == []
    assert never_whole(ledger, {"c": 3}) == ["c"]
