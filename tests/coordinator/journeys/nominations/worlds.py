"""Worlds with nominations, for the journeys beside it."""

from typing import Any

from coordinator.gang.assumed_pods import assumed_claims
from coordinator.gang.nominations import Guard
from coordinator.messages.actions import NominatePod
from coordinator.state.cycle.run_cycle import existing_pods
from coordinator.state_machine import CoordinatorState
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World, is_gated, name_of

SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"ray.io/node-type": "worker"}},
        }
    ]
}


def nominate(world: World, pod: Json, where: str) -> None:
    """Have others, or an earlier leader, write the field."""
    world.api.change(pod, lambda obj: obj["status"].update(nominatedNodeName=where))


def slots_by_name(state: CoordinatorState) -> dict[str, str]:
    """The node of each pod that has a slot and is not bound."""
    return {pod.name: node for pod, node in promised(state) if not pod.node}


def promised(state: CoordinatorState) -> list[tuple[ObservedPod, str]]:
    standing = [each for view in state.known.views.values() for each in view.survey.standing]
    given = [pair for each in standing for pair in each.with_slot]
    return [*given, *((pod, pod.settled_on) for each in standing for pod in each.settled)]


def taken(state: CoordinatorState) -> list[object]:
    """Everything of others that a verdict counts: room, pods, disks, claims, quota."""
    cache, index = state.known.cache, state.known.cache.pod_index
    assumed = existing_pods(state.known)
    return [
        {node: dict(used) for node, used in cache.table._used.items() if used},
        {priority: dict(sums) for priority, sums in cache.table._nominated.items()},
        {where: dict(kinds) for where, kinds in index._nodes.items()},
        dict(index._anti_affinity),
        dict(index._nominated),
        {kinds: dict(nodes) for kinds, nodes in assumed._assumed.items()},
        dict(assumed._assumed_anti_affinity),
        dict(cache.storage._mounted),
        dict(cache.storage._users),
        sorted(key for view in state.known.views.values() for key in assumed_claims(view)),
        state.known.quota.gangs,
    ]


# ---- what is written


def guarded(*nodes: Json, **more: Any) -> World:
    return World(*nodes, guard=Guard.NOMINATION, **more)


def nominations(world: World, cluster: str = "") -> list[tuple[str, str]]:
    """Pod and node of every nomination that was asked for so far, of all gangs or of one."""
    asked = [each for each in world.leader.log if isinstance(each, NominatePod)]
    return [(a.pod.metadata.name, a.node) for a in asked if cluster in ("", a.gang.name)]


def field_of(world: World, name: str) -> str:
    status: Json = world.api.get(Key("pods", TEAM, name))["status"]
    return str(status.get("nominatedNodeName", ""))


def pass_time(world: World, seconds: float) -> None:
    world.api.now += seconds
    world.leader.tick()


# ---- room that is being made


def with_a_plan(guard: Guard = Guard.NOMINATION) -> World:
    """Gang v ends for p, which waits; the kubelets take their time."""
    world = World(
        node("n1", cpu=4),
        queue("team", preemption={"withinQueue": "LowerPriority"}),
        guard=guard,
        replicas=2,
    )
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world.create(gang_of("v", 3, labels=labels))
    world.settle(seconds=10)
    world.kubelets = lambda: None  # type: ignore[method-assign]
    workers = group("workers", 3, priority=10)
    world.create(ray_cluster("p", workers, head=template(priority=10), labels=labels))
    world.settle(seconds=5)
    old = [pod for pod in world.pods("v") if not is_gated(pod)]
    assert ["deletionTimestamp" in pod["metadata"] for pod in old] == [True] * 4
    assert "placement" not in world.status("p")
    return world


def go_on(world: World) -> None:
    """Have the kubelets work again, and everything come to rest."""
    world.kubelets = lambda: World.kubelets(world)  # type: ignore[method-assign]
    world.settle(seconds=20)


def fields(world: World, cluster: str) -> set[str]:
    return {field_of(world, name_of(pod)) for pod in world.pods(cluster)}
