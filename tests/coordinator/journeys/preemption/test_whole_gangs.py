"""Gangs are stopped whole, and wait again in their place."""

from collections import Counter

import pytest

from coordinator.messages.actions import (
    EvictPod,
    FencePod,
    ReleasePod,
    WriteGangStatus,
)
from coordinator.reconcile.eviction.evictions import AT_ONCE
from tests.coordinator.builders import (
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.preemption.worlds import (
    IN_TEAM,
    LOWER,
    PDB,
    evicted,
    head_of,
    two_gangs,
    urgent,
    workers_of,
)
from tests.coordinator.journeys.queues.worlds import gang_in, phases, queue
from tests.coordinator.replica import Replica
from tests.coordinator.stopping import (
    act_until,
    choose_whole,
    condition,
    ending,
    names_of,
)
from tests.coordinator.world import World, key

FOR_P = "stopped for RayCluster team/p (priority 10, queue default)"


# ---- a whole gang


def test_a_gang_is_stopped_whole_and_waits_again_in_its_place() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.settle(seconds=10)
    assert (world.gated("v"), world.gated("p")) == (4, 0)
    assert phases(world, "v", "p") == ["Queued", "Running"]
    assert "placement" not in world.status("v")
    assert ending(world, "v") == []
    told = condition(world, "v", "Evicted")
    assert (told["status"], told["reason"], told["message"]) == ("True", "Preempted", FOR_P)
    assert world.status("v")["message"].endswith(FOR_P)
    writes = [each for each in world.leader.log if isinstance(each, WriteGangStatus)]
    assert {each.status["message"].count(FOR_P) for each in writes if each.key.name == "v"} == {
        0,
        1,
    }
    world.delete("rayclusters", "p")
    world.settle(seconds=20)
    assert world.status("v")["phase"] == "Running"
    assert condition(world, "v", "Evicted")["status"] == "False"
    assert FOR_P not in world.status("v")["message"]


def test_no_pod_is_evicted_before_the_record_says_so() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    leader.act_all_but(WriteGangStatus)
    leader.hear_all()
    (write,) = leader.todo
    assert isinstance(write, WriteGangStatus)
    assert write.decides
    assert write.status["evictions"][0]["preemptor"] == "team/p"
    assert (write.status["phase"], write.status["reason"]) == ("Preempting", "Preempted")
    assert write.status["placement"]
    leader.act()
    assert {type(each) for each in leader.todo if not isinstance(each, WriteGangStatus)} == {
        EvictPod
    }


def test_the_head_is_evicted_after_all_workers() -> None:
    world = two_gangs()
    head, workers = head_of(world, "v"), workers_of(world, "v")
    choose_whole(world, "p", "v")
    world.api.budgets[workers[0]] = PDB  # only after the dry runs
    world.api.budgets.clear()
    world.settle(seconds=10)
    assert evicted(world) == [*workers, head]


def test_the_record_names_the_pods_that_are_left() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    world.api.now += 30
    leader.tick()
    leader.act_all()
    leader.hear_all()
    leader.tick()
    leader.act_all()
    first = ", ".join(names_of(world.pods("v"))[:3])
    assert world.status("v")["message"] == f"{FOR_P}; 4 pods are left: {first} and 1 more"


def test_a_gang_that_is_stopped_while_it_is_released_is_not_released_further() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 3))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    act_until(world, lambda: world.status("v").get("placement"))
    leader.act()  # the head is released, the workers are not
    world.create(urgent("p", 3))
    world.kuberay()
    leader.hear("rayclusters")
    leader.hear("pods")
    leader.act_all_but(ReleasePod)
    leader.hear("gangs")
    choose_whole(world, "p", "v")
    leader.act_all_but(ReleasePod)
    assert ending(world, "v")
    world.settle(seconds=60)
    assert (world.gated("v"), world.gated("p")) == (4, 0)
    assert world.status("p")["phase"] == "Running"


def release_of_unknown_outcome() -> World:
    """Gang v is released in part; nobody knows what became of the release of one worker."""
    rules = queue("team", preemption=LOWER)
    world = World(node("n1", cpu=4), rules, replicas=2)
    world.create(gang_in("team", "v", 3))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    act_until(world, lambda: world.status("v").get("placement"))
    leader.act()  # the head is released
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, ReleasePod))
    leader.act(at, Outcome.HELD, reads_fail=True)
    world.create(urgent("p", 3, labels=IN_TEAM))
    return world


def go_on_without_fences(world: World, leader: Replica, *, until_it_ends: bool) -> None:
    """Carry out what is asked, for a time: but all patches of pods of gang v are throttled."""
    for _ in range(100):
        world.controllers()
        world.api.now += 0.1
        leader.hear_all()
        leader.tick()
        leader.cycle()
        while leader.todo and not (until_it_ends and ending(world, "v")):
            asked = leader.todo[0]
            throttled = isinstance(asked, FencePod | ReleasePod) and asked.gang == key("v")
            leader.act(0, Outcome.THROTTLED if throttled else Outcome.DONE)


@pytest.mark.parametrize("change_leader", [False, True])
def test_the_room_of_a_stopped_gang_is_kept_until_no_release_of_it_can_arrive(
    change_leader: bool,
) -> None:
    world = release_of_unknown_outcome()
    leader = world.leader
    go_on_without_fences(world, leader, until_it_ends=change_leader)
    if change_leader:
        leader.resign()
        go_on_without_fences(world, world.elect(1), until_it_ends=False)
    assert ending(world, "v")
    assert world.gated("p") == 4
    leader.client.let_go()
    world.settle(seconds=60)
    assert (world.gated("v"), world.bound("p").total()) == (4, 4)
    assert ending(world, "v") == []


def test_few_evictions_of_a_gang_are_under_way_at_one_time() -> None:
    world = two_gangs(cpu=41, workers=40)
    leader, most = world.leader, Counter[str]()
    choose_whole(world, "p", "v")
    while len(evicted(world)) < 40:
        most |= Counter(type(each).__name__ for each in leader.todo)
        leader.act()
        leader.hear_all()
    assert (most["TryEviction"], most["EvictPod"]) == (AT_ONCE, AT_ONCE)


def test_a_gang_that_was_stopped_did_not_run_under_its_new_placement() -> None:
    """KubeRay's word that all pods were ready once is of the time before."""
    world = World(node("n1", cpu=4), replicas=2)
    world.create(gang_of("v", 3))
    world.settle(seconds=10)
    provisioned = {"type": "RayClusterProvisioned", "status": "True"}
    cluster = world.api.get(next(k for k in world.api.objects if k.plural == "rayclusters"))
    world._say(cluster, {"conditions": [provisioned], "state": "ready"})
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    choose_whole(world, "p", "v")
    world.settle(seconds=20)
    world.delete("rayclusters", "p")
    leader = world.leader
    while not world.status("v").get("placement"):
        world.controllers()
        leader.hear_all()
        leader.act_all_but(WriteGangStatus)
        leader.cycle()
        leader.act()
    leader.act()
    world.schedule()
    leader.resign()
    world.elect(1)
    assert world.bound("v").total() in (0, 1)
    assert not world.replicas[1].state.known.views[key("v")].survey.ran
