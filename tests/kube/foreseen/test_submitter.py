"""The submitter of a RayJob is worked out of its template, or it is none that is waited for."""

from typing import Any

import msgspec
import pytest

from kube.codec.profiles.scheduler_profiles import STOCK
from kube.foreseen.admission import Admission
from kube.foreseen.submitter import USUAL, Submitter, submitter_of
from kube.objects.admission import LimitRange
from kube.objects.ray import RayJob
from kube.ray.ray_owner import essential_job
from tests.kube.foreseen.clusters import Json, container, limit_range, template

MIB = 2**20
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


def job(state: str = "Initializing", **spec: Any) -> RayJob:
    found = {"metadata": {"name": "job", "namespace": "team"}, "spec": spec}
    found["status"] = {"jobDeploymentStatus": state}
    return essential_job(msgspec.json.decode(msgspec.json.encode(found), type=RayJob))


def submitter(*limits: LimitRange, state: str = "", **spec: Any) -> Submitter | None:
    return submitter_of(job(state, **spec), Admission(limits), STOCK)


def requests(found: Submitter | None) -> dict[str, int]:
    assert found is not None
    return dict(found.shape.requests)


def test_without_a_template_it_asks_for_what_kuberay_gives_it() -> None:
    assert requests(submitter()) == {"cpu": 500, "memory": 200 * MIB, "pods": 1} == USUAL
    assert requests(submitter(submitterPodTemplate=None))["cpu"] == 500


def test_of_its_template_all_that_a_node_must_have_is_read() -> None:
    tolerated = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    made = template(
        container({"requests": {"cpu": "100m"}}, command=["sh"], env=[{"name": "A"}]),
        container({"limits": {"memory": "1Gi"}}),
        labels={"team": "a"},
        nodeSelector={"pool": "cpu"},
        tolerations=[tolerated],
    )
    found = submitter(submitterPodTemplate=made)
    assert found is not None
    assert requests(found) == {"cpu": 100, "memory": 1024 * MIB, "pods": 1}
    assert found.shape.node_selector == (("pool", "cpu"),)
    assert "gpu" in {each.key for each in found.shape.tolerations}
    assert found.labels == (("team", "a"),)


def test_what_says_nothing_of_resources_takes_what_the_namespace_gives_it() -> None:
    bare = template({"name": "main"})
    assert requests(submitter(submitterPodTemplate=bare)) == {"pods": 1}
    usual = limit_range(defaultRequest={"cpu": "2"})
    assert requests(submitter(usual, submitterPodTemplate=bare))["cpu"] == 2000


@pytest.mark.parametrize(
    "spec",
    [
        {"submissionMode": "HTTPMode"},
        {"submissionMode": "SidecarMode"},
        {"submissionMode": "InteractiveMode"},
        {"clusterSelector": {"ray.io/cluster": "shared"}},
        *({"state": each} for each in ("Running", "Waiting", "Complete", "Failed", "Retrying")),
    ],
    ids=str,
)
def test_there_is_none_to_come_in_other_modes_and_states(spec: Json) -> None:
    assert submitter(**spec) is None


@pytest.mark.parametrize(
    "pod",
    [
        {"nodeName": "n1"},
        {"schedulingGates": [{"name": "example.com/other"}]},
        {"schedulerName": "other"},
        {"runtimeClassName": "unknown"},
        {"resourceClaims": [{"name": "gpu"}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"topologySpreadConstraints": [{**SPREAD, "topologyKey": "zone"}]},
        {"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]},
        {"containers": 3},
    ],
    ids=lambda pod: next(iter(pod)),
)
def test_one_that_cannot_be_judged_by_itself_is_none(pod: Json) -> None:
    made = {"spec": {**template()["spec"], **pod}}
    assert submitter(submitterPodTemplate=made) is None


def test_a_template_that_is_too_large_to_be_kept_is_none() -> None:
    made = template(labels={f"key-{n}": "value" * 9 for n in range(200)})
    assert submitter(submitterPodTemplate=made) is None
    assert len(bytes(job(submitterPodTemplate=made).spec.submitter_pod_template)) < 100


def test_nothing_is_kept_of_what_may_be_secret() -> None:
    made = template(container(env=[{"name": "TOKEN", "value": "secret"}]))
    assert b"secret" not in bytes(job(submitterPodTemplate=made).spec.submitter_pod_template)
