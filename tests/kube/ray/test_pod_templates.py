"""Of a suspended RayCluster what its pods are made of is kept, and little else."""

import json
from typing import Any

import msgspec
import pytest

from kube.objects.ray import ABSENT, RayCluster, RayClusterSpec
from kube.ray.pod_templates import (
    MOST_BYTES,
    autoscaler_options,
    head_template,
    with_templates,
    worker_template,
)
from kube.ray.ray_cluster import content, essential, resumed

Json = dict[str, Any]


def container(cpu: str = "1") -> Json:
    """A container as Ray's samples have them: most of it decides nothing."""
    environment = [{"name": f"VARIABLE_{n}", "value": "v" * 100} for n in range(20)]
    script = {"command": ["bash", "-c", "x" * 4000], "env": environment}
    return {"name": "ray", "image": "ray", "resources": {"requests": {"cpu": cpu}}, **script}


def cluster(*, suspend: bool | None, cpu: str = "1", state: str = "", **pod: Any) -> RayCluster:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container(cpu)], **pod}}
    raw = {
        "metadata": {"name": "rc"},
        "spec": {
            "suspend": suspend,
            "headGroupSpec": {"template": template, "labels": {"c": "d"}},
            "autoscalerOptions": {"resources": {"limits": {"cpu": "2"}}, "idleTimeoutSeconds": 60},
            "workerGroupSpecs": [{"groupName": "w", "template": template, "labels": {"e": "f"}}],
        },
        "status": {"state": state},
    }
    return essential(msgspec.json.decode(json.dumps(raw), type=RayCluster))


def parts(spec: RayClusterSpec) -> list[msgspec.Raw]:
    (group,) = spec.worker_group_specs
    return [spec.head_group_spec, spec.autoscaler_options, group.template, group.labels]


@pytest.mark.parametrize("suspend", [False, None])
def test_templates_are_kept_until_all_pods_were_ready_once(suspend: bool | None) -> None:
    assert parts(cluster(suspend=suspend, state="ready").spec) == [ABSENT] * 4
    assert ABSENT not in parts(cluster(suspend=suspend).spec)
    assert ABSENT not in parts(cluster(suspend=True, state="ready").spec)


def test_what_is_kept_can_be_read() -> None:
    spec = cluster(suspend=True).spec
    head, worker = head_template(spec), worker_template(spec.worker_group_specs[0])
    assert head is not None
    assert worker is not None
    assert (head.labels, worker.labels) == ({"c": "d"}, {"e": "f"})
    for each in (head, worker):
        assert each.template.metadata is not None
        assert each.template.metadata.labels == {"a": "b"}
        assert each.template.spec.containers[0].resources.requests == {"cpu": "1"}
    options = autoscaler_options(spec)
    assert options is not None
    assert options.resources is not None
    assert options.resources.limits == {"cpu": "2"}


def test_what_is_not_kept_reads_as_absent() -> None:
    spec = cluster(suspend=False, state="ready").spec
    assert head_template(spec) is None
    assert worker_template(spec.worker_group_specs[0]) is None
    assert autoscaler_options(spec) is None


def test_what_decides_nothing_takes_no_memory() -> None:
    """Commands and environment are most of a template."""
    kept = parts(cluster(suspend=True).spec)
    assert sum(len(bytes(each)) for each in kept) < 500


def test_templates_that_are_too_large_are_not_kept() -> None:
    large = cluster(suspend=True, nodeSelector={"k": "v" * MOST_BYTES})
    assert parts(large.spec) == [ABSENT] * 4


def test_a_template_that_cannot_be_read_stays_for_a_message_to_name_it() -> None:
    kept = cluster(suspend=True, tolerations="none").spec
    assert b'"tolerations":"none"' in bytes(kept.head_group_spec).replace(b" ", b"")
    assert with_templates(kept) == kept


def test_of_a_template_that_cannot_be_read_no_secret_is_kept() -> None:
    """It is kept whole otherwise, and may be written to a recording."""
    whole = container()
    whole["args"] = ["x" * 50]
    kept = cluster(suspend=True, tolerations="none", containers=[whole]).spec
    for each in (bytes(kept.head_group_spec), bytes(kept.worker_group_specs[0].template)):
        assert b'"image"' in each
        assert b"VARIABLE" not in each
        assert b"vvv" not in each
        assert b"xxx" not in each


def test_a_changed_template_is_another_ray_cluster() -> None:
    one, other = (cluster(suspend=True, cpu=cpu) for cpu in "12")
    assert content(one) == content(cluster(suspend=True))
    assert content(one) != content(other)


def test_a_resumed_ray_cluster_is_the_same_but_for_that() -> None:
    found = resumed(cluster(suspend=True))
    assert found.spec.suspend is False
    assert parts(found.spec) == parts(cluster(suspend=True).spec)
