"""What a RayJob or RayService means for the wait of its gang is told: on the Gang, and on it."""

from typing import Any

import pytest

from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node
from tests.coordinator.ray_jobs import job_of, owned_by, ray_job, ray_service
from tests.coordinator.world import World


def with_job(**spec: Any) -> World:
    """The gang of a RayJob that began at once waits for room."""
    world = World(node("n1", cpu=4))
    world.create(foreign_pod("other", "n1", cpu=2))
    world.create(ray_job("job", gang_of("", 3), **spec))
    began = {"startTime": world.api._stamp()}
    world.api.change(job_of(world.api, "job"), lambda obj: obj["status"].update(began))
    world.settle(seconds=10)
    assert world.status("job-1")["phase"] == "Queued"
    return world


def warnings(world: World) -> list[tuple[str, str]]:
    """On which object a deadline was warned of, and what was said."""
    told = [each for each in world.leader.echoed if each.reason == "DeadlineNear"]
    return [(str(each.regarding and each.regarding.kind), each.message) for each in told]


@pytest.mark.parametrize("field", ["activeDeadlineSeconds", "preRunningDeadlineSeconds"])
def test_a_deadline_is_said_at_once_and_warned_of_once_before_it(field: str) -> None:
    world = with_job(**{field: 400})
    said = f"its {field} of 400 s runs while the gang waits"
    assert said in world.status("job-1")["message"]
    world.settle(seconds=280)
    assert warnings(world) == []
    world.settle(seconds=100)
    ((kind, message),) = warnings(world)
    assert (kind, said in message) == ("RayJob", True)


def test_the_first_of_two_deadlines_is_told() -> None:
    world = with_job(activeDeadlineSeconds=900, preRunningDeadlineSeconds=300)
    assert "preRunningDeadlineSeconds of 300 s" in world.status("job-1")["message"]


def test_a_gang_that_runs_is_not_warned() -> None:
    world = with_job(activeDeadlineSeconds=400)
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=500)
    assert world.status("job-1")["message"] == "the minimum is ready"
    assert warnings(world) == []


def test_a_job_without_a_deadline_says_nothing_of_one() -> None:
    assert "RayJob" not in with_job().status("job-1")["message"]


def test_why_it_waits_is_told_on_the_rayjob_too() -> None:
    world = with_job()
    told = {(str(e.regarding and e.regarding.kind), e.reason) for e in world.leader.echoed}
    assert ("RayJob", "InsufficientResources") in told


def test_the_next_version_of_a_rayservice_says_what_keeps_its_room() -> None:
    world = World(node("n1", cpu=6))
    world.create(ray_service("serve"))
    service = world.api.get(Key("rayservices", TEAM, "serve"))
    world.create(owned_by(service, gang_of("one", 3)))
    say(world, activeServiceStatus="one")
    world.settle(seconds=5)
    assert world.bound("one") == {"n1": 4}
    world.create(owned_by(service, gang_of("two", 3)))
    say(world, activeServiceStatus="one", pendingServiceStatus="two")
    world.settle(seconds=5)
    said = "RayService serve keeps RayCluster one until this version is ready"
    assert said in world.status("two")["message"]
    assert said not in world.status("one")["message"]
    say(world, activeServiceStatus="two")
    world.delete("rayclusters", "one")
    world.settle(seconds=5)
    assert world.status("two")["message"] == "the minimum is ready"


def test_an_owner_that_does_not_name_the_raycluster_says_nothing() -> None:
    """Anyone can write a reference to a RayService of others."""
    world = World(node("n1", cpu=6))
    world.create(ray_service("serve"))
    service = world.api.get(Key("rayservices", TEAM, "serve"))
    world.create(owned_by(service, gang_of("one", 3)))
    say(world, activeServiceStatus="one")
    world.settle(seconds=5)
    world.create(owned_by(service, gang_of("forged", 3)))
    world.settle(seconds=5)
    assert "RayService" not in world.status("forged")["message"]
    assert not [e for e in world.leader.echoed if e.regarding and e.regarding.kind == "RayService"]


def say(world: World, **versions: str) -> None:
    """Have KubeRay name the RayClusters of the versions."""
    service = world.api.get(Key("rayservices", TEAM, "serve"))
    named = {version: {"rayClusterName": name} for version, name in versions.items()}
    said = {"pendingServiceStatus": {}, **named}
    world.api.change(service, lambda obj: obj["status"].update(said))


@pytest.mark.parametrize("began", ["9999-12-31T23:59:59Z", "soon", "2016-12-31T23:59:60Z"])
@pytest.mark.parametrize("seconds", [-5, 2**31 - 1, 10**12])
def test_a_deadline_that_no_calendar_has_is_none(began: str, seconds: int) -> None:
    """It ended the coordinator, and the next one."""
    world = World(node("n1", cpu=4))
    world.create(foreign_pod("other", "n1", cpu=2))
    world.create(ray_job("job", gang_of("", 3), activeDeadlineSeconds=seconds))
    job = job_of(world.api, "job")
    world.api.change(job, lambda obj: obj["status"].update(startTime=began))
    world.settle(seconds=10)
    assert world.status("job-1")["phase"] == "Queued"
    assert warnings(world) == []


@pytest.mark.parametrize("state", ["Failed", "Complete"])
def test_the_gang_of_a_rayjob_that_ended_before_it_started_is_not_started(state: str) -> None:
    """KubeRay leaves the RayCluster, on which nothing would ever run."""
    world = with_job(activeDeadlineSeconds=400)
    state_of(world, state)
    world.settle(seconds=500)
    status = world.status("job-1")
    assert (status["phase"], status["reason"]) == ("Finished", "JobEnded")
    assert status.get("position", 0) == 0
    assert not world.leader.state.known.term.counts.without_room
    assert f"RayJob job has ended ({state})" in status["message"]
    assert "KubeRay ends" not in status["message"]
    assert warnings(world) == []
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=100)
    assert world.bound("job-1") == {}


def test_a_gang_that_runs_when_its_rayjob_ends_goes_on() -> None:
    """What becomes of its RayCluster then KubeRay says: a person may still look at it."""
    world = with_job()
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=10)
    state_of(world, "Complete")
    world.settle(seconds=10)
    world.api.remove(key_of(world.pods("job-1")[-1]))
    world.settle(seconds=10)
    assert world.bound("job-1") == {"n1": 4}
    assert world.status("job-1")["message"] == "the minimum is ready"


def state_of(world: World, state: str) -> None:
    """Have KubeRay say how far the RayJob is."""
    said = {"jobDeploymentStatus": state}
    world.api.change(job_of(world.api, "job"), lambda obj: obj["status"].update(said))
