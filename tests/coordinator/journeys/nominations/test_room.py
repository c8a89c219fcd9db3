"""Nominations and the room that they take in the cache."""

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.messages.actions import NominatePod
from coordinator.state_machine import CoordinatorState
from scheduling.model.gang import GangKey
from tests.coordinator.builders import (
    TEAM,
    Json,
    affinity_to,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.deeds import apart, decided, in_zones
from tests.coordinator.journeys.nominations.worlds import SPREAD, nominate, slots_by_name, taken
from tests.coordinator.journeys.test_volumes import claim, mounts, volume
from tests.coordinator.validate import validate
from tests.coordinator.world import World, is_gated, name_of

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"x": "y"}}}
        ]
    }
}
PORT = {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 99}]}]}
KINDS: dict[str, Json] = {
    "plain": {},
    "apart": {"affinity": APART},
    "together": {"affinity": affinity_to("a")},
    "mounting": mounts(),
    "spread": SPREAD,
    "with a port": PORT,
}


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3),
    workers=st.integers(1, 3),
    sent=st.integers(0, 6),
    left_out=st.integers(0, 3),
)
@pytest.mark.long
def test_room_terms_and_storage_are_the_same_with_nominations_that_repeat_placements(
    kinds: list[str], workers: int, sent: int, left_out: int
) -> None:
    """Of gangs of all sorts, some of whose pods are released, and some of them bound."""
    zones = ((f"n{i}", f"z{i % 2}") for i in range(4))
    world = World(
        *(node(name, cpu=4, labels={"zone": zone}) for name, zone in zones), claim(), volume()
    )
    for name, kind in zip("abc", kinds, strict=False):
        world.create(ray_cluster(name, group("workers", workers, **KINDS[kind])))
    decided(world)
    leader = world.leader
    for _ in range(min(sent, len(leader.todo))):
        leader.act()
    if sent > 3:
        world.schedule()
        leader.hear_all()
        world.api.now += 1.0
        leader.tick()  # has the gangs looked at whose pods went on as decided
    before, where = taken(leader.state), slots_by_name(leader.state)
    for pod in sorted(world.pods(), key=name_of)[left_out:]:
        if name_of(pod) in where:
            nominate(world, pod, where[name_of(pod)])
    leader.hear_all()
    assert slots_by_name(leader.state) == where
    assert taken(leader.state) == before


def test_a_nomination_elsewhere_takes_room_there_until_it_is_taken_back() -> None:
    """kube-scheduler counts it, so a pod that was released there would be refused."""
    world = World(node("n1", cpu=2))
    world.create(ray_cluster("big", group("workers", 3), created=1))
    world.create(ray_cluster("small", group("workers", 1), created=2))
    world.kuberay()
    nominate(world, world.pods("big")[0], "n1")
    leader = world.leader
    leader.hear_all()
    for _ in range(3):
        leader.act_all_but(NominatePod)
        leader.cycle()
    assert leader.state.known.views[GangKey(TEAM, "small")].reservation.placement is None
    [asked] = leader.todo
    assert isinstance(asked, NominatePod)
    assert asked.node == ""
    world.settle(seconds=5)
    assert world.bound("small") == {"n1": 2}


def test_pods_get_the_slots_that_they_are_nominated_to() -> None:
    """Two workers that could change places are nominated the other way round."""
    world = World(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=2))
    world.create(ray_cluster("a", group("workers", 2), head=template(cpu=2)))
    decided(world)
    state = world.leader.state
    first, second = (pod for pod in world.pods("a") if "workers" in name_of(pod))
    where = slots_by_name(state)
    assert {where[name_of(first)], where[name_of(second)]} == {"n1", "n2"}
    crossed = {name_of(first): where[name_of(second)], name_of(second): where[name_of(first)]}
    world.leader.todo.clear()
    state.known.views[next(iter(state.known.views))].pod_writes.targets.clear()
    for pod in (first, second):
        nominate(world, pod, crossed[name_of(pod)])
    world.leader.hear_all()
    assert slots_by_name(state).items() >= crossed.items()
    validate(state)


def test_the_pod_of_a_later_wave_that_is_nominated_is_bound_like_others() -> None:
    world = in_zones()
    world.create(apart(1))
    decided(world)
    [head] = [pod for pod in world.pods("a") if "workers" not in name_of(pod)]
    nominate(world, head, "h1")
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    assert Counter(world.bound("a")) == {"h1": 1, "w1": 1}
    assert not any(is_gated(pod) for pod in world.pods("a"))


def test_a_nominated_pod_that_is_being_deleted_takes_room_beside_its_slot() -> None:
    """Its slot is for its replacement, and kube-scheduler counts both."""
    world = in_zones(cpu=4)
    world.create(apart(1))
    decided(world)
    [head] = [pod for pod in world.pods("a") if "workers" not in name_of(pod)]
    nominate(world, head, "h1")
    world.leader.hear_all()
    used = partial(_cpu_on, world.leader.state, "h1")
    assert used() == 1000
    world.api.change(head, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    assert used() == 2000


def _cpu_on(state: CoordinatorState, name: str) -> Any:
    return state.known.cache.table._used[name]["cpu"]
