"""The answer of `muster fit` is that of the gang once it is created."""

import pytest

from cli.endings import FINE, NO, NOT_READ
from cli.read.dry_created import Answer, DryCreated
from kube.objects import names
from tests.cli.fitting.asked import queue
from tests.cli.fitting.created import asked_and_created
from tests.cli.fitting.reader import answer, answers, fit, reader_of
from tests.coordinator.builders import (
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


@pytest.mark.parametrize(("cpu", "fits"), [(4, "Yes"), (3, "No")])
def test_gangs_that_start_together_fit_together_or_not_at_all(cpu: int, fits: str) -> None:
    """Also beside a ResourceQuota: their starts will be held, so that nothing of it is used."""
    said = {names.TOGETHER: "pair", names.TOGETHER_SIZE: "2"}
    world = QuotaWorld(4, node("a", cpu=cpu))
    pair = [gang_of(each, 1, annotations=said) for each in ("train", "feed")]
    assert [each["fits"] for each in answers(fit(reader_of(world), *pair))] == [fits, fits]
    alone = answer(world, pair[0])
    assert (alone["fits"], alone["reason"]) == ("No", "WaitsForMembers")
