"""The slot of a lost pod is given up when its replacement comes in another shape."""

from typing import Any

import pytest

from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.deeds import slots
from tests.coordinator.world import World, name_of

Json = dict[str, Any]


def running(*nodes: Json, **more: Any) -> World:
    """A gang of a head and two workers of 1 CPU, all of them ready."""
    world = World(*nodes)
    world.create(gang_of("a", 2, **more))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    return world


def changed(world: World, replicas: int = 2, hosts: int = 1, **pod: Any) -> None:
    """Give the workers another template; those that run stay as they are."""
    world.edit("a", workerGroupSpecs=[group("workers", replicas, hosts=hosts, **pod)])


def lost(world: World, at: int = -1) -> str:
    """Take a worker away; return the node that it was on."""
    workers = [pod for pod in world.pods("a") if "workers" in name_of(pod)]
    world.api.remove(key_of(workers[at]))
    return str(workers[at]["spec"]["nodeName"])


@pytest.mark.parametrize("cpu", ["500m", "2"])
def test_it_is_asked_for_and_the_slot_is_given_up(cpu: str) -> None:
    world = running(node("n1", cpu=8))
    changed(world, cpu=cpu)
    lost(world)
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert world.status("a")["reason"] == "Running"
    assert slots(world) == 3


def test_what_the_slot_kept_is_room_for_the_replacement() -> None:
    world = running(node("n1", cpu=3))
    changed(world, cpu="500m")
    lost(world)
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}


def test_a_replacement_that_does_not_fit_is_said_and_holds_nothing() -> None:
    world = running(node("n1", cpu=3))
    changed(world, cpu=2)
    lost(world)
    world.settle(seconds=60)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "InsufficientResources")
    assert slots(world) == 2
    world.create(ray_cluster("b"))
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 1}


def test_a_slot_is_kept_for_a_pod_that_is_still_to_come() -> None:
    """Two were lost, one came back otherwise: one slot may still be the other one's."""
    world = running(node("n1", cpu=8))
    changed(world, cpu=2)
    lost(world)
    lost(world)
    world.leader.hear_all()
    world.kuberay()
    workers = [pod for pod in world.pods("a") if "workers" in name_of(pod)]
    world.api.remove(key_of(workers[-1]))
    world.leader.hear_all()
    [view] = world.leader.state.known.views.values()
    [standing] = [each for each in view.survey.standing if each.terms.name == "workers"]
    assert (len(standing.waiting), standing.vacant, standing.missing) == (1, 1, 1)


def test_all_of_a_gang_that_waits_for_its_release_are_decided_anew_in_their_new_shape() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    changed(world, cpu="500m")
    world.api.remove(key_of(next(pod for pod in world.pods("a") if "workers" in name_of(pod))))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert slots(world) == 3


def recreated(world: World, cpu: str) -> None:
    """Change the template with `upgradeStrategy: Recreate`: KubeRay deletes all pods at once."""
    changed(world, cpu=cpu)
    for pod in list(world.pods("a")):
        world.api.remove(key_of(pod))


def test_a_gang_that_is_recreated_in_a_shape_without_room_starts_no_pod() -> None:
    """Also not the head, whose slot is there still; the room goes to others."""
    world = running(node("n1", cpu=4))
    recreated(world, "2")
    world.settle(seconds=5)
    assert (world.bound("a"), world.status("a")["phase"]) == ({}, "Queued")
    world.create(gang_of("b", 3))
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}


def test_a_gang_that_is_recreated_between_its_decision_and_its_release_starts_whole() -> None:
    """The head comes back first, in its old shape: alone it is not released into its slot."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    recreated(world, "1500m")
    world.settle(seconds=60)
    assert (world.bound("a"), world.status("a")["phase"]) == ({}, "Queued")
    recreated(world, "500m")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert slots(world) == 3


def test_a_replica_of_several_hosts_gives_its_slots_up_for_one_of_another_shape() -> None:
    world = World(node("n1", cpu=8))
    world.create(ray_cluster("a", group("workers", 2, hosts=2)))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 5}
    changed(world, hosts=2, cpu="1500m")
    lost(world)
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 5}
    assert world.status("a")["reason"] == "Running"
    assert slots(world) == 5


def test_a_replica_that_is_half_made_again_costs_no_slot() -> None:
    """Its successor takes over the slots when it is whole; no other pod gets them before."""
    world = World(node("n1", cpu=3))
    world.create(ray_cluster("a", group("workers", 1, hosts=2)))
    world.settle(seconds=60)
    for pod in [pod for pod in world.pods("a") if "workers" in name_of(pod)]:
        world.api.remove(key_of(pod))
    world.kuberay()
    late = [pod for pod in world.pods("a") if "workers" in name_of(pod)][-1]
    queue = world.leader.watch.queues["pods"]
    queue.remove(next(each for each in queue if each.key == key_of(late)))
    world.leader.hear("pods")
    views = world.leader.state.known.views.values()
    assert [view.reservation.placement for view in views] != [None]
    assert slots(world) == 3
    world.create(foreign_pod("late", "n1", cpu=0))
    [view] = world.leader.state.known.views.values()
    assert view.reservation.reserved.room.total() == 2


def test_the_next_leader_says_the_same() -> None:
    world = running(node("n1", cpu=3))
    changed(world, cpu=2)
    lost(world)
    world.settle(seconds=60)
    before = world.status("a")
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=60)
    assert world.status("a")["message"] == before["message"]
    world.create(node("n2", cpu=2))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2, "n2": 1}
    assert world.api.get(Key("gangs", TEAM, "a"))["status"]["reason"] == "Running"
