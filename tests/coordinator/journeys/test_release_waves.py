"""Gangs that only one order of binding satisfies: the order of release, and what may go wrong.

The workers have affinity to any pod of their cluster, and the head is not in their zone: a worker
must be bound before the head.
"""

import pytest

from coordinator.messages.actions import DeletePod, ReleasePod
from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import (
    TEAM,
    Json,
    affinity_to,
    foreign_pod,
    group,
    ray_cluster,
)
from tests.coordinator.deeds import apart, decided, in_zones, zone
from tests.coordinator.validate import validate
from tests.coordinator.world import World, is_gated

HEAD, WORKERS = names.RAY_HEAD_GROUP, "workers"


def waves(world: World) -> dict[str, int]:
    """The wave of each pod set in the placement that is written down."""
    sets = world.status("a")["placement"]["podSets"]
    return {each["name"]: each["assignments"][0].get("wave", 0) for each in sets}


def order_of_binding(world: World) -> list[str]:
    """The pod sets of the pods that were bound, in this order."""
    history = [each for each in world.api.history if each.key.plural == "pods"]
    changes = [(each.old, each.new) for each in history if each.old and each.new]
    return [
        _set_of(new)
        for old, new in changes
        if "nodeName" in new["spec"] and "nodeName" not in old["spec"]
    ]


def _set_of(pod: Json) -> str:
    return str(pod["metadata"]["labels"][names.RAY_GROUP])


def released(world: World) -> list[str]:
    return sorted(_set_of(pod) for pod in world.pods("a") if not is_gated(pod))


def of_set(world: World, pod_set: str) -> list[Json]:
    return [pod for pod in world.pods("a") if _set_of(pod) == pod_set]


# ---- as it should be


def test_pods_that_must_be_bound_first_are_released_first() -> None:
    world = in_zones()
    world.create(apart(2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    assert order_of_binding(world) == [WORKERS, WORKERS, HEAD]
    assert waves(world) == {HEAD: 1, WORKERS: 0}


def test_the_next_wave_waits_for_all_of_the_last() -> None:
    """One of two workers is not bound yet: the head keeps its gate."""
    world = in_zones()
    world.create(apart(2))
    decided(world)
    leader = world.leader
    leader.act_all()
    assert released(world) == [WORKERS, WORKERS]
    first, second = of_set(world, WORKERS)
    for pod, expected in ((first, [WORKERS, WORKERS]), (second, [HEAD, WORKERS, WORKERS])):
        world.api.change(pod, lambda obj: obj["spec"].update(nodeName="w1"))
        leader.hear_all()
        leader.act_all()
        assert released(world) == expected


def test_a_gang_that_any_order_binds_has_one_wave() -> None:
    """Nothing of it is written down."""
    world = in_zones()
    world.create(ray_cluster("a", group(WORKERS, 2)))
    world.settle(seconds=5)
    assert "wave" not in str(world.status("a"))
    assert world.status("a")["phase"] == "Running"


def test_the_message_says_that_there_are_waves() -> None:
    world = in_zones()
    world.create(apart())
    decided(world)
    assert world.status("a")["message"] == "2 pods placed on 2 nodes in 2 waves"


@pytest.mark.parametrize("sent", [0, 1])
def test_the_minimum_does_not_wait_for_surplus_that_never_comes(sent: int) -> None:
    """One worker is enough; the other is lost in its wave, and a quota forbids to make it again."""
    world = in_zones(cpu=3)
    world.create(apart(2, annotations={names.MIN_REPLICAS: f"{WORKERS}=1"}))
    decided(world)
    assert waves(world) == {HEAD: 1, WORKERS: 0}
    for _ in range(sent):
        world.leader.act()
    lost = next(pod for pod in of_set(world, WORKERS) if is_gated(pod))
    world.api.remove(key_of(lost))
    world.refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    world.settle(seconds=60)
    assert world.bound("a") == {"h1": 1, "w1": 1}
    assert world.status("a")["phase"] == "Running"


def test_the_minimum_does_not_wait_for_surplus_that_others_hold_back() -> None:
    world = in_zones(cpu=3)
    world.create(apart(2, annotations={names.MIN_REPLICAS: f"{WORKERS}=1"}))
    decided(world)
    [cluster] = world.api.all("rayclusters")
    held = {"schedulingGates": [{"name": "others.dev/wait"}]}
    of_workers = "workerGroupSpecs"
    world.api.change(
        cluster, lambda obj: obj["spec"][of_workers][0]["template"]["spec"].update(held)
    )
    world.api.remove(key_of(of_set(world, WORKERS)[1]))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    assert world.bound("a") == {"h1": 1, "w1": 1}


# ---- the leader ends


@pytest.mark.parametrize("acts", range(4))
def test_another_leader_goes_on_with_the_wave_that_is_due(acts: int) -> None:
    """Killed before, in and after the first wave; what is written down tells whose wave it is."""
    world = World(zone("h1"), zone("w1"), replicas=2)
    world.create(apart(2))
    decided(world)
    old, new = world.replicas
    for _ in range(min(acts, len(old.todo))):
        old.act()
    if acts == 3:
        world.schedule()
    old.restart()
    world.elect(1)
    new.act_all()
    assert HEAD not in released(world) or acts == 3
    world.settle(seconds=5)
    assert order_of_binding(world) == [WORKERS, WORKERS, HEAD]
    assert world.status("a")["phase"] == "Running"
    validate(new.state)


def test_a_gang_whose_record_is_deleted_between_waves_is_completed() -> None:
    """The pins tell of the first wave; the head is decided anew, beside those that are bound."""
    world = in_zones()
    world.create(apart(2))
    decided(world)
    world.leader.act_all()
    world.schedule()
    world.api.remove(Key("gangs", TEAM, "a"))
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=60)
    assert order_of_binding(world) == [WORKERS, WORKERS, HEAD]
    assert world.status("a")["phase"] == "Running"


# ---- a wave that does not come to its end


def test_a_wave_that_is_never_bound_gives_the_room_back() -> None:
    """A foreign pod took the room of the first wave: the deadline of the repair ends the wait."""
    world = in_zones()
    world.create(apart())
    decided(world)
    world.create(foreign_pod("thief", "w1", cpu=2))
    world.leader.act_all()
    world.settle(seconds=400)
    assert HEAD not in order_of_binding(world)
    assert released(world) == []
    assert "placement" not in world.status("a")
    world.api.remove(Key("pods", "others", "thief"))
    world.settle(seconds=400)
    assert world.status("a")["phase"] == "Running"


def test_a_beginner_that_is_lost_between_waves_begins_again() -> None:
    """No pod was bound after it: its slot is as good as it was."""
    world = in_zones()
    world.create(apart())
    decided(world)
    world.leader.act_all()
    world.api.remove(key_of(of_set(world, WORKERS)[0]))
    world.settle(seconds=5)
    assert order_of_binding(world) == [WORKERS, HEAD]
    assert world.status("a")["phase"] == "Running"


# ---- members that are lost


def lose(world: World, pod_set: str) -> None:
    world.api.delete(key_of(of_set(world, pod_set)[0]))


def test_a_lost_member_that_can_never_be_bound_again_is_not_released_again_and_again() -> None:
    """The head stands in the other zone now, so no worker may begin: said, and nothing else."""
    world = in_zones()
    world.create(apart())
    world.settle(seconds=5)
    lose(world, WORKERS)
    world.settle(seconds=5)
    log = world.leader.log
    log.clear()
    world.settle(seconds=1000)
    assert not [each for each in log if isinstance(each, ReleasePod | DeletePod)]
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "BelowMinimum")
    assert "affinity between pods" in status["message"]
    assert released(world) == [HEAD]


def test_it_is_bound_once_there_is_room() -> None:
    """Room in the zone of the head would do, were it not for the selector: the head goes too."""
    world = in_zones()
    world.create(apart())
    world.settle(seconds=5)
    lose(world, WORKERS)
    world.settle(seconds=5)
    lose(world, HEAD)
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    assert order_of_binding(world)[2:] == [WORKERS, HEAD]


def test_a_lost_member_is_decided_beside_those_that_are_bound() -> None:
    """Another worker is still there that the affinity matches."""
    world = in_zones()
    world.create(apart(2))
    world.settle(seconds=5)
    for _ in range(3):
        lose(world, WORKERS)
        world.settle(seconds=60)
        assert world.status("a")["reason"] == "Running"
        assert world.bound("a") == {"h1": 1, "w1": 2}
    lose(world, HEAD)
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "Running"


def test_a_lost_member_whose_slot_was_kept_through_a_change_of_leader_is_tried_once() -> None:
    """The new leader cannot tell it from one that was never bound: kube-scheduler can."""
    world = in_zones()
    world.create(apart())
    world.settle(seconds=5)
    world.leader.restart()
    lose(world, WORKERS)
    world.kubelets()
    world.kuberay()
    world.elect(0)
    world.settle(seconds=1000)
    assert len(world.leader.releases()) <= 2
    assert world.status("a")["reason"] == "BelowMinimum"


def test_a_pod_that_is_lost_with_those_it_needs_waits_for_them() -> None:
    """The helper wants a head in its zone, which finds no room: its own slot is of no use."""
    world = World(zone("h1", cpu=1), zone("h2", cpu=1), zone("w1"))
    helper = group("helper", 1, affinity=affinity_to("a", HEAD), nodeSelector={"zone": "h"})
    cluster = apart()
    cluster["spec"]["workerGroupSpecs"].append(helper)
    world.create(cluster)
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    [head_node] = [pod["spec"]["nodeName"] for pod in of_set(world, HEAD)]
    world.create(foreign_pod("thief", head_node, cpu=1))
    world.api.remove(key_of(of_set(world, HEAD)[0]))
    world.api.remove(key_of(of_set(world, "helper")[0]))
    world.settle(seconds=5)
    log = world.leader.log
    log.clear()
    world.settle(seconds=1000)
    assert not [each for each in log if isinstance(each, ReleasePod | DeletePod)]
    assert released(world) == [WORKERS]


def test_more_workers_come_after_the_waves_before_them() -> None:
    """What is decided later is released later, and beside what is bound."""
    world = in_zones(cpu=4)
    world.create(apart(1))
    decided(world)
    world.scale("a", 3)
    world.settle(seconds=60)
    assert world.bound("a") == {"h1": 1, "w1": 3}
    assert order_of_binding(world)[0] == WORKERS
