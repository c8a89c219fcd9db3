"""Deeds that several tests have done in a world, and worlds in which they begin."""

from typing import Any

from coordinator.messages.actions import ReleasePod
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, affinity_to, group, node, ray_cluster, template
from tests.coordinator.world import World


def decided(world: World) -> None:
    """Bring everything to where the releases are asked for, and none was sent."""
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    leader.act_all_but(ReleasePod)


def opt(world: World, value: str, name: str = "a") -> None:
    """Have a user label a Ray cluster."""
    cluster = world.api.get(Key("rayclusters", TEAM, name))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].update({names.OPT_IN: value}))


def annotate(world: World, name: str, **annotations: str) -> None:
    """Have a user set the annotations of a Ray cluster, and drop all others."""
    cluster = world.api.get(Key("rayclusters", TEAM, name))
    world.api.change(cluster, lambda obj: obj["metadata"].update(annotations=annotations))


def slots(world: World) -> int:
    """How many pods the placement that is written holds."""
    sets = world.status("a")["placement"]["podSets"]
    return sum(sum(each["nodes"].values()) for s in sets for each in s["assignments"])


def zone(name: str, *, cpu: int = 2) -> Json:
    return node(name, cpu=cpu, labels={"zone": name[0]})


def apart(workers: int = 1, **more: Any) -> Json:
    """A head in zone h, and workers in zone w with affinity to the cluster's pods."""
    workers_with_affinity = group(
        "workers", workers, affinity=affinity_to("a"), nodeSelector={"zone": "w"}
    )
    return ray_cluster(
        "a", workers_with_affinity, head=template(nodeSelector={"zone": "h"}), **more
    )


def in_zones(**more: int) -> World:
    return World(zone("h1"), zone("w1", **more))
