"""GangOffers in a world in memory, and the steps of the cluster that asks."""

from typing import Any

from kube.objects import names
from tests.coordinator.api import Key, stamp_at
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.world import World

MANAGER = "uid-of-the-manager"


def offer(name: str, cluster: Json, attempt: int = 1, **spec: object) -> Json:
    """A GangOffer that asks for a RayCluster."""
    meta = cluster["metadata"]
    template = {
        "apiVersion": cluster["apiVersion"],
        "kind": cluster["kind"],
        "name": meta["name"],
        "labels": meta["labels"],
        "annotations": meta["annotations"],
        "spec": cluster["spec"],
    }
    asked = {"manager": MANAGER, "uid": f"uid-of-{name}", "attempt": attempt, "template": template}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GangOffer",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {**asked, **spec},
    }


def member(*objects: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A member with one node, which has been asked already."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(*objects)
    world.settle(seconds=5)
    return world


def offer_of(world: World, name: str = "a-1") -> Json:
    return world.api.get(Key("gangoffers", TEAM, name))


def answer(world: World, name: str = "a-1") -> Any:
    """The status of a GangOffer."""
    return offer_of(world, name).get("status") or {}


def accept(world: World, name: str = "a-1", term: int = 1) -> None:
    """Accept an offer as it was read."""
    found = offer_of(world, name)
    meta = found["metadata"]
    world.api.patch(
        Key("gangoffers", TEAM, name),
        [
            {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
            {"op": "add", "path": "/spec/acceptedBy", "value": term},
        ],
    )


def let_stop(world: World, seconds: float = 300.0, name: str = "a-1") -> None:
    """Let gangs be stopped for an offer for a time."""
    until = stamp_at(world.api.now + seconds)
    change = [{"op": "add", "path": "/spec/mayStopGangsUntil", "value": until}]
    world.api.patch(Key("gangoffers", TEAM, name), change)


def created_for(world: World, cluster: Json, name: str = "a-1") -> Json:
    """The RayCluster that is created for an offer."""
    uid = offer_of(world, name)["metadata"]["uid"]
    owner = {"apiVersion": names.API_VERSION, "kind": "GangOffer", "name": name, "uid": uid}
    made = {**cluster, "metadata": {**cluster["metadata"], "ownerReferences": [owner]}}
    if cluster["kind"] != "RayCluster":
        noted = {**made["metadata"]["annotations"], names.MADE_FOR: f"{name}/{uid}"}
        made["metadata"] = {**made["metadata"], "annotations": noted}
    return made


def lease(term: int) -> Json:
    """What the manager's newest leader has written on the member."""
    meta = {"name": f"{names.DISPATCHER_LEASE}-{MANAGER}", "namespace": names.DEFAULT_NAMESPACE}
    return {"kind": "Lease", "metadata": meta, "spec": {"leaseTransitions": term}}


def started(workers: int = 3, *, cpu: int = 4, replicas: int = 1) -> World:
    """A member on which an offer was accepted, and its RayCluster runs."""
    world = member(offer("a-1", gang_of("a", workers)), cpu=cpu, replicas=replicas)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", workers)))
    world.settle(seconds=5)
    return world
