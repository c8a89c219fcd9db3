"""What is kept of a pod, and for how long?"""

from typing import Any

import msgspec
import orjson
import pytest

from kube.names import GATE
from kube.objects import BarePod, Pod
from kube.observed import KINDS, UNREADABLE, observe
from kube.patches import for_patches
from scheduling.company import Kind, Stay
from scheduling.holders import Holder, ray_cluster
from scheduling.model import GangKey

Json = dict[str, Any]
BORDER = {f"k{at:02}": "v" * 61 for at in range(64)}  # 64 labels of 64 characters each


def kind(labels: dict[str, str]) -> Kind:
    raw = {"metadata": {"namespace": "ns", "labels": labels}, "spec": {}, "status": {}}
    return observe(msgspec.json.decode(orjson.dumps(raw), type=Pod)).kind


@pytest.mark.parametrize("labels", [{}, {"app": "web"}, BORDER])
def test_equal_labels_are_kept_once(labels: dict[str, str]) -> None:
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is kind(dict(labels))


@pytest.mark.parametrize("size", [1, 10, 500])
def test_labels_of_any_size_take_no_more_than_so_much(size: int) -> None:
    """What is kept once outlives the pod: thousands of large sets would fill the memory."""
    for number in range(20_000 // size):
        labels = {f"{at}-{number}": "v" * 63 for at in range(size)}
        assert kind(labels) == ("ns", tuple(sorted(labels.items())))
        assert KINDS.taken <= KINDS.limit
    found = sum(len(k) + len(v) for (_, labels), _ in KINDS.items() for k, v in labels)
    assert found < KINDS.taken


def test_labels_that_are_large_go_with_their_pod() -> None:
    labels = {"k" * 2_000_000: "v"}
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is not kind(dict(labels))


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NOMINATED = {"nominatedNodeName": "a"}
PREEMPTING = {
    **NOMINATED,
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}


@pytest.mark.parametrize(
    ("meta", "spec", "status", "expected"),
    [
        ({}, {"nodeName": "a"}, {}, Stay.BOUND),
        (ENDING, {"nodeName": "a"}, {}, Stay.LEAVING),
        ({}, {}, NOMINATED, Stay.NOMINATED),
        (ENDING, {}, NOMINATED, Stay.NOMINATED),
        ({}, {}, PREEMPTING, Stay.YIELDING),
    ],
)
def test_how_a_pod_is_on_its_node(meta: Json, spec: Json, status: Json, expected: Stay) -> None:
    """Spread constraints leave out whoever is being deleted."""
    pod = msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)
    assert observe(pod).stay is expected


def test_of_a_gated_pod_only_what_patches_need_is_kept() -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "controller": True}
    raw = {
        "metadata": {"name": "p", "annotations": {"a": "x" * 9}, "ownerReferences": [owner]},
        "spec": {"schedulingGates": [{"name": GATE}], "containers": [{"name": "c"}]},
    }
    pod = msgspec.convert(raw, Pod)
    assert observe(pod).raw == for_patches(pod) != pod


def test_a_pod_of_which_hardly_anything_can_be_read_fills_its_node() -> None:
    raw = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"nodeName": "a", "containers": "none"},
        "status": {"phase": "Running", "conditions": 7},
    }
    seen = observe(msgspec.convert(raw, BarePod))
    assert (seen.name, seen.uid, seen.holds, seen.used) == ("p", "u", "a", UNREADABLE)
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "controller": True}
    gated = {
        "metadata": {"ownerReferences": [owner]},
        "spec": {"schedulingGates": [{"name": GATE}]},
    }
    waits = observe(msgspec.convert(gated, BarePod))
    assert waits.gated
    assert waits.member is not None
    assert "not read" in waits.member.invalid
    ended = msgspec.convert({**raw, "status": {"phase": "Failed"}}, BarePod)
    assert observe(ended).holds == ""
    nominated = msgspec.convert({"spec": {}, "status": {"nominatedNodeName": "b"}}, BarePod)
    assert (observe(nominated).holds, observe(nominated).nominated) == ("b", None)


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        ({}, {}, Holder("Namespace", "", "team")),
        ({"kind": "Job", "name": "j"}, {}, Holder("Namespace", "", "team")),
        ({"kind": "Job", "name": "j", "controller": True}, {}, Holder("Job", "team", "j")),
        ({"kind": "Node", "name": "n", "controller": True}, {}, Holder("Namespace", "", "team")),
        (
            {"kind": "ReplicaSet", "name": "web-5d4f", "controller": True},
            {"pod-template-hash": "5d4f"},
            Holder("Deployment", "team", "web"),
        ),
        (
            {"kind": "ReplicaSet", "name": "web-5d4f", "controller": True},
            {},
            Holder("ReplicaSet", "team", "web-5d4f"),
        ),
        (
            {"kind": "RayCluster", "name": "train", "controller": True},
            {},
            ray_cluster(GangKey("team", "train")),
        ),
        (
            {"kind": "K" * 300, "name": "n" * 300, "controller": True},
            {},
            Holder("K" * 253, "team", "n" * 253),
        ),
    ],
)
def test_who_holds_the_room_of_a_pod(
    owner: dict[str, Any], labels: dict[str, str], expected: Holder
) -> None:
    owners = [owner] if owner else []
    metadata = {"namespace": "team", "labels": labels, "ownerReferences": owners}
    assert observe(msgspec.convert({"metadata": metadata}, Pod)).holder == expected
