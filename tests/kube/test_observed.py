"""What is kept of a pod, and for how long?"""

from typing import Any

import msgspec
import orjson
import pytest

from kube.objects import Pod
from kube.observed import observe
from scheduling.company import Kind
from scheduling.holders import Holder, ray_cluster
from scheduling.model import GangKey

BORDER = {f"k{at:02}": "v" * 61 for at in range(64)}  # 64 labels of 64 characters each


def kind(labels: dict[str, str]) -> Kind:
    raw = {"metadata": {"namespace": "ns", "labels": labels}, "spec": {}, "status": {}}
    return observe(msgspec.json.decode(orjson.dumps(raw), type=Pod)).kind


@pytest.mark.parametrize("labels", [{}, {"app": "web"}, BORDER])
def test_equal_labels_are_kept_once(labels: dict[str, str]) -> None:
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is kind(dict(labels))


@pytest.mark.parametrize(
    "labels",
    [
        {f"k{at}": "" for at in range(65)},
        {**BORDER, "k00": "v" * 62},
        {"k" * 200_000: "v"},
    ],
)
def test_labels_that_are_large_go_with_their_pod(labels: dict[str, str]) -> None:
    """What is interned outlives the pod: thousands of such sets would fill the memory."""
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is not kind(dict(labels))


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
