"""Pods are counted as the controller of each kind makes them, and their templates found."""

from typing import Any

import pytest

from appwrapper.spec.faults import MOST_PODS
from appwrapper.spec.items import read
from appwrapper.spec.kinds import group_of
from appwrapper.spec.wrapped import WrappedPodSet
from tests.appwrapper.samples import (
    Json,
    codeflare,
    component,
    config_map,
    deployment,
    job,
    mcad,
    mcad_item,
    obj,
    only,
    pod_spec,
    ray_cluster,
    ray_spec,
    said,
    template,
)


def sets(made_of: Json) -> dict[str, int]:
    return {each.name: each.count for each in only(codeflare(made_of)).pod_sets}


def pod_set(made_of: Json) -> WrappedPodSet:
    (found,) = only(codeflare(made_of)).pod_sets
    return found


@pytest.mark.parametrize(("version", "group"), [("v1", ""), ("apps/v1", "apps"), ("", "")])
def test_the_group_is_before_the_slash(version: str, group: str) -> None:
    assert group_of(version) == group


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"completions": 5}, 1),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": 3, "completions": 10**6}, 3),
        ({"parallelism": 0, "completions": 2}, 0),
        ({"parallelism": 3, "suspend": True}, 0),
        ({"parallelism": None, "completions": None}, 1),
    ],
)
def test_a_job_runs_as_many_pods_as_its_controller_starts_at_once(spec: Json, pods: int) -> None:
    """Without parallelism one at a time; never more than completions are left."""
    assert sets(job(**spec)) == {"train": pods}


@pytest.mark.parametrize(
    ("made_of", "pods"),
    [
        (deployment(replicas=None), 1),
        (deployment(replicas=0), 0),
        (deployment(replicas=7.0), 7),
        (obj("apps/v1", "ReplicaSet", "web", spec={"replicas": 4, "template": template()}), 4),
        (obj("apps/v1", "StatefulSet", "web", spec={"replicas": 2, "template": template()}), 2),
        (obj("v1", "Pod", "web", spec=pod_spec()), 1),
    ],
)
def test_replicas_of_kinds_of_kubernetes(made_of: Json, pods: int) -> None:
    assert sets(made_of) == {"web": pods}


def test_the_template_of_a_pod_is_the_pod_itself() -> None:
    assert pod_set(obj("v1", "Pod", "web", spec=pod_spec())).path == ()
    assert pod_set(deployment()).path == ("spec", "template")


@pytest.mark.parametrize(("policy", "least"), [(None, 1), ("Parallel", 3)])
def test_pods_of_a_stateful_set_come_one_by_one_unless_it_says_otherwise(
    policy: str | None, least: int
) -> None:
    """A gang must not wait for pods that wait for it."""
    spec = {"replicas": 3, "template": template(), "podManagementPolicy": policy}
    made_of = obj("apps/v1", "StatefulSet", "web", spec=spec)
    for found in (codeflare(made_of), mcad(mcad_item(made_of), schedulingSpec={"minAvailable": 3})):
        wrapped = read(found)
        assert [(each.minimum, each.count) for each in wrapped.items[0].pod_sets] == [(least, 3)]
        assert bool(wrapped.notices) is (policy is None)


def test_jobs_that_wait_for_others_start_later() -> None:
    inner = {"spec": {"template": template()}}
    jobs: list[Json] = [{"name": name, "template": inner} for name in "ab"]
    jobs.append({"name": "c", "template": inner, "dependsOn": [{"name": "a"}]})
    made_of = obj("jobset.x-k8s.io/v1alpha2", "JobSet", "js", spec={"replicatedJobs": jobs})
    assert [each.minimum for each in read(codeflare(made_of)).items[0].pod_sets] == [1, 1, 0]
    made_of["spec"]["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    wrapped = read(codeflare(made_of))
    assert [each.minimum for each in wrapped.items[0].pod_sets] == [1, 0, 0]
    assert wrapped.notices[0] == (
        "spec.components[0] (JobSet js): the 1 pods of js.b wait for those of others"
    )


@pytest.mark.parametrize(
    ("made_of", "completions"),
    [
        (job(parallelism=2, completions=5), 5),
        (job(parallelism=2), 2),
        (obj("v1", "Pod", "p", spec=pod_spec()), 1),
        (deployment(), None),
    ],
)
def test_pods_that_succeed_are_not_made_again(made_of: Json, completions: int | None) -> None:
    assert pod_set(made_of).completions == completions


def test_a_job_set_has_a_pod_set_for_each_of_its_jobs() -> None:
    inner = {"spec": {"parallelism": 3, "template": template()}}
    jobs = [
        {"name": "driver", "template": {"spec": {"template": template()}}},
        {"name": "workers", "replicas": 2, "template": inner},
    ]
    made_of = obj("jobset.x-k8s.io/v1alpha2", "JobSet", "js", spec={"replicatedJobs": jobs})
    assert sets(made_of) == {"js.driver": 1, "js.workers": 6}
    found = only(codeflare(made_of)).pod_sets[1]
    assert found.path == ("spec", "replicatedJobs", 1, "template", "spec", "template")
    made_of["spec"]["suspend"] = True
    assert sets(made_of) == {"js.driver": 0, "js.workers": 0}


def test_a_py_torch_job_has_a_pod_set_for_each_role() -> None:
    roles = {"Worker": {"replicas": 3, "template": template()}, "Master": {"template": template()}}
    made_of = obj("kubeflow.org/v1", "PyTorchJob", "pt", spec={"pytorchReplicaSpecs": roles})
    assert sets(made_of) == {"pt.master": 1, "pt.worker": 3}


def test_a_ray_cluster_has_its_head_and_its_groups() -> None:
    assert sets(ray_cluster("rc")) == {"rc.headgroup": 1, "rc.small-group": 1}
    assert sets(ray_cluster("rc", suspend=True)) == {"rc.headgroup": 0, "rc.small-group": 0}


def test_an_autoscaled_group_must_start_with_its_least() -> None:
    """And a replica of several hosts is so many pods."""
    spec = ray_spec(enableInTreeAutoscaling=True)
    spec["workerGroupSpecs"][0] |= {"replicas": 3, "maxReplicas": 9, "numOfHosts": 2}
    _head, found = only(codeflare(obj("ray.io/v1", "RayCluster", "rc", spec=spec))).pod_sets
    assert (found.count, found.minimum, found.hosts) == (6, 2, 2)


def test_a_ray_job_has_the_pods_of_the_ray_cluster_that_it_makes() -> None:
    """Not those of one that it selects; its submitter asks for little and is not gated."""
    made_of = obj("ray.io/v1", "RayJob", "rj", spec={"rayClusterSpec": ray_spec()})
    assert sets(made_of) == {"rj.headgroup": 1, "rj.small-group": 1}
    made_of["spec"]["clusterSelector"] = {"a": "b"}
    assert sets(made_of) == {}


def test_objects_without_pods_go_along() -> None:
    assert sets(config_map()) == {}
    assert sets(obj("apps/v1", "DaemonSet", "ds", spec={"template": template()})) == {}


@pytest.mark.parametrize("number", [-1, 10**9, "3", 1.5, True, [], 2**70])
def test_a_number_of_pods_that_is_none_is_named(number: Any) -> None:
    (message,) = said(codeflare(deployment(replicas=number)))
    assert message.startswith("spec.components[0] (Deployment web): template.spec.replicas: ")
    assert message.endswith(f"is not valid; allowed: a whole number from 0 to {MOST_PODS}")


@pytest.mark.parametrize(
    ("group", "field"),
    [
        ({"replicas": -1}, "replicas"),
        ({"numOfHosts": 10**9}, "numOfHosts"),
        ({"groupName": "headgroup"}, "groupName"),
        ({"groupName": "x" * 64}, "groupName"),
        ({"groupName": 7}, "groupName"),
    ],
)
def test_a_bad_worker_group_is_named(group: Json, field: str) -> None:
    spec = ray_spec()
    spec["workerGroupSpecs"][0] |= group
    (message,) = said(codeflare(obj("ray.io/v1", "RayCluster", "rc", spec=spec)))
    where = "spec.components[0] (RayCluster rc): template.spec.workerGroupSpecs[0]"
    assert message.startswith(f"{where}.{field}: ")


def test_worker_groups_of_one_name_are_refused() -> None:
    spec = ray_spec()
    spec["workerGroupSpecs"] *= 2
    assert len(said(codeflare(obj("ray.io/v1", "RayCluster", "rc", spec=spec)))) == 2


# --- kinds that are not known


def unknown(**spec: Any) -> Json:
    return obj("example.org/v1", "Trainer", "tr", spec=spec)


def test_declared_pod_sets_say_what_an_unknown_kind_makes() -> None:
    made_of = unknown(parts=[{"template": template()}, {"template": template()}])
    declared = [
        {"path": "template.spec.parts[0].template"},
        {"path": "template.spec.parts[1].template", "replicas": 3},
    ]
    first, second = only(component(made_of, podSets=declared)).pod_sets
    assert (first.name, first.count, second.name, second.count) == ("tr.0", 1, "tr.1", 3)
    assert second.path == ("spec", "parts", 1, "template")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "spec.template",
        "template.spec.nothing",
        "template.spec.parts[7].template",
        "template.spec.parts[0]",
        "template.spec..parts",
        "template.spec.parts[-1].template",
    ],
)
def test_a_path_that_leads_to_no_pod_template_is_named(path: str) -> None:
    made_of = unknown(parts=[{"template": template()}])
    (message,) = said(component(made_of, podSets=[{"path": path}]))
    where = "spec.components[0] (Trainer tr): podSets[0].path"
    assert message.startswith(
        f'{where}: "{path}" is not valid; allowed: the path of a pod template'
    )


def test_each_path_is_declared_once() -> None:
    made_of = unknown(template=template())
    declared = [{"path": "template.spec.template"}] * 2
    (message,) = said(component(made_of, podSets=declared))
    assert "podSets[1].path" in message


def test_what_a_known_kind_makes_counts_more_than_what_is_declared() -> None:
    declared = [{"path": "template.spec.template", "replicas": 5}]
    wrapped = read(component(deployment(), podSets=declared))
    assert [each.count for each in wrapped.items[0].pod_sets] == [2]
    (notice,) = wrapped.notices
    assert notice == (
        "spec.components[0] (Deployment web): podSets[0].replicas: 5 differs from the 2 pods that "
        "its Deployment makes, which count"
    )
    (message,) = said(component(deployment(), podSets=[{"path": "template.metadata"}]))
    assert message.endswith("allowed: template.spec.template")


def test_pods_of_an_unknown_kind_that_declares_none_are_told_of() -> None:
    wrapped = read(component(unknown(part={"template": template()})))
    assert (wrapped.faults, wrapped.items[0].pod_sets) == ((), ())
    (notice,) = wrapped.notices
    assert notice == (
        "spec.components[0] (Trainer tr): how many pods a Trainer has is not known: name them in "
        "podSets"
    )
    assert read(component(unknown(part={}))).notices == ()


def test_mcad_reads_replicas_and_template_of_any_kind() -> None:
    found = only(mcad(mcad_item(unknown(replicas=3, template=template()))))
    assert [(each.name, each.path, each.count) for each in found.pod_sets] == [
        ("tr", ("spec", "template"), 3)
    ]


def test_sizes_serve_where_nothing_can_be_read() -> None:
    """Each entry is a pod set; it has a template where there are as many of these."""
    sizes = [{"replicas": 2, "requests": {"cpu": 1}}, {"requests": {"cpu": 2}}]
    found = only(mcad(mcad_item(unknown(), custompodresources=sizes)))
    assert [(each.name, each.path, each.count) for each in found.pod_sets] == [
        ("tr.0", None, 2),
        ("tr.1", None, 1),
    ]
    parts = {"a": {"template": template()}, "b": {"template": template()}}
    found = only(mcad(mcad_item(unknown(**parts), custompodresources=sizes)))
    assert [each.path for each in found.pod_sets] == [
        ("spec", "a", "template"),
        ("spec", "b", "template"),
    ]


@pytest.mark.parametrize("broken", [{}, {"spec": {}}, {"spec": {"containers": [7]}}, 7, None])
def test_a_template_that_cannot_be_read_is_named(broken: Any) -> None:
    made_of = deployment()
    made_of["spec"]["template"] = broken
    (message,) = said(codeflare(made_of))
    assert message.startswith("spec.components[0] (Deployment web): template.spec.template: ")
    assert "allowed: a pod template (" in message
