"""Worlds with submitters of RayJobs, for the journeys beside it."""

from typing import Any

from tests.coordinator.builders import (
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    node,
)
from tests.coordinator.ray_jobs import job_of, ray_job
from tests.coordinator.world import World


def submitted(name: str, workers: int, **spec: Any) -> Json:
    """A RayJob whose gang takes a CPU for each pod; its submitter takes half a one by default."""
    return ray_job(name, gang_of("", workers), **{"submitterPodTemplate": None, **spec})


def world_with(*nodes: Json, jobs: tuple[Json, ...] = ()) -> World:
    world = World(*nodes)
    world.create(*jobs)
    world.settle(seconds=5)
    return world


def say(world: World, state: str, name: str = "job") -> None:
    """Have KubeRay say how far the RayJob is."""
    said = {"jobDeploymentStatus": state}
    world.api.change(job_of(world.api, name), lambda obj: obj["status"].update(said))


def bind_submitter(world: World, on: str, cpu: str = "500m", job: str = "job") -> None:
    """Have the pod of the Job that KubeRay makes be bound."""
    pod = foreign_pod(f"{job}-x", on, cpu=cpu)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "u", "controller": True}
    pod["metadata"] |= {"namespace": TEAM, "ownerReferences": [owner]}
    world.create(pod)


def kept_on(world: World) -> dict[str, str]:
    """On which node room is kept for the submitter of each gang."""
    stays = world.leader.state.known.submitter_room._stays
    return {key.name: each.node for key, each in stays.items()}


def running(*more: Json) -> World:
    """The gang of a RayJob has 3 of 4 CPUs of a node, and its submitter is to come."""
    world = world_with(node("n1", cpu=4), *more, jobs=(submitted("job", 2),))
    assert world.bound("job-1") == {"n1": 3}
    return world


def has_room_for_another(world: World) -> bool:
    """Whether a gang of one CPU starts now."""
    world.create(gang_of("b", 0))
    world.settle(seconds=5)
    return bool(world.bound("b"))
