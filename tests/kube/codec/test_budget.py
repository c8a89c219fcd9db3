"""A budget is used up by ready pods of its namespace that it selects, and by no others."""

from typing import Any

import msgspec
import pytest

from kube.codec.budget import budget_of
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects.core import Pod
from kube.objects.policy import PodDisruptionBudget

Json = dict[str, Any]


def pod(*, ready: str = "True", namespace: str = "team") -> ObservedPod:
    meta = {"name": "one", "namespace": namespace, "labels": {"app": "web"}}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return observe(msgspec.convert({"metadata": meta, "spec": {}, "status": status}, Pod))


def budget(selector: Json | None, allowed: int = 1) -> PodDisruptionBudget:
    raw = {
        "metadata": {"name": "b", "namespace": "team"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(raw, PodDisruptionBudget)


@pytest.mark.parametrize(
    ("selector", "counts"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({}, True),
        (None, False),
    ],
)
def test_a_budget_counts_the_pods_that_it_selects(selector: Json | None, counts: bool) -> None:
    assert budget_of(budget(selector)).counts(pod()) is counts


def test_pods_that_are_not_ready_or_elsewhere_use_nothing_up() -> None:
    found = budget_of(budget({}))
    assert not found.counts(pod(ready="False"))
    assert not found.counts(pod(namespace="other"))


def test_a_budget_that_is_overdrawn_lets_nothing_go() -> None:
    assert budget_of(budget({}, allowed=-1)).allowed == 0
