"""`muster fit` answers what the coordinator would decide, and changes nothing."""

import asyncio
import copy
from pathlib import Path

import msgspec
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from cli.__main__ import main
from cli.endings import FINE, NO, NOT_READ, WRONG_USE
from cli.read.dry_created import Answer, DryCreated
from kube.api.access import Access
from kube.objects import names
from tests.cli.fitting.created import asked_and_created
from tests.cli.fitting.reader import MemoryReader, answer, answers, fit, reader_of
from tests.coordinator.api import PLURALS
from tests.coordinator.app_wrappers import app_wrapper, config_map, job
from tests.coordinator.builders import (
    GPU,
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.namespace_quota import QuotaWorld
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World


def queue(name: str, *, quota: Json | None = None, **spec: object) -> Json:
    selects = {"matchLabels": {"kubernetes.io/metadata.name": TEAM}}
    return {
        "kind": "GangQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, **({"quota": quota} if quota else {}), **spec},
        "selects": selects,
    }


WORLDS: dict[str, tuple[list[Json], list[Json]]] = {
    "room": ([node("a"), node("b", cpu=2)], []),
    "busy": ([node("a", cpu=4), foreign_pod("other", "a", cpu=2)], []),
    "reserved": ([node("a", cpu=4), node("b", cpu=4)], [gang_of("first", 4)]),
    "waits": ([node("a", cpu=4)], [gang_of("first", 9)]),
    "quota": ([node("a", cpu=32), queue("q", quota={"cpu": 4})], []),
    "quota in use": ([node("a", cpu=32), queue("q", quota={"cpu": 9})], [gang_of("first", 4)]),
    "strict": (
        [node("a", cpu=8), queue("q", quota={"cpu": 100}, whenBlocked="Strict")],
        [gang_of("first", 9)],
    ),
    "no node": ([], []),
}
ASKED = {
    "small": gang_of("train", 2),
    "large": gang_of("train", 7),
    "elastic": gang_of("train", 7, annotations={names.MIN_REPLICAS: "workers=1"}),
    "misconfigured": gang_of("train", 2, annotations={names.MIN_REPLICAS: "workers=9"}),
    "another queue": gang_of("train", 2, annotations={names.QUEUE: "none"}),
    "device": ray_cluster("train", group("w", 2, gpu=4)),
    "nowhere": ray_cluster("train", group("w", 1, nodeSelector={"zone": "x"})),
    "topology": gang_of("train", 3, annotations={names.TOPOLOGY_REQUIRED: "zone"}),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("world", WORLDS)
def test_the_answer_is_that_of_the_gang_once_it_is_created(world: str, asked: str) -> None:
    found, there = asked_and_created(*WORLDS[world], ASKED[asked])
    status = there.status("train")
    if "placement" in status:
        assert found["fits"] == "Yes"
        assert sum(each["pods"] for each in found["placement"]) == len(
            [pod for pod in there.pods("train") if pod["spec"].get("nodeName")]
        )
    else:
        assert (found["fits"], found["reason"], found["message"]) == (
            "No",
            status["reason"],
            status["message"],
        )
        assert found["position"] == status.get("position", 0)


@pytest.mark.parametrize(
    ("workers", "free", "most"), [(7, 4, 3), (1, 1, 0), (300, 120, 119), (3, 0, None)]
)
def test_the_largest_count_fits_and_one_more_does_not(
    workers: int, free: int, most: int | None
) -> None:
    world = World(node("a", cpu=free, pods=500))
    found = answer(world, gang_of("train", workers))
    assert found["largestThatFit"] == [
        {"group": "workers", "asked": workers, "fit": most, "searched": True}
    ]
    for count in () if most is None else (most, most + 1):
        assert answer(world, gang_of("train", count))["fits"] == ("Yes" if count == most else "No")


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        ({"hosts": 2}, 3),
        ({"least": 6}, 7),
        ({"hosts": 2, "least": 5}, 3),
    ],
)
def test_the_largest_count_is_that_of_replicas(shape: Json, most: int) -> None:
    world = World(node("a", cpu=5), node("b", cpu=3))

    def asked(count: int) -> Json:
        least = {"least": min(shape["least"], count)} if "least" in shape else {}
        workers = group("w", count, hosts=shape.get("hosts", 1), cpu=1, **least)
        head = template(cpu="500m")
        return ray_cluster("train", workers, head=head, enableInTreeAutoscaling=bool(least))

    found = answer(world, asked(20))
    if found["fits"] == "No":
        assert found["largestThatFit"][0]["fit"] == most
        assert answer(world, asked(most))["fits"] == "Yes"
        assert answer(world, asked(most + 1))["fits"] == "No"
    else:
        assert shape.keys() == {"least"}
        assert sum(each["pods"] for each in found["placement"]) == 1 + most
        assert "wait" in found["message"]


def test_each_group_is_searched_with_the_others_as_asked() -> None:
    world = World(node("a", cpu=8), node("g", cpu=8, gpu=2))
    asked = ray_cluster("train", group("cpu", 20, cpu=1), group("gpu", 1, cpu=1, gpu=2))
    found = {each["group"]: each["fit"] for each in answer(world, asked)["largestThatFit"]}
    assert found == {"cpu": 14, "gpu": None}


def test_objects_of_one_file_are_judged_together() -> None:
    world = World(node("a", cpu=8))
    result = fit(reader_of(world), gang_of("one", 4), gang_of("two", 4))
    assert [each["fits"] for each in answers(result)] == ["Yes", "No"]
    assert result.exit_code == NO


def test_a_ray_job_and_a_ray_service_are_the_clusters_that_they_make() -> None:
    world = World(node("a", cpu=4))
    spec, meta = gang_of("train", 4)["spec"], gang_of("train", 4)["metadata"]
    head = {"apiVersion": names.RAY_API_VERSION, "metadata": meta}
    by_http = {"rayClusterSpec": spec, "submissionMode": "HTTPMode"}
    job = {**head, "kind": "RayJob", "spec": by_http}
    service = {**head, "kind": "RayService", "spec": {"rayClusterConfig": spec}}
    found = [answer(world, each) for each in (job, service, gang_of("train", 4))]
    assert {each["message"] for each in found} == {found[2]["message"]}
    assert [each["kind"] for each in found] == ["RayJob", "RayService", "RayCluster"]


@pytest.mark.parametrize("cpu", [6, 5])
def test_a_ray_job_needs_room_for_its_submitter_as_the_coordinator_says(cpu: int) -> None:
    """Where others have a part of the room, and where there is too little even when it is empty."""
    there = World(node("a", cpu=cpu))
    there.create(foreign_pod("other", "a", cpu=cpu - 5))
    job = ray_job("train", gang_of("train", 4), submitterPodTemplate=None)
    found = answer(there, job)
    assert found["fits"] == "No"
    there.create(job)
    there.settle(seconds=5)
    assert found["message"] == there.status("train-1")["message"]
    assert "its submitter" in found["message"]
    assert found["largestThatFit"][0]["fit"] == 3
    small = template(cpu="10m")
    fits = answer(
        World(node("a", cpu=6)), {**job, "spec": {**job["spec"], "submitterPodTemplate": small}}
    )
    assert (fits["fits"], sum(each["pods"] for each in fits["placement"])) == ("Yes", 5)


def cron_job(template: Json, **meta: Json) -> Json:
    head = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCronJob"}
    spec = {"schedule": "0 * * * *", "jobTemplate": template}
    return {**head, "metadata": {"name": "nightly", "namespace": "team", **meta}, "spec": spec}


def test_a_ray_cron_job_is_the_ray_job_that_it_makes() -> None:
    job = ray_job("train", gang_of("train", 4), submitterPodTemplate=None)
    for cpu in (6, 4):
        world = World(node("a", cpu=cpu))
        found, of_job = answer(world, cron_job(job["spec"])), answer(world, job)
        assert (found["fits"], found["message"]) == (of_job["fits"], of_job["message"])
    assert (found["kind"], found["name"]) == ("RayCronJob", "nightly")


def test_a_label_of_a_ray_cron_job_does_not_reach_its_ray_jobs() -> None:
    spec = ray_job("train", gang_of("train", 1))["spec"]
    found = answer(World(node("a")), cron_job(spec, labels={names.OPT_IN: "true"}))
    assert any("set it on their namespace" in each for each in found["notes"])
    assert any("judged as if it were one" in each for each in found["notes"])


@pytest.mark.parametrize("kind", ["RayJob", "RayCronJob"])
def test_a_job_on_a_cluster_that_it_selects_is_no_fault(kind: str) -> None:
    spec = {"clusterSelector": {names.RAY_CLUSTER: "shared"}}
    job = {**cron_job(spec), "kind": kind} | ({"spec": spec} if kind == "RayJob" else {})
    result = fit(reader_of(World(node("a", cpu=8))), job, gang_of("train", 4))
    assert (result.exit_code, len(answers(result))) == (FINE, 1)
    assert "clusterSelector has it run on RayCluster shared and make none of its" in result.stderr
    alone = fit(reader_of(World(node("a"))), job)
    assert (alone.exit_code, answers(alone)) == (FINE, [])


def test_two_ray_jobs_of_one_file_need_room_for_both_submitters() -> None:
    jobs = [ray_job(name, gang_of("", 1), submitterPodTemplate=None) for name in ("one", "two")]
    assert [each["fits"] for each in answers(fit(reader_of(World(node("a", cpu=4))), *jobs))] == [
        "Yes",
        "No",
    ]
    assert fit(reader_of(World(node("a", cpu=5))), *jobs).exit_code == FINE


def test_a_cluster_that_exists_is_judged_as_another_one() -> None:
    world = World(node("a", cpu=8))
    world.create(gang_of("train", 4))
    world.settle()
    found = answer(world, gang_of("train", 4))
    assert found["fits"] == "No"
    assert found["notes"] == [
        "RayCluster team/train exists: judged as another one beside it",
    ]


def strict() -> World:
    """4 CPUs are free, of which a gang that waits needs 5; nothing passes it."""
    world = World(node("a", cpu=8), queue("q", quota={"cpu": 100}, whenBlocked="Strict"))
    world.create(gang_of("first", 3))
    world.settle(seconds=20)
    return world


def test_a_gang_that_waits_is_judged_in_its_own_place() -> None:
    world = strict()
    world.create(gang_of("train", 4))
    world.settle(seconds=20)
    world.create(gang_of("later", 4))
    world.settle(seconds=20)
    found = answer(world, gang_of("train", 4))
    assert (found["fits"], found["reason"]) == ("No", "InsufficientResources")
    assert (found["position"], found["message"]) == (1, world.status("train")["message"])
    note = "RayCluster team/train waits (InsufficientResources): judged in its place"
    assert found["notes"] == [note]
    assert answer(world, gang_of("train", 3))["fits"] == "Yes"
    assert answer(world, gang_of("later", 3))["reason"] == "QueueBlocked"


def test_so_is_the_gang_of_a_ray_job_that_waits() -> None:
    world = strict()
    world.create(ray_job("train", gang_of("", 4)))
    world.settle(seconds=20)
    world.create(gang_of("later", 4))
    world.settle(seconds=20)
    found = answer(world, ray_job("train", gang_of("", 4)))
    assert (found["reason"], found["position"]) == ("InsufficientResources", 1)
    assert answer(world, ray_job("train", gang_of("", 3)))["fits"] == "Yes"
    assert answer(world, ray_job("other", gang_of("", 3)))["reason"] == "QueueBlocked"


def test_what_its_own_pods_hold_of_a_resource_quota_is_its_own() -> None:
    world = QuotaWorld(9, node("a", cpu=8))
    world.create(gang_of("first", 3))
    world.settle(seconds=20)
    world.create(gang_of("train", 4))
    world.settle(seconds=20)
    found = answer(world, gang_of("train", 4))
    assert found["reason"] == "InsufficientResources"
    assert answer(world, gang_of("train", 3))["fits"] == "Yes"
    assert answer(world, gang_of("train", 5))["reason"] == "PodsRefused"
    assert answer(world, gang_of("other", 3))["reason"] == "PodsRefused"
    reader = reader_of(world)
    reader.answers = {
        "pods": DryCreated(Answer.OVER_QUOTA, "exceeded quota: compute"),
        "rayclusters": DryCreated(Answer.EXISTS),
    }
    (found,) = answers(fit(reader, gang_of("train", 3)))
    assert found["fits"] == "Yes"
    assert not [each for each in found["notes"] if "another one beside it" in each]


def test_one_that_nothing_opts_in_is_judged_with_a_note() -> None:
    found = answer(World(node("a")), gang_of("train", 1, labels={}))
    assert found["fits"] == "Yes"
    assert "it would be no gang" in found["notes"][0]


def test_a_resource_quota_is_held_against_all_pods_together() -> None:
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": TEAM},
        "spec": {"hard": {"requests.cpu": "4"}},
        "status": {"hard": {"requests.cpu": "4"}, "used": {"requests.cpu": "1"}},
    }
    found = answer(World(node("a", cpu=32), quota), gang_of("train", 4))
    assert (found["fits"], found["reason"]) == ("No", "PodsRefused")
    assert found["message"].startswith("ResourceQuota compute: the gang needs 5000m")
    assert found["largestThatFit"][0]["fit"] == 2


def test_what_shows_in_pods_alone_is_not_known() -> None:
    result = fit(reader_of(World(node("a"))), ray_cluster("train", group("w", 1, nodeName="a")))
    assert answers(result)[0]["fits"] == "Unknown"
    assert result.exit_code == NOT_READ


def test_a_volume_is_judged_by_its_claim() -> None:
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    asked = ray_cluster("train", group("w", 1, volumes=mounted))
    found = answer(World(node("a")), asked)
    assert found["fits"] == "No"
    assert 'claim "data"' in found["message"] or "data" in found["message"]


def test_what_no_node_could_hold_is_told_before_what_the_quota_lacks() -> None:
    world = World(node("a", cpu=4), queue("q", quota={"cpu": 1}))
    found = answer(world, ray_cluster("train", group("w", 1, cpu=16), labels={names.QUEUE: "q"}))
    assert (found["fits"], found["reason"]) == ("No", "NeverFits")


def test_who_has_the_quota_is_said() -> None:
    world = World(node("a", cpu=32), queue("q", quota={"cpu": 9}))
    world.create(gang_of("first", 4))
    world.settle(seconds=60)
    assert answer(world, gang_of("train", 4))["notes"] == [
        "largest holders of cpu: team/first (queue q) 5"
    ]


# ---- rights


TENANT = ("nodes", "pods", "gangs", "rayclusters", "namespaces", "priorityclasses", "appwrappers")


def test_without_nodes_the_quota_is_judged_and_the_rest_is_said() -> None:
    world = World(node("a", cpu=32), queue("q", quota={"cpu": 9}))
    world.create(gang_of("first", 4))
    world.settle(seconds=60)
    rights = {"forbidden": TENANT, "nowhere": ("deployments",)}
    result = fit(reader_of(world, **rights), gang_of("train", 4))
    (found,) = answers(result)
    assert (found["fits"], found["reason"]) == ("No", "QuotaExceeded")
    assert found["message"] == (
        "queue q uses 5 of its quota of 9 cpu and may take 4 more, and the gang needs 5"
    )
    assert found["largestThatFit"][0]["fit"] == 3
    result = fit(reader_of(world, **rights), gang_of("train", 3))
    assert answers(result)[0]["fits"] == "Unknown"
    assert result.exit_code == NOT_READ
    assert "not allowed to list nodes" in result.stderr


def gpu_queue(**spec: object) -> Json:
    return queue("q", quota={"cpu": 900}, **spec)


def room() -> World:
    """14 GPUs are free in the queue's model: 8 and 5 on two nodes, and 1; 8 more are of others."""
    red, blue = {"model": "red"}, {"model": "blue"}
    world = World(
        node("a", cpu=96, gpu=8, labels=red),
        node("b", cpu=96, gpu=8, labels=red),
        node("c", cpu=96, gpu=1, labels=red),
        node("d", cpu=96, gpu=8, labels=blue),
        foreign_pod("other", "b", gpu=3, cpu=12),
        gpu_queue(nodeSelector=red, nodeSelectorScope="All"),
    )
    world.settle(seconds=10)
    return world


@pytest.mark.parametrize(
    ("asked", "fits", "said"),
    [
        ((1, 8), "Unknown", "1 pod of 8 nvidia.com/gpu fit on its nodes, and the gang needs 1;"),
        ((2, 8), "No", "at most 1 pod of 8 nvidia.com/gpu fit on the nodes of queue q, and the"),
        ((4, 4), "No", "at most 3 pods of 4 nvidia.com/gpu fit on the nodes of queue q, and the"),
        ((3, 3), "Unknown", "6 pods of 2 nvidia.com/gpu fit on its nodes, and the gang needs 3;"),
        ((15, 1), "No", "at most 14 pods of 1 nvidia.com/gpu fit on the nodes of queue q, and"),
        ((14, 1), "Unknown", "14 pods of 1 nvidia.com/gpu fit on its nodes, and the gang needs 14"),
        ((5, 0), "Unknown", "whether there is room on the nodes is not judged"),
    ],
)
def test_a_tenant_is_answered_by_the_holes_of_the_queue(
    asked: tuple[int, int], fits: str, said: str
) -> None:
    """Where the answer is no, the coordinator says no; where it is yes there, it is not no here."""
    world, (count, gpus) = room(), asked
    cluster = ray_cluster("train", group("w", count, cpu=1, gpu=gpus))
    found = answer(world, cluster, forbidden=TENANT)
    assert (found["fits"], said in found["message"]) == (fits, True), found["message"]
    assert found["reason"] == ("InsufficientResources" if fits == "No" else "")
    with_all_rights = answer(world, cluster)["fits"]
    assert with_all_rights == ("No" if fits == "No" else "Yes")


def test_a_pod_of_eight_takes_two_holes_of_four() -> None:
    asked = ray_cluster("train", group("large", 1, gpu=8), group("small", 2, gpu=4))
    found = answer(room(), asked, forbidden=TENANT)
    assert found["fits"] == answer(room(), asked)["fits"] == "No"
    assert "at most 3 pods of 4 nvidia.com/gpu" in found["message"]
    assert "and the gang needs 4 at once" in found["message"]


def test_a_tenant_is_told_the_largest_count_that_the_holes_allow() -> None:
    found = answer(room(), ray_cluster("t", group("w", 9, gpu=4)), forbidden=TENANT)
    assert found["largestThatFit"][0]["fit"] == 3


def test_pods_that_go_to_cordoned_nodes_too_are_not_refused_by_holes() -> None:
    world = World(node("a", gpu=8, cordoned=True), node("head"), gpu_queue())
    world.settle(seconds=10)
    anywhere = [{"operator": "Exists"}]
    for tolerations, fits in (([], "No"), (anywhere, "Unknown")):
        asked = ray_cluster("train", group("w", 1, gpu=4, tolerations=tolerations))
        assert answer(world, asked, forbidden=TENANT)["fits"] == fits
    asked = ray_cluster("train", group("w", 1, gpu=4, tolerations=anywhere))
    assert answer(world, asked)["fits"] == "Yes"


def test_where_processors_are_short_a_tenant_is_told_so() -> None:
    """Pods take 8 CPUs beside a GPU: with 9 left one more such pod fits, and two frugal ones do."""
    world = World(node("a", cpu=17, gpu=8), foreign_pod("other", "a", gpu=1, cpu=8), gpu_queue())
    world.settle(seconds=10)
    found = answer(world, ray_cluster("t", group("w", 2, gpu=1, cpu=2)), forbidden=TENANT)
    assert found["fits"] == "Unknown"
    assert (
        "1 pod of 1 nvidia.com/gpu fit on its nodes with the CPU and memory that is typical"
        in (found["message"])
    )


# ---- AppWrappers


def mcad(name: str, *objects: Json) -> Json:
    """One of MCAD's generation."""
    items = [{"replicas": 1, "generictemplate": each} for each in objects]
    return {
        "apiVersion": "mcad.ibm.com/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"resources": {"GenericItems": items}},
    }


def created_by_none(wrapper: Json) -> Json:
    """As it stands in a file, before the webhook has noted its creator."""
    bare = copy.deepcopy(wrapper)
    del bare["metadata"]["annotations"]
    return bare


@pytest.mark.parametrize("pods", [3, 5])
@pytest.mark.parametrize("kind", ["job", "raycluster", "mcad"])
def test_an_app_wrapper_is_judged_as_it_is_decided_once_it_is_created(kind: str, pods: int) -> None:
    world = World(node("a", cpu=4), queue("q", quota={"cpu": 9}))
    wrapped = gang_of("inner", pods - 1, labels={}) if kind == "raycluster" else job("inner", pods)
    wrapped.get("metadata", {}).pop("namespace", None)
    made = mcad("w", wrapped) if kind == "mcad" else app_wrapper("w", wrapped)
    asked = made if kind == "mcad" else created_by_none(made)
    before = len(world.api.history)
    found = answer(world, asked)
    assert len(world.api.history) == before
    assert (found["kind"], found["name"], found["queue"]) == ("AppWrapper", "w", "q")
    assert found["fits"] == ("Yes" if pods == 3 else "No"), found
    if pods == 3:
        assert sum(each["pods"] for each in found["placement"]) == 3
        return
    assert [each["fit"] for each in found["largestThatFit"]][-1] == (
        3 if kind == "raycluster" else 4
    )
    made["metadata"]["annotations"] = {names.CREATED_BY: '{"username": "ann"}'}
    world.create(made)
    world.settle(seconds=30)
    status = world.status("appwrapper-mcad.w" if kind == "mcad" else "appwrapper.w")
    assert (found["reason"], found["message"]) == (status["reason"], status["message"])


def test_app_wrappers_and_ray_clusters_of_one_file_are_judged_together() -> None:
    world = World(node("a", cpu=8))
    both = fit(reader_of(world), app_wrapper("w", job("j", 5)), gang_of("train", 4))
    assert [each["fits"] for each in answers(both)] == ["Yes", "No"]


DRAWN = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]


@pytest.mark.parametrize(
    ("wrapper", "fits", "reason", "said"),
    [
        (app_wrapper("w", config_map("c")), "Yes", "NotRequired", "no wrapped object has pods"),
        (app_wrapper("w", {"kind": "Job"}), "No", "PodsRefused", "apiVersion"),
        (app_wrapper("w", job("j", 9, nodeName="a")), "No", "PodsRefused", "spec.nodeName"),
        (app_wrapper("w", job("j", 1, volumes=DRAWN)), "Unknown", "", "is made for a pod that"),
        ({**app_wrapper("w"), "spec": {"components": 7}}, "No", "PodsRefused", "components"),
    ],
)
def test_what_of_an_app_wrapper_cannot_be_read_or_foreseen_is_said(
    wrapper: Json, fits: str, reason: str, said: str
) -> None:
    found = answer(World(node("a")), wrapper)
    assert (found["fits"], found["reason"]) == (fits, reason), found["message"]
    assert said in found["message"]


def test_a_suspended_app_wrapper_is_judged_with_a_note_and_one_that_exists_beside_itself() -> None:
    world = World(node("a", cpu=4))
    found = answer(world, app_wrapper("w", job("j", 2), suspend=True))
    assert found["fits"] == "Yes"
    assert found["notes"] == ["spec.suspend is true: judged as if it were resumed"]
    world.create(app_wrapper("w", job("j", 3)))
    world.settle(seconds=20)
    found = answer(world, app_wrapper("w", job("j", 2)))
    assert (found["fits"], found["reason"]) == ("No", "InsufficientResources")
    assert found["notes"] == ["AppWrapper team/w exists: judged as another one beside it"]


def test_a_tenant_may_ask_about_an_app_wrapper() -> None:
    found = answer(room(), app_wrapper("w", job("j", 2, gpu=8)), forbidden=TENANT)
    assert (found["fits"], found["reason"]) == ("No", "InsufficientResources")
    assert found["largestThatFit"][0]["fit"] == 1
    world = World(node("a", cpu=8))
    forbidden = (*TENANT, "limitranges", "resourcequotas", "runtimeclasses")
    found = answer(world, app_wrapper("w", job("j", 2)), nowhere=forbidden)
    assert found["fits"] == "Unknown", found["message"]


def test_a_class_that_cannot_be_read_is_not_called_missing() -> None:
    asked = ray_cluster("train", group("w", 1, priorityClassName="high", runtimeClassName="x"))
    rights = ("priorityclasses", "runtimeclasses")
    assert answer(World(node("a")), asked)["fits"] == "No"
    assert answer(World(node("a")), asked, forbidden=rights)["fits"] == "Yes"


OWN_QUEUE = {"forbidden": (*TENANT, "gangqueues"), "nowhere": ("deployments",)}


@pytest.mark.parametrize(
    ("parent", "spec", "workers", "fits", "said"),
    [
        ("", {}, 3, "Unknown", "queue q has quota for it; whether there is room"),
        ("", {}, 4, "No", "queue q uses 5 of its quota of 9 cpu and may take 4 more"),
        ("lab", {}, 3, "Unknown", "queue q has quota of its own for it; queue lab above it"),
        ("lab", {}, 4, "Unknown", "queue q has too little quota of its own; queue lab above it"),
        ("lab", {}, 12, "Unknown", "queue q has too little quota of its own; queue lab above it"),
        ("lab", {"borrowingLimit": {"cpu": 2}}, 6, "No", "queue q uses 5 of its quota of 9 cpu"),
        ("lab", {"quota": {}}, 6, "Unknown", "queue q has no quota of its own; queue lab above it"),
    ],
)
def test_a_tenant_that_may_get_its_own_queue_alone_is_answered_by_it(
    parent: str, spec: Json, workers: int, fits: str, said: str
) -> None:
    above = [queue("lab", quota={"cpu": 0})] if parent else []
    mine = queue("q", **{"quota": {"cpu": 9}, "parent": parent, **spec})
    world = World(node("a", cpu=32), *above, mine)
    world.create(gang_of("first", 4, annotations={names.QUEUE: "q"}))
    world.settle(seconds=60)
    asked = gang_of("train", workers, annotations={names.QUEUE: "q"})
    result = fit(reader_of(world, **OWN_QUEUE), asked)
    (found,) = answers(result)
    assert (found["fits"], found["message"][: len(said)]) == (fits, said)
    assert "not allowed to list gangqueues: only queue q is known" in result.stderr


def test_without_the_other_queues_the_answer_is_never_yes() -> None:
    """Gangs of other queues may come first, and those queues are not known."""
    asked = gang_of("train", 1, annotations={names.QUEUE: "q"})
    world = World(node("a", cpu=32), queue("q", quota={"cpu": 9}))
    assert answer(world, asked)["fits"] == "Yes"
    assert answer(world, asked, forbidden=("gangqueues",))["fits"] == "Unknown"


def test_of_a_queue_that_may_not_be_read_nothing_is_answered() -> None:
    asked = gang_of("train", 1, annotations={names.QUEUE: "q"})
    reader = reader_of(World(node("a"), queue("q")), nowhere=("gangqueues",))
    assert fit(reader, asked).exit_code == NOT_READ


def test_without_the_queues_nothing_is_answered() -> None:
    result = fit(reader_of(World(node("a")), forbidden=("gangqueues",)), gang_of("train", 1))
    assert (result.exit_code, result.stdout) == (NOT_READ, "")
    assert result.stderr == "Error: not allowed to list gangqueues\n"


# ---- whether it could be created


def switched(on: str) -> Json:
    """The coordinator's Deployment with AppWrappers switched on, or not."""
    env = [{"name": "MUSTER_COORDINATOR_APP_WRAPPERS", "value": on}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "muster-coordinator", "namespace": "muster-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "coordinator", "env": env}]}}},
    }


def with_deployment(world: World, found: Json) -> MemoryReader:
    """A reader that sees a Deployment, which no coordinator of a world watches."""
    return MemoryReader(lambda kind: [found] if kind == "deployments" else world.api.all(kind))


WRAPS_A_JOB = app_wrapper("w", job("j", 2), config_map("c"))


def test_a_right_that_its_caller_lacks_is_a_note() -> None:
    """It is judged all the same: an admin may ask for one who has it, without it."""
    reader = reader_of(World(node("a")))
    reader.lacking = ("create jobs.batch in namespace team",)
    result = fit(reader, WRAPS_A_JOB, gang_of("train", 1))
    (wrapper, cluster), code = answers(result), result.exit_code
    said = "you may not create jobs.batch in namespace team"
    assert wrapper["notes"] == [f"{said}: judged as if another user created it who may"]
    assert (wrapper["fits"], cluster["notes"], code) == ("Yes", [], FINE)


def test_a_right_to_the_object_itself_counts_too() -> None:
    reader = reader_of(World(node("a")))
    reader.lacking = ("create rayclusters.ray.io in namespace team",)
    ((note,),) = (each["notes"] for each in answers(fit(reader, gang_of("train", 1))))
    assert note.startswith("you may not create rayclusters.ray.io in namespace team")


@pytest.mark.parametrize(
    ("unserved", "said"),
    [
        ("AppWrapper", "the cluster does not serve AppWrapper of workload.codeflare.dev/v1beta2"),
        ("Job", "spec.components[0] (Job j): the cluster does not serve Job of batch/v1"),
    ],
)
def test_what_is_not_served_cannot_be_created(unserved: str, said: str) -> None:
    """And it takes no room from what can."""
    reader = reader_of(World(node("a", cpu=2)))
    reader.unserved = (unserved,)
    result = fit(reader, WRAPS_A_JOB, gang_of("train", 1))
    wrapper, cluster = answers(result)
    assert (wrapper["fits"], wrapper["reason"], wrapper["message"]) == ("No", "PodsRefused", said)
    assert (cluster["fits"], result.exit_code) == ("Yes", NO)


def test_what_has_no_namespace_cannot_be_wrapped() -> None:
    wrapper = app_wrapper("w", {**config_map("c"), "kind": "ClusterRole", "apiVersion": "x.io/v1"})
    found = answer(World(node("a")), wrapper)
    where = "spec.components[0] (ClusterRole c)"
    said = f"{where}: ClusterRole of x.io/v1 has no namespace; allowed: a kind that has one"
    assert (found["fits"], found["message"]) == ("No", said)


@pytest.mark.parametrize(("on", "fits"), [("true", "Yes"), ("false", "No")])
def test_an_app_wrapper_waits_for_ever_where_they_are_switched_off(on: str, fits: str) -> None:
    reader = with_deployment(World(node("a")), switched(on))
    wrapper, cluster = answers(fit(reader, WRAPS_A_JOB, gang_of("train", 1)))
    assert (wrapper["fits"], cluster["fits"]) == (fits, "Yes")
    assert ("the component app-wrapper" in wrapper["message"]) is (fits == "No")


def test_where_rights_are_not_told_a_note_says_so_once_for_each_object() -> None:
    reader = reader_of(World(node("a")))
    reader.mute = True
    result = fit(reader, WRAPS_A_JOB)
    assert [each["fits"] for each in answers(result)] == ["Yes"]
    said = "it does not say: it is not judged whether AppWrapper team/w can be created"
    assert result.stderr.splitlines()[-1] == f"Note: {said}"


# ---- input


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spec": None}, "RayCluster: spec: absent; allowed: an object"),
        ({"spec": []}, "RayCluster: spec: list; allowed: an object"),
        ({"spec": {"workerGroupSpecs": []}}, "RayCluster: spec.headGroupSpec: absent"),
        (
            {"spec": {"headGroupSpec": {}, "workerGroupSpecs": [{"replicas": "x"}]}},
            "cannot be read",
        ),
        ({"kind": "Deployment"}, "there is no object to judge"),
    ],
)
def test_bad_input_is_said_in_one_line(change: Json, said: str) -> None:
    result = fit(reader_of(World(node("a"))), {**gang_of("train", 1), **change})
    assert result.exit_code == WRONG_USE, result.output
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_other_objects_are_left_out_with_a_note() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    secret = {**other, "kind": "Secret"}
    result = fit(reader_of(World(node("a"))), gang_of("train", 1), other, secret, other, other)
    assert result.exit_code == FINE
    assert result.stderr.count("not judged") == 2
    assert "items[1]: ConfigMap and 2 more: not judged" in result.stderr
    assert "items[2]: Secret: not judged" in result.stderr


# ---- what people read


def test_the_table_names_the_nodes() -> None:
    world = World(*(node(f"n{at}", cpu=2) for at in range(8)))
    plain, wide = (
        fit(reader_of(world), gang_of("train", 12), output=form).stdout
        for form in ("table", "wide")
    )
    assert plain.splitlines()[0] == "RayCluster team/train: fits now (queue default)"
    assert "more" in plain
    assert all(f"n{at}" in wide for at in range(7))


def test_the_table_says_why_not_and_how_many_would() -> None:
    world = World(node("a", cpu=8), foreign_pod("other", "a", cpu=4))
    shown = fit(reader_of(world), gang_of("train", 4), output="table").stdout.splitlines()
    assert shown[0] == "RayCluster team/train: does not fit now (queue default, position 1)"
    assert shown[1].startswith("  InsufficientResources: 3 of 4 workers fit beside headgroup")
    assert shown[2] == "  workers: 3 of 4 replicas would fit, the rest as asked"


def test_yaml_and_json_say_the_same() -> None:
    world = World(node("a"))
    as_yaml = fit(reader_of(world), gang_of("train", 1), output="yaml").stdout
    as_json = fit(reader_of(world), gang_of("train", 1)).stdout
    assert yaml.safe_load(as_yaml) == msgspec.json.decode(as_json)
    assert GPU not in as_json


DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "ray.io"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "rayclusters",
                            "responseKind": {"kind": "RayCluster"},
                            "scope": "Namespaced",
                            "verbs": ["create"],
                        }
                    ],
                }
            ],
        }
    ],
}


async def test_no_write_reaches_the_api_server(tmp_path: Path) -> None:
    """Through the real client: GETs, dry runs, and what asks for the caller's rights.

    With an answer that fits and one that does not.
    """
    world, methods, dry = World(node("a", cpu=4)), list[str](), list[str]()
    reviews: list[Json] = []

    async def answered(request: web.Request) -> web.Response:
        if request.path.endswith("/selfsubjectaccessreviews"):
            reviews.append((await request.json())["spec"]["resourceAttributes"])
            return web.json_response({"status": {"allowed": True}}, status=201)
        if request.method == "POST" and request.query.get("dryRun") == "All":
            assert request.query["fieldValidation"] == "Strict"
            dry.append(request.path.rpartition("/")[2])
            return web.json_response(await request.json(), status=201)
        methods.append(request.method)
        if request.path in ("/api", "/apis"):
            return web.json_response(DISCOVERY)
        plural = request.path.rpartition("/")[2]
        if plural not in PLURALS.values():
            said = {"kind": "Status", "reason": "NotFound", "code": 404}
            return web.json_response(said, status=404)
        return web.json_response({"items": list(world.api.all(plural))})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answered)
    asked = tmp_path / "asked.json"
    async with TestServer(app, host="127.0.0.1") as server:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
            "current-context": "here",
        }
        path = tmp_path / "config"
        path.write_bytes(msgspec.json.encode(config))
        for workers, code in ((3, FINE), (4, NO)):
            asked.write_bytes(msgspec.json.encode(gang_of("train", workers)))
            command = ["fit", "-f", str(asked), "--kubeconfig", str(path)]
            done = await asyncio.to_thread(CliRunner().invoke, main, command)
            assert done.exit_code == code, done.output
            assert "can be created" not in done.stderr
    assert set(methods) == {"GET"}
    assert dry.count("rayclusters") == 2
    assert dry.count("pods") == 4
    asked_of = {"verb": "create", "group": "ray.io", "version": "v1", "resource": "rayclusters"}
    assert reviews == [{**asked_of, "namespace": TEAM, "name": ""}] * 2


# ---- what could not be created, and what is asked for many


@pytest.mark.parametrize("rights", [{}, {"forbidden": ("namespaces",)}])
def test_nothing_fits_in_a_namespace_that_is_not_there(rights: dict[str, tuple[str, ...]]) -> None:
    asked, other = gang_of("train", 2), gang_of("here", 2)
    asked["metadata"]["namespace"] = "typo"
    found = answers(fit(reader_of(World(node("a", cpu=4)), **rights), asked, other))
    assert [each["fits"] for each in found] == ["No", "Yes"], "what is not created takes no room"
    assert found[0]["message"] == "namespace typo does not exist"


def test_a_namespace_that_may_not_be_read_is_taken_to_be_there() -> None:
    reader = reader_of(World(node("a", cpu=4)), nowhere=("namespaces",))
    (found,) = answers(fit(reader, gang_of("train", 2)))
    assert found["fits"] == "Yes"


def test_whether_a_queue_selects_a_namespace_that_may_not_be_read_is_not_known() -> None:
    selects = {"matchLabels": {"team": "a"}}
    world = World(node("a", cpu=4), queue("q", namespaceSelector=selects))
    asked = gang_of("train", 2, annotations={names.QUEUE: "q"})
    (found,) = answers(fit(reader_of(world), asked))
    assert (found["fits"], found["reason"]) == ("No", "Misconfigured")
    (found,) = answers(fit(reader_of(world, nowhere=("namespaces",)), asked))
    assert (found["fits"], found["reason"]) == ("Unknown", "")
    assert found["message"].startswith("the labels of namespace team may not be read; without: ")


def test_each_object_with_a_generated_name_is_one_of_its_own() -> None:
    one, job_of = gang_of("train", 2), app_wrapper("train", job("work", pods=1))
    for each in (one, job_of):
        each["metadata"] = {**each["metadata"], "generateName": "train-"}
        del each["metadata"]["name"]
    done = fit(reader_of(World(node("a", cpu=32))), *map(copy.deepcopy, (one, one, job_of, job_of)))
    assert done.exit_code == FINE, done.stderr
    assert [each["name"] for each in answers(done)] == ["train-~", "train-~2"] * 2


def test_a_right_is_asked_for_once() -> None:
    reader, asked = reader_of(World(node("a", cpu=32))), list[str]()

    async def may(access: Access) -> bool:
        asked.append(str(access))
        return True

    reader.may = may  # type: ignore[method-assign]
    assert fit(reader, *(gang_of(f"t{at}", 1) for at in range(9))).exit_code == FINE
    assert len(asked) == len({*asked}) == 1


@pytest.mark.parametrize(("cpu", "fits"), [(4, "Yes"), (3, "No")])
def test_gangs_that_start_together_fit_together_or_not_at_all(cpu: int, fits: str) -> None:
    """Also beside a ResourceQuota: their starts will be held, so that nothing of it is used."""
    said = {names.TOGETHER: "pair", names.TOGETHER_SIZE: "2"}
    world = QuotaWorld(4, node("a", cpu=cpu))
    pair = [gang_of(each, 1, annotations=said) for each in ("train", "feed")]
    assert [each["fits"] for each in answers(fit(reader_of(world), *pair))] == [fits, fits]
    alone = answer(world, pair[0])
    assert (alone["fits"], alone["reason"]) == ("No", "WaitsForMembers")
