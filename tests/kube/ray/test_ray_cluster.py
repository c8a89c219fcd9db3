"""The opt-in of a RayCluster, the owner of a pod and KubeRay's conditions are read right."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import names
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.ray import RayCluster
from kube.ray import ray_cluster
from kube.ray.ray_cluster import (
    Answer,
    OptIn,
    essential,
    opt_in,
    owner_cluster,
    pod_set_of,
    replica_of,
)
from tests.kube.ray.clusters import Json, cluster, read_cluster

TRUE, FALSE, ODD = {names.OPT_IN: "true"}, {names.OPT_IN: "false"}, {names.OPT_IN: "True"}


@pytest.mark.parametrize(
    ("labels", "annotations", "namespace", "expected"),
    [
        ({}, {}, {}, OptIn(Answer.NO)),
        (TRUE, {}, {}, OptIn(Answer.YES, "true", "label")),
        ({}, TRUE, {}, OptIn(Answer.YES, "true", "annotation")),
        ({}, {}, TRUE, OptIn(Answer.YES, "true", "namespace label")),
        (FALSE, TRUE, TRUE, OptIn(Answer.NO, "false", "label")),
        ({}, FALSE, TRUE, OptIn(Answer.NO, "false", "annotation")),
        (TRUE, FALSE, FALSE, OptIn(Answer.YES, "true", "label")),
        (ODD, FALSE, FALSE, OptIn(Answer.BAD, "True", "label")),
        ({}, {}, ODD, OptIn(Answer.BAD, "True", "namespace label")),
        ({names.OPT_IN: ""}, TRUE, {}, OptIn(Answer.BAD, "", "label")),
        ({"ray.io/x": "true"}, {}, {}, OptIn(Answer.NO)),
    ],
)
def test_label_goes_before_annotation_before_namespace(
    labels: Json, annotations: Json, namespace: Json, expected: OptIn
) -> None:
    assert opt_in(labels, annotations, namespace) == expected


@given(st.text())
def test_only_false_leaves_a_marked_cluster_ungated(value: str) -> None:
    assert opt_in({names.OPT_IN: value}, {}, {}).gated == (value != "false")


def owned(**changes: Any) -> ObjectMeta:
    owner = {"api_version": "ray.io/v1", "kind": "RayCluster", "name": "rc", "uid": "u"}
    return ObjectMeta(
        owner_references=(OwnerReference(**{**owner, "controller": True, **changes}),)
    )


@pytest.mark.parametrize("api_version", ["ray.io/v1", "ray.io/v1alpha1"])
def test_controller_reference_names_the_cluster(api_version: str) -> None:
    owner = owner_cluster(owned(api_version=api_version))
    assert owner is not None
    assert (owner.name, owner.uid) == ("rc", "u")


@pytest.mark.parametrize(
    "changes",
    [
        {"controller": False},
        {"controller": None},
        {"kind": "RayJob"},
        {"api_version": "batch/v1"},
        {"api_version": "notray.io/v1"},
        {"api_version": "ray.io.example.com/v1"},
        {"api_version": ""},
    ],
)
def test_other_owners_are_no_cluster(changes: Json) -> None:
    assert owner_cluster(owned(**changes)) is None


def test_labels_alone_make_no_owner() -> None:
    assert owner_cluster(ObjectMeta(labels={"ray.io/cluster": "rc"})) is None


def test_pod_set_and_replica_come_from_kuberays_labels() -> None:
    labels = {"ray.io/group": "gpu", "ray.io/worker-group-replica-name": "gpu-7xk2v"}
    assert (pod_set_of(labels), replica_of(labels)) == ("gpu", "gpu-7xk2v")
    assert (pod_set_of({}), replica_of({})) == ("", "")


def test_of_keys_without_a_meaning_a_few_are_kept() -> None:
    """A tenant may write 65,000 short ones into one object."""
    many = {f"muster.dev/{number:05}": "" for number in range(65_000)} | {names.OPT_IN: "true"}
    kept = essential(cluster(labels=many, annotations=many)).metadata
    assert (len(kept.labels), len(kept.annotations)) == (5, 5)
    assert kept.labels[names.OPT_IN] == "true"


def said(**status: Any) -> RayCluster:
    """A RayCluster of the second generation, of which KubeRay says this."""
    metadata = {"name": "rc", "generation": 2}
    return read_cluster({"metadata": metadata, "status": status})


def failed(text: str) -> list[Json]:
    reason = "FailedCreateWorkerPod"
    condition = {"type": "ReplicaFailure", "status": "True", "reason": reason}
    return [{**condition, "message": f"{reason}\n{text}"}]


INVALID = (
    'Pod "rc-w-worker-ab1c2" is invalid: spec.containers[0].imagePullPolicy: Unsupported '
    'value: "Nope": supported values: "Always", "IfNotPresent", "Never"'
)


PASSING = [
    'pods "rc-w-worker-ab1c2" is forbidden: exceeded quota: small, requested: pods=1',
    'pods "rc-w-worker-ab1c2" is forbidden: no PriorityClass with name nope was found',
    "pods is forbidden: ValidatingAdmissionPolicy 'p' denied request: Pod \"x\" is invalid: no",
    'admission webhook "w.example.com" denied the request: Pod "x" is invalid: no',
    "Internal error occurred: failed calling webhook",
    "etcdserver: request timed out",
    "",
]


def test_an_invalid_pod_can_never_be_made() -> None:
    assert ray_cluster.makes_invalid_pods(said(conditions=failed(INVALID), observedGeneration=2))
    assert not ray_cluster.makes_invalid_pods(
        said(conditions=failed(INVALID), observedGeneration=1)
    )
    assert not ray_cluster.makes_invalid_pods(said(observedGeneration=2))


@pytest.mark.parametrize("text", PASSING)
def test_what_a_quota_or_webhook_refuses_may_pass_later(text: str) -> None:
    assert not ray_cluster.makes_invalid_pods(said(conditions=failed(text), observedGeneration=2))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, False),
        ({"conditions": [{"type": "RayClusterProvisioned", "status": "True"}]}, True),
        ({"conditions": [{"type": "RayClusterProvisioned", "status": "False"}]}, False),
        ({"conditions": [{"type": "HeadPodReady", "status": "True"}]}, False),
        ({"state": "ready"}, True),
        ({"state": "suspended"}, False),
    ],
)
def test_a_ray_cluster_that_ran_once_is_told_by_its_condition_or_state(
    status: Json, expected: bool
) -> None:
    assert ray_cluster.was_provisioned(said(**status)) == expected
