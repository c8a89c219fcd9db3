"""A RayCluster lacks room where its namespace's ResourceQuotas could hold it, and do not now."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.admission import ResourceQuota
from kube.objects.ray import RayCluster
from webhook.quota_room import lacks_room

Json = dict[str, Any]


def cluster(workers: int = 4, **pod: Any) -> RayCluster:
    """A head and so many workers, of 1 CPU each."""
    asked = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec: Json = {"containers": [{"name": "ray", "resources": asked}], **pod}
    template = {"template": {"spec": spec}}
    group = {"groupName": "workers", "replicas": workers, "maxReplicas": 100, **template}
    made = {
        "metadata": {"name": "a", "namespace": "demo"},
        "spec": {"headGroupSpec": {"rayStartParams": {}, **template}, "workerGroupSpecs": [group]},
    }
    return msgspec.json.decode(json.dumps(made), type=RayCluster)


def quota(used: Json, hard: Json, **spec: Any) -> ResourceQuota:
    made = {
        "metadata": {"name": "compute", "namespace": "demo"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used},
    }
    return msgspec.convert(made, ResourceQuota)


def cpus(used: str, hard: str = "8") -> ResourceQuota:
    return quota({"requests.cpu": used}, {"requests.cpu": hard})


@pytest.mark.parametrize(("used", "lacks"), [("0", False), ("3", False), ("4", True), ("8", True)])
def test_all_of_its_pods_must_have_room(used: str, lacks: bool) -> None:
    assert lacks_room(cluster(), [cpus(used)]) is lacks


@pytest.mark.parametrize("hard", ["1", "4"])
def test_one_that_the_limits_never_hold_is_left_to_the_coordinator(hard: str) -> None:
    """It may start with its minimum, which only the coordinator knows."""
    assert not lacks_room(cluster(), [cpus("0", hard)])


def test_without_a_quota_nothing_is_lacking() -> None:
    assert not lacks_room(cluster(), [])


def test_of_several_quotas_one_is_enough() -> None:
    pods = quota({"pods": "7", "count/pods": "0"}, {"pods": "8", "count/pods": "100"})
    assert lacks_room(cluster(), [cpus("0"), pods])
    assert not lacks_room(cluster(1), [cpus("0"), quota({"pods": "6"}, {"pods": "8"})])


@pytest.mark.parametrize(
    ("scope", "lacks"),
    [("NotTerminating", True), ("NotBestEffort", True), ("Terminating", False)],
)
def test_a_quota_counts_the_pods_of_its_scopes(scope: str, lacks: bool) -> None:
    assert lacks_room(cluster(), [quota({"pods": "8"}, {"pods": "8"}, scopes=[scope])]) is lacks


@pytest.mark.parametrize(("name", "lacks"), [("high", True), ("low", False), ("", False)])
def test_a_quota_counts_the_pods_of_its_priority_class(name: str, lacks: bool) -> None:
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    full = quota({"pods": "8"}, {"pods": "8"}, scopeSelector={"matchExpressions": [scope]})
    assert lacks_room(cluster(priorityClassName=name), [full]) is lacks


def test_a_runtime_class_that_it_names_is_taken_to_be_there() -> None:
    assert lacks_room(cluster(runtimeClassName="nvidia"), [cpus("8")])


def test_a_quota_of_which_nothing_is_known_yet_keeps_nothing_back() -> None:
    assert not lacks_room(cluster(), [quota({}, {"requests.cpu": "8"})])


@pytest.mark.parametrize(
    "pod",
    [
        {"nodeName": "n"},
        {"schedulingGates": [{"name": "example.com/later"}]},
        {"containers": []},
        {"containers": "none"},
        {"containers": [{"name": "ray", "resources": {"requests": {"cpu": "many"}}}]},
    ],
)
def test_what_cannot_be_foreseen_lacks_nothing(pod: Json) -> None:
    assert not lacks_room(cluster(**pod), [cpus("8")])


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3)
    ),
    max_leaves=8,
)


@given(field=st.sampled_from(["containers", "resources", "affinity", "volumes"]), value=_ANYTHING)
def test_whatever_a_template_says_it_is_answered(field: str, value: Any) -> None:
    assert lacks_room(cluster(4, **{field: value}), [cpus("8")]) in (True, False)
