"""A Ray cluster of a form, what a form changes in one, and a copy under another name."""

from typing import Any

import msgspec
import pytest

from cli.endings import Unusable
from cli.managing.cluster import changed, container_of, new_cluster
from cli.managing.copies import copy_of
from cli.managing.forms import ClusterForm, GroupForm
from cli.managing.written import read_groups, read_head, read_map, read_targets
from tests.cli.managing.clusters import Json, cluster, group, with_changes


def form(*groups: str, **fields: Any) -> ClusterForm:
    return ClusterForm(groups=read_groups(groups), **fields)


def first(found: Json) -> Json:
    group: Json = found["spec"]["workerGroupSpecs"][0]
    return group


def test_a_new_cluster_is_a_gang_with_what_was_asked_for() -> None:
    asked = form(
        "workers,replicas=4,gpus=8,cpus=32,memory=256Gi,hosts=2",
        queue="research",
        priority_class="high",
        topology_required="zone",
        expected_duration="2h",
        fault_tolerance=True,
        image="mine/ray:2.53.0-py311",
        head=read_head("cpus=3,image=mine/head:1"),
    )
    found = new_cluster("train", "team", asked)
    assert found["metadata"] == {
        "name": "train",
        "namespace": "team",
        "labels": {
            "muster.dev/gang": "true",
            "muster.dev/queue": "research",
            "muster.dev/priority-class": "high",
            "muster.dev/head-fault-tolerance": "built-in",
        },
        "annotations": {
            "muster.dev/topology-required": "zone",
            "muster.dev/expected-duration": "2h",
        },
    }
    spec, workers = found["spec"], first(found)
    assert spec["rayVersion"] == "2.53.0"
    amounts = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"}
    assert container_of(workers) == {
        "name": "ray-worker",
        "image": "mine/ray:2.53.0-py311",
        "resources": {"requests": amounts, "limits": amounts},
    }
    assert (workers["replicas"], workers["minReplicas"], workers["maxReplicas"]) == (4, 0, 4)
    assert workers["numOfHosts"] == 2
    head = container_of(spec["headGroupSpec"])
    assert head["image"] == "mine/head:1"
    assert head["resources"]["limits"] == {"cpu": "3", "memory": "8Gi"}


def test_with_the_autoscaler_a_group_has_bounds_and_begins_at_the_least() -> None:
    asked = form("w,min=1,max=8,gpus=1,gpu=amd.com/gpu", autoscaler=True, idle_timeout_seconds=300)
    found = new_cluster("train", "team", asked)
    assert found["spec"]["enableInTreeAutoscaling"] is True
    assert found["spec"]["autoscalerOptions"] == {"idleTimeoutSeconds": 300}
    workers = first(found)
    assert (workers["replicas"], workers["minReplicas"], workers["maxReplicas"]) == (1, 1, 8)
    assert container_of(workers)["resources"]["limits"]["amd.com/gpu"] == "1"


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("Train", {}, 'NAME: "Train"; allowed: at most 53 characters of a-z, 0-9 and -'),
        ("t" * 54, {}, "allowed: at most 53 characters"),
        ("t", {"queue": "a/b"}, 'queue: "a/b"; allowed: at most 63 characters'),
        ("t", {"create_pods": "never"}, 'create-pods: "never"; allowed: always, when-admitted'),
        ("t", {"upscaling_mode": "Slow", "autoscaler": True}, "allowed: Default, Aggressive"),
        ("t", {"idle_timeout_seconds": 9}, "Ray's autoscaler is off"),
        ("t", {"groups": ("w",), "autoscaler": True}, "group w: max: absent; allowed"),
        ("t", {"groups": ("w,replicas=5,max=4",)}, "replicas 5; allowed: from min 0 to max 4"),
        ("t", {"groups": ("w,min=5,max=4",)}, "min 5 is above max 4"),
        ("t", {"groups": ("w,gpu=a/b",)}, "gpu=a/b: allowed with gpus=N alone"),
        ("t", {"without_groups": ("w",)}, "w: no worker group; there are: none"),
        ("t", {"workers_to_delete": ("p",)}, "p: no worker pod of this RayCluster"),
    ],
)
def test_what_cannot_be_is_said_with_its_field_and_what_is_allowed(
    name: str, asked: dict[str, Any], said: str
) -> None:
    groups = read_groups(asked.pop("groups", ()))
    with pytest.raises(Unusable) as fault:
        new_cluster(name, "team", ClusterForm(groups=groups, **asked))
    assert said in str(fault.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workers,gpus", '--group workers: "gpus"; allowed: key=value'),
        ("workers,gpus=x", '--group workers: gpus: "x"; allowed: a whole number from 0'),
        ("workers,hosts=0", "allowed: a whole number from 1"),
        ("workers,disk=1", '"disk"; allowed: replicas, min, max, hosts, cpus, memory'),
        ("workers,cpus=4x", 'cpus: "4x"; allowed: a quantity'),
        ("workers,cpus=1,cpus=2", "cpus is there twice"),
        ("replicas=2", "with the name first"),
        ("Workers", "allowed: at most 53 characters of a-z"),
    ],
)
def test_a_group_that_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(Unusable) as fault:
        read_groups([text])
    assert said in str(fault.value)
    with pytest.raises(Unusable, match="is there twice"):
        read_groups(["a", "a"])
    with pytest.raises(Unusable, match="allowed: cpus, memory"):
        read_head("replicas=1")


def test_targets_and_maps() -> None:
    assert [(e.group, e.least, e.most) for e in read_targets(["a=2", "b=1..8"])] == [
        ("a", 2, 2),
        ("b", 1, 8),
    ]
    for bad in ("a", "a=x", "a=8..1", "a=-1"):
        with pytest.raises(Unusable):
            read_targets([bad])
    assert read_map("--quota", ["cpu=1,nvidia.com/gpu=8", "memory="]) == {
        "cpu": "1",
        "nvidia.com/gpu": "8",
        "memory": "",
    }


def test_a_form_changes_what_it_says_and_nothing_else() -> None:
    old = cluster()
    assert changed(old, ClusterForm()) == old
    found = changed(old, form("workers,replicas=6,cpus=8", queue="q"))
    assert (first(found)["replicas"], first(found)["maxReplicas"]) == (6, 6)
    assert container_of(first(found))["resources"]["limits"] == {"cpu": "8"}
    assert found["metadata"]["labels"] == {"muster.dev/gang": "true", "muster.dev/queue": "q"}
    assert old == cluster(), "what was read stays as it was"
    back = changed(found, ClusterForm(queue="", gang=False))
    assert back["metadata"]["labels"] == {"muster.dev/gang": "false"}
    bare = cluster()
    del bare["spec"]["workerGroupSpecs"]
    assert changed(bare, ClusterForm()) == bare


def test_only_pods_of_the_cluster_can_be_named_to_be_deleted() -> None:
    found = changed(cluster(), ClusterForm(workers_to_delete=("p1",)), {"p1": "workers"})
    assert first(found)["scaleStrategy"] == {"workersToDelete": ["p1"]}
    with pytest.raises(Unusable, match="other: no worker pod of this RayCluster; there are: p1"):
        changed(cluster(), ClusterForm(workers_to_delete=("other",)), {"p1": "workers"})


def test_a_copy_has_nothing_that_only_the_other_one_may_have() -> None:
    old = cluster(
        "train",
        group(scaleStrategy={"workersToDelete": ["a"]}, replicas=3, minReplicas=1),
        suspend=True,
        enableInTreeAutoscaling=True,
        gcsFaultToleranceOptions={"redisAddress": "r", "externalStorageNamespace": "mine"},
    )
    old["metadata"]["annotations"] = {
        "muster.dev/held": "true",
        "muster.dev/topology-required": "zone",
        "ray.io/external-storage-namespace": "mine",
    }
    old["metadata"]["labels"] |= {"ray.io/originated-from-crd": "RayJob", "team": "a"}
    found = copy_of(old, "train-2")
    assert found["metadata"] == {
        "name": "train-2",
        "namespace": "team",
        "labels": {"muster.dev/gang": "true", "team": "a"},
        "annotations": {"muster.dev/topology-required": "zone"},
    }
    assert "status" not in found
    assert "suspend" not in found["spec"]
    assert first(found)["replicas"] == 1
    assert "scaleStrategy" not in first(found)
    assert found["spec"]["gcsFaultToleranceOptions"] == {"redisAddress": "r"}
    labels = {**old["metadata"]["labels"], "muster.dev/head-fault-tolerance": "built-in"}
    built_in = with_changes(old, metadata__labels=labels)
    assert "gcsFaultToleranceOptions" not in copy_of(built_in, "b")["spec"]


def test_a_group_form_of_a_page_is_read_as_json() -> None:
    text = b'{"queue": "q", "groups": [{"name": "w", "gpus": 8, "max": 4}], "priorityClass": "p"}'
    found = msgspec.json.decode(text, type=ClusterForm)
    assert found.groups == (GroupForm(name="w", gpus=8, max=4),)
    assert (found.queue, found.priority_class) == ("q", "p")
