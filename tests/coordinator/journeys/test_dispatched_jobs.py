"""RayJobs and RayServices that other clusters run: each is a gang here, and a job ends for good."""

from typing import Any

import msgspec
import pytest

from kube.objects import names
from kube.objects.clusters.dispatch import is_its_turn
from kube.objects.gang import GangStatus
from tests.coordinator import ray_jobs
from tests.coordinator.builders import Json
from tests.coordinator.dispatches import closed, dispatch, manager, runs, said, used
from tests.coordinator.journeys.queues.worlds import gang_in
from tests.coordinator.world import World

GANG = "rayjob.a"


def job(**spec: Any) -> Json:
    return ray_jobs.ray_job("a", gang_in("far", "a", 1), managedBy=names.MANAGED_ELSEWHERE, **spec)


def service() -> Json:
    cluster = gang_in("far", "a", 1)
    made = ray_jobs.ray_job("a", cluster)
    spec = {"rayClusterConfig": cluster["spec"], "managedBy": names.MANAGED_ELSEWHERE}
    return {**made, "kind": "RayService", "spec": spec}


def its_turn(world: World, name: str = GANG) -> bool:
    return is_its_turn(msgspec.convert(world.status(name), GangStatus))


@pytest.mark.parametrize(
    ("made", "gang"), [(job(), GANG), (service(), "rayservice.a")], ids=["job", "service"]
)
def test_it_is_a_gang_that_takes_quota_and_runs_where_the_dispatcher_says(
    made: Json, gang: str
) -> None:
    world = manager(made)
    (owner,) = world.gang(gang)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == (made["kind"], "a")
    assert said(world, gang)[0] == "QuotaReserved"
    assert its_turn(world, gang)
    assert used(world) == {"cpu": "2000m"}
    runs(world, gang)
    assert said(world, gang) == ("Running", "Running")
    assert not list(world.api.all("rayclusters"))


@pytest.mark.parametrize("end", ["JobComplete", "JobFailed", "JobGone"])
def test_a_job_that_ended_gives_its_quota_back_and_is_never_sent_again(end: str) -> None:
    world = manager(job(), replicas=2)
    runs(world, GANG)
    dispatch(world, GANG, phase="Closed", end=end, message=f"east: {end}: it has ended")
    assert said(world, GANG) == ("Finished", "JobEnded")
    assert end in world.status(GANG)["message"]
    assert used(world) in ({}, {"cpu": "0m"})
    world.settle(seconds=100)
    assert not its_turn(world)
    world.elect(1)
    world.settle(seconds=100)
    assert not its_turn(world)
    assert said(world, GANG)[0] == "Finished"


def test_one_whose_status_says_that_it_ended_is_not_sent_though_its_gang_was_deleted() -> None:
    ended = job()
    world = manager(ended)
    runs(world, GANG)
    found = ray_jobs.job_of(world.api, "a")
    world.api.change(found, lambda obj: obj["status"].update(jobDeploymentStatus="Complete"))
    world.settle(seconds=5)
    assert said(world, GANG)[0] == "Running"  # its RayCluster may be there still
    world.delete("gangs", GANG)
    world.settle(seconds=100)
    assert not its_turn(world)


def test_a_job_that_its_member_gave_back_waits_for_its_turn() -> None:
    world = manager(job())
    runs(world, GANG)
    closed(world, GANG, "east: Stopped: preempted by another")
    assert its_turn(world)
    assert "it is back from cluster east" in world.status(GANG)["message"]


def test_one_that_is_suspended_while_it_waits_has_no_quota() -> None:
    world = manager(job(suspend=True))
    assert said(world, GANG)[1] == "Suspended"
    assert used(world) in ({}, {"cpu": "0m"})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"clusterSelector": {"ray.io/cluster": "b"}}, "spec.clusterSelector"),
        ({"submissionMode": "SidecarMode"}, "spec.submissionMode"),
    ],
)
def test_what_cannot_be_sent_says_why(spec: Json, message: str) -> None:
    world = manager(job(**spec))
    assert said(world, GANG)[1] == "Misconfigured"
    assert message in world.status(GANG)["message"]
    assert not its_turn(world)
