"""By which marks a node says that an autoscaler takes it away."""

from typing import Any

import msgspec
import pytest

from kube.codec.node import node
from kube.objects.core import Node
from scheduling.model.node import Removal


def read(taints: list[dict[str, str]], **meta: Any) -> Removal:
    found = {"metadata": {"name": "n", **meta}, "spec": {"taints": taints}}
    return node(msgspec.convert(found, Node)).removal


@pytest.mark.parametrize(
    "taint",
    [
        {"key": "ToBeDeletedByClusterAutoscaler", "value": "1764000000", "effect": "NoSchedule"},
        {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
        {"key": "karpenter.sh/disruption", "value": "disrupting", "effect": "NoSchedule"},
        {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"},
    ],
    ids=lambda taint: str(taint["key"]),
)
def test_a_node_that_is_drained_goes_for_certain(taint: dict[str, str]) -> None:
    assert read([taint]) is Removal.CERTAIN


def test_a_node_that_a_finalizer_holds_goes_for_certain() -> None:
    assert read([], deletionTimestamp="2026-01-01T00:00:00Z") is Removal.CERTAIN


def test_a_candidate_may_go() -> None:
    key = "DeletionCandidateOfClusterAutoscaler"
    assert read([{"key": key, "value": "1", "effect": "PreferNoSchedule"}]) is Removal.POSSIBLE
    marked = {"karpenter.sh/voluntary-disruption": "drifted"}
    assert read([], annotations=marked) is Removal.POSSIBLE


def test_other_taints_say_nothing_of_that() -> None:
    taints = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    marked = {"karpenter.sh/do-not-disrupt": "true"}
    assert read(taints, annotations=marked) is Removal.NONE
