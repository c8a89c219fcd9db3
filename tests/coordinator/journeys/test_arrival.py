"""A gang arrives with the RayJob or RayService that made its RayCluster."""

from collections import deque

import pytest

from scheduling.model.gang import PendingGang
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node
from tests.coordinator.ray_jobs import fail, job_of, owned_by, ray_job, ray_service
from tests.coordinator.replica import WALL
from tests.coordinator.stopping import parts
from tests.coordinator.world import World, key


def phase(world: World, name: str) -> str:
    return str(world.status(name)["phase"])


def asked_since(world: World, name: str) -> float:
    """Since when a gang waits, in seconds since the world began."""
    asked = world.leader.state.known.views[key(name)].queueing.asked
    assert isinstance(asked, PendingGang)
    return asked.created - WALL


def test_a_retry_of_a_rayjob_waits_in_the_place_of_the_first_try() -> None:
    world = World(node("n1", cpu=4), foreign_pod("other", "n1", cpu=4))
    world.create(ray_job("job", gang_of("", 3), backoffLimit=1))
    world.settle(seconds=10)
    world.create(gang_of("later", 3))
    world.settle(seconds=10)
    fail(world.api, "job")
    world.settle(seconds=10)
    assert [world.status(each)["position"] for each in ("job-2", "later")] == [1, 2]
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=10)
    assert [phase(world, each) for each in ("job-2", "later")] == ["Running", "Queued"]


def test_a_version_of_a_rayservice_waits_in_the_place_of_the_rayservice() -> None:
    world = World(node("n1", cpu=4))
    world.create(ray_service("serve"))
    service = world.api.get(Key("rayservices", TEAM, "serve"))
    world.create(gang_of("first", 3))
    world.settle(seconds=10)
    world.create(gang_of("second", 3))
    world.settle(seconds=10)
    world.create(owned_by(service, gang_of("version", 3)))
    world.settle(seconds=10)
    assert [world.status(each)["position"] for each in ("second", "version")] == [1, 2]
    named = {"pendingServiceStatus": {"rayClusterName": "version"}}
    world.api.change(service, lambda obj: obj["status"].update(named))
    world.settle(seconds=10)
    assert [world.status(each)["position"] for each in ("version", "second")] == [1, 2]


def test_an_owner_that_is_seen_late_or_goes_away_moves_its_gang() -> None:
    world = World(node("n1", cpu=1))
    world.create(ray_job("job", gang_of("", 2)))
    world.kuberay()
    world.api.now = 60.0
    world.controllers()  # the RayCluster is made a minute after the RayJob
    leader, held = world.leader, world.leader.watch.queues["rayjobs"]
    seen, leader.watch.queues["rayjobs"] = held, deque()
    world.settle(seconds=1)
    assert asked_since(world, "job-1") == 60.0
    leader.watch.queues["rayjobs"] = seen
    leader.hear("rayjobs")
    assert asked_since(world, "job-1") == 0.0
    world.api.remove(Key("rayjobs", TEAM, "job"))
    leader.hear("rayjobs")
    assert asked_since(world, "job-1") == 60.0


@pytest.mark.parametrize(
    "change",
    [{"uid": "another"}, {"kind": "RayCronJob"}, {"controller": False}, {"name": "other"}],
)
def test_a_reference_to_no_such_owner_leaves_the_time_of_the_raycluster(
    change: dict[str, object],
) -> None:
    world = World(node("n1", cpu=1))
    world.create(ray_job("job", gang_of("", 2)))
    world.kuberay()
    world.api.now = 60.0
    cluster = owned_by(job_of(world.api, "job"), gang_of("forged", 2))
    cluster["metadata"]["ownerReferences"][0].update(change)
    world.create(cluster)
    world.leader.hear_all()
    found = next(
        c for c in world.leader.state.known.cache.sources.values() if c.metadata.name == "forged"
    )
    assert world.leader.state.known.cache.owners.arrived_at(found) == WALL + 60.0


def test_a_reference_to_an_owner_that_names_another_raycluster_lends_neither_age_nor_shelter() -> (
    None
):
    world = World(node("n1", cpu=4))
    world.create(ray_job("job", gang_of("", 1)))
    world.settle(seconds=60)
    world.api.change(
        job_of(world.api, "job"), lambda obj: obj["status"].update(jobDeploymentStatus="Running")
    )
    world.create(owned_by(job_of(world.api, "job"), gang_of("forged", 1)))
    world.settle(seconds=10)
    owners = world.leader.state.known.cache.owners
    found = world.leader.state.known.cache.sources[key("forged")]
    assert owners.arrived_at(found) == WALL + 60.0
    assert parts(world, "job-1")[0].kept_because.startswith("RayJob job would be lost")
    assert parts(world, "forged")[0].kept_because == ""
