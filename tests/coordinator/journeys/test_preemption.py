"""Gangs, and replicas of their surplus, that are stopped for others, and come back."""

import random
from collections import Counter
from typing import Any

import pytest

from coordinator.gang.eviction import FIRST_KEEP
from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    ReleasePod,
    TryEviction,
    WriteGangStatus,
)
from coordinator.queues.asking import line_up
from coordinator.queues.parts import parts_of
from coordinator.reconcile.evicting import AT_ONCE
from kube.api.errors import TooManyRequests
from kube.objects import names
from tests.coordinator.api import Outcome
from tests.coordinator.builders import OPTED_IN, Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.journeys.test_queues import change, gang_in, queue
from tests.coordinator.stopping import choose, choose_whole, condition, ending, names_of, parts
from tests.coordinator.world import World, key

PDB = TooManyRequests(429, "TooManyRequests", "Cannot evict pod as it would violate the budget")
FOR_P = "stopped for RayCluster team/p (priority 10, queue default)"


def urgent(name: str, workers: int, **more: Any) -> Json:
    """A Ray cluster of priority 10."""
    workers_of_it = group("workers", workers, priority=10)
    return ray_cluster(name, workers_of_it, head=template(priority=10), **more)


def two_gangs(cpu: int = 4, workers: int = 3, **more: Any) -> World:
    """Gang v has all of the room, and p waits."""
    world = World(node("n1", cpu=cpu))
    world.create(gang_of("v", workers, **more))
    world.settle(seconds=10)
    world.create(urgent("p", cpu - 1))
    world.settle(seconds=10)
    return world


def elastic(replicas: int, least: int, hosts: int = 1) -> Json:
    """A Ray cluster of whose workers so many replicas are its minimum."""
    minimum = {names.MIN_REPLICAS: f"workers={least}"}
    return ray_cluster("v", group("workers", replicas, hosts=hosts), annotations=minimum)


def head_of(world: World, name: str) -> str:
    pods = names_of(world.pods(name))
    return next(pod for pod in pods if "headgroup" in pod)


def workers_of(world: World, name: str) -> list[str]:
    return [pod for pod in names_of(world.pods(name)) if "workers" in pod]


def evicted(world: World) -> list[str]:
    return [each.name for each in world.leader.log if isinstance(each, EvictPod)]


# ---- a whole gang


def test_a_gang_is_stopped_whole_and_waits_again_in_its_place() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.settle(seconds=10)
    assert (world.gated("v"), world.gated("p")) == (4, 0)
    assert [world.status(each)["phase"] for each in ("v", "p")] == ["Queued", "Running"]
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
    while not evicted(world):
        leader.act()
        leader.hear_all()
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
    while not world.status("v").get("placement"):
        leader.act()
        leader.hear_all()
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


# ---- surplus


def test_of_surplus_exactly_the_chosen_replicas_are_evicted() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    before = workers_of(world, "v")
    minimum, *surplus = parts(world, "v")
    assert [part.replica for part in surplus] == [f"workers/{pod}" for pod in before[1:]]
    choose(world, "p", *surplus[:2])
    world.settle(seconds=10)
    assert evicted(world) == before[1:3]
    assert before[0] in workers_of(world, "v")
    assert before[3] in workers_of(world, "v")
    assert (world.gated("v"), world.gated("p")) == (2, 0)
    status = world.status("v")
    assert (status["phase"], status["reason"]) == ("Running", "Running")
    assert condition(world, "v", "SurplusPlaced")["status"] == "False"
    assert condition(world, "v", "Evicted") == {}
    assert ending(world, "v") == []
    assert parts(world, "v")[0].room == minimum.room


def test_the_slots_of_surplus_that_ends_leave_in_the_write_that_ends_it() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    choose(world, "p", *parts(world, "v")[1:3])
    world.leader.act_all_but(WriteGangStatus)
    write = next(a for a in world.leader.todo if isinstance(a, WriteGangStatus))
    (workers,) = (s for s in write.status["placement"]["podSets"] if s["name"] == "workers")
    assert workers["assignments"][0]["nodes"] == {"n1": 2}
    assert len(write.status["evictions"][0]["replicas"]) == 2


def test_all_pods_of_a_replica_of_several_hosts_end_together() -> None:
    world = World(node("n1", cpu=7))
    world.create(elastic(3, 1, hosts=2))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    _, first, second = parts(world, "v")
    choose(world, "p", second)
    world.settle(seconds=10)
    assert len(evicted(world)) == 2
    assert world.bound("v") == {"n1": 5}
    assert world.status("p")["phase"] == "Running"
    assert [part.replica for part in parts(world, "v")] == ["", first.replica]


def test_the_minimum_keeps_the_replicas_that_are_ready() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    first, *others = workers_of(world, "v")
    pod = next(each for each in world.pods("v") if each["metadata"]["name"] == first)
    world._condition(pod, "Ready", "False", "", "")
    world.leader.hear_all()
    named = [part.replica for part in parts(world, "v")[1:]]
    assert f"workers/{first}" in named
    assert f"workers/{others[0]}" not in named


def test_surplus_that_ends_for_one_gang_and_then_the_whole_gang_for_another() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1), urgent("q", 2))
    world.settle(seconds=10)
    leader = world.leader
    choose(world, "p", *parts(world, "v")[1:3])
    while not evicted(world):
        leader.act()
        leader.hear_all()
    choose_whole(world, "q", "v")
    world.settle(seconds=20)
    assert world.gated("v") == 5
    assert condition(world, "v", "Evicted")["message"].startswith("stopped for RayCluster team/q")


# ---- what may not be evicted


def test_a_gang_that_a_budget_protects_is_not_stopped_and_chosen_again_later() -> None:
    world = two_gangs()
    world.api.budgets[workers_of(world, "v")[1]] = PDB
    choose_whole(world, "p", "v")
    world.settle(seconds=5)
    assert evicted(world) == []
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert parts(world, "v")[0].kept_because == str(PDB)
    before = world.leader.state.agenda.cycle_wanted
    world.settle(seconds=FIRST_KEEP)
    assert parts(world, "v")[0].kept_because == ""
    choose_whole(world, "p", "v")
    world.settle(seconds=5)
    world.settle(seconds=FIRST_KEEP)
    assert parts(world, "v")[0].kept_because == str(PDB)  # for twice as long
    assert not before


def test_of_several_victims_none_is_stopped_where_one_is_protected() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    world.api.budgets[head_of(world, "w")] = PDB
    choose_whole(world, "p", "v", "w")
    world.settle(seconds=5)
    assert evicted(world) == []
    assert world.bound("v") == world.bound("w") == {"n1": 2}
    assert (parts(world, "v")[0].kept_because, parts(world, "w")[0].kept_because) == ("", str(PDB))


def test_a_replica_that_is_protected_keeps_no_other_one() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    _, first, second, _ = parts(world, "v")
    world.api.budgets[second.replica.partition("/")[2]] = PDB
    choose(world, "p", first, second)
    world.settle(seconds=5)
    assert evicted(world) == []
    kept = {part.replica: part.kept_because for part in parts(world, "v")}
    assert {name for name, because in kept.items() if because} == {second.replica}


def refused_halfway(world: World) -> str:
    """Stop gang v; after the dry runs a budget comes to protect one worker."""
    leader = world.leader
    choose_whole(world, "p", "v")
    while not any(isinstance(each, EvictPod) for each in leader.todo):
        leader.act()
        leader.hear_all()
    protected = workers_of(world, "v")[1]
    world.api.budgets[protected] = PDB
    return protected


def test_a_gang_whose_eviction_is_refused_halfway_goes_on_being_stopped() -> None:
    world = two_gangs()
    protected = refused_halfway(world)
    world.settle(seconds=300)
    assert names_of(world.pods("v") if world.gated("v") == 2 else []).count(protected) == 1
    assert head_of(world, "v") not in evicted(world)
    assert world.status("v")["phase"] == "Preempting"
    assert "placement" not in world.status("v")  # no room is kept for what is gone
    assert str(PDB) in world.status("v")["message"]
    assert 5 < evicted(world).count(protected) < 12  # the pause doubles up to a minute
    assert not any(isinstance(each, DeletePod) for each in world.leader.log)
    world.api.budgets.clear()
    world.settle(seconds=61)
    assert (world.gated("v"), world.gated("p")) == (4, 0)


def test_a_gang_of_which_no_eviction_is_accepted_goes_on_and_is_kept_for_a_time() -> None:
    """What protects it came after the dry runs."""
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    while not any(isinstance(each, EvictPod) for each in leader.todo):
        leader.act()
        leader.hear_all()
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("v")), PDB))
    world.settle(seconds=20)
    assert world.bound("v") == {"n1": 4}
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert condition(world, "v", "Evicted") == {}
    assert parts(world, "v")[0].kept_because == str(PDB)


def test_a_queue_may_have_pods_deleted_whose_eviction_is_refused() -> None:
    rules = {"deleteAfterSeconds": 120}
    world = World(node("n1", cpu=4), queue("team", preemption=rules))
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels={names.OPT_IN: "true", names.QUEUE: "team"}))
    world.settle(seconds=10)
    protected = refused_halfway(world)
    world.settle(seconds=100)
    assert protected in names_of(world.pods("v"))
    world.settle(seconds=60)
    assert [a.name for a in world.leader.log if isinstance(a, DeletePod)] == [protected]
    assert (world.gated("v"), world.gated("p")) == (4, 0)


def test_few_evictions_of_a_gang_are_under_way_at_one_time() -> None:
    world = two_gangs(cpu=41, workers=40)
    leader, most = world.leader, Counter[str]()
    choose_whole(world, "p", "v")
    while len(evicted(world)) < 40:
        most |= Counter(type(each).__name__ for each in leader.todo)
        leader.act()
        leader.hear_all()
    assert (most["TryEviction"], most["EvictPod"]) == (AT_ONCE, AT_ONCE)


# ---- what is needed no more


def test_a_gang_goes_on_where_the_one_that_it_was_to_end_for_is_deleted() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    leader.act_all_but(WriteGangStatus)
    world.delete("rayclusters", "p")
    world.settle(seconds=20)
    assert evicted(world) == []
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert condition(world, "v", "Evicted") == {}
    assert world.bound("v") == {"n1": 4}


def test_a_gang_of_which_one_pod_was_evicted_is_stopped_whole() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    while not evicted(world):
        leader.act()
        leader.hear_all()
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
    leader.act(at)
    before = set(names_of(world.pods("v")))
    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.status("v")["phase"] == "Running"  # anew, in the room that came free
    assert not before & set(names_of(world.pods("v")))


def test_a_replica_that_is_not_evicted_yet_stays_where_it_is_needed_no_more() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    choose(world, "p", *parts(world, "v")[1:3])
    world.leader.act_all_but(WriteGangStatus)
    world.delete("rayclusters", "p")
    world.settle(seconds=20)
    assert evicted(world) == []
    assert ending(world, "v") == []
    assert world.bound("v") == {"n1": 5}


def test_a_new_leader_ends_a_gang_of_which_a_pod_was_evicted() -> None:
    world = World(node("n1", cpu=4), replicas=2)
    world.create(gang_of("v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    leader = world.leader
    choose_whole(world, "p", "v")
    while not evicted(world):
        leader.act()
        leader.hear_all()
    before = set(names_of(world.pods("v")))
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
    leader.act(at)
    world.kubelets()
    leader.resign()
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.elect(1)
    world.settle(seconds=60)
    assert world.status("v")["phase"] == "Running"
    assert not before & set(names_of(world.pods("v")))


def test_a_trial_ends_where_the_queue_allows_no_preemption_any_more() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption={"withinQueue": "LowerPriority"}))
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world.create(gang_of("v", 3, labels=labels))
    world.settle(seconds=10)
    leader = world.leader
    world.create(urgent("p", 3, labels=labels))
    while not leader.state.term.trials:
        world.kuberay()
        leader.hear_all()
        leader.act_all()
        leader.cycle()
    change(world, "team", preemption={"withinQueue": "Never"})
    leader.hear_all()
    leader.cycle()
    world.settle(seconds=60)
    assert evicted(world) == []
    assert world.status("p")["phase"] == "Queued"


def test_a_trial_ends_with_the_gang_that_it_is_for() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.delete("rayclusters", "p")
    world.settle(seconds=20)
    assert not world.leader.state.term.trials
    assert evicted(world) == []
    assert world.leader.state.views[key("v")].eviction.probes == {}


def test_a_choice_that_changes_is_tried_anew_and_one_that_stands_is_not() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    choose_whole(world, "p", "v")
    assert sum(isinstance(each, TryEviction) for each in world.leader.log) == 4


# ---- another leader


@pytest.mark.parametrize("acts", range(22))
def test_another_leader_finishes_or_undoes_what_one_began(acts: int) -> None:
    world = World(node("n1", cpu=4), replicas=2)
    world.create(gang_of("v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    leader = world.leader
    choose_whole(world, "p", "v")
    for _ in range(acts):
        if leader.todo:
            leader.act()
        leader.hear_all()
        world.kubelets()
    leader.resign()
    written = bool(ending(world, "v"))
    begun = evicted(world) != []
    world.elect(1)
    world.settle(seconds=60)
    states = [world.status(each)["phase"] for each in ("v", "p")]
    assert states in (["Running", "Queued"], ["Queued", "Running"])
    assert sorted((world.bound(each).total(), world.gated(each)) for each in ("v", "p")) == [
        (0, 4),
        (4, 0),
    ]
    assert states == ["Queued", "Running"] or not (written or begun)


def test_a_new_leader_goes_on_with_surplus_that_ends() -> None:
    world = World(node("n1", cpu=5), replicas=2)
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    leader = world.leader
    choose(world, "p", *parts(world, "v")[1:3])
    while not ending(world, "v"):
        leader.act()
        leader.hear_all()
    leader.resign()
    world.elect(1)
    world.settle(seconds=20)
    assert world.bound("v") == {"n1": 3}
    assert world.status("p")["phase"] == "Running"


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
    assert not world.replicas[1].state.views[key("v")].survey.ran


# ---- parts


def test_the_parts_of_gangs_are_all_that_they_hold() -> None:
    """At each step of an end: what is counted as held is in some part."""
    world = World(node("n1", cpu=5))
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    leader = world.leader
    choose(world, "p", *parts(world, "v")[1:3])
    for _ in range(30):
        held = sum(h.amounts["cpu"] for h in leader.state.quota.of(key("v")).values())
        room = [dict(each)["cpu"] for part in parts(world, "v") for _, each in part.room]
        assert sum(room) == held
        if leader.todo:
            leader.act()
        leader.hear_all()
    marked = [part for part in parts(world, "v") if part.is_ending]
    assert [len(part.room) for part in marked] == [2]


def test_a_gang_that_is_opted_out_or_deleted_is_no_victim() -> None:
    world = two_gangs()
    cluster = world.api.get(next(k for k in world.api.objects if k.name == "v"))
    world.api.hold(cluster, "test/finalizer")
    world.delete("rayclusters", "v")
    world.leader.hear_all()
    (part,) = parts(world, "v")
    assert part.is_ending


# ---- chosen by cycles


def test_a_cycle_chooses_surplus_first_then_whole_gangs_and_the_room_is_kept() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption={"withinQueue": "LowerPriority"}))
    labels = {**OPTED_IN, names.QUEUE: "team"}
    annotations = {names.MIN_REPLICAS: "workers=1"}
    world.create(gang_of("low", 3, labels=labels, annotations=annotations))
    world.create(gang_of("w", 3, labels=labels))
    world.settle(seconds=10)
    world.create(urgent("p", 1, labels=labels))
    world.settle(seconds=10)
    assert world.status("p")["phase"] == "Running"
    assert (world.bound("low").total(), world.gated("low")) == (2, 2)
    assert world.bound("w").total() == 4
    world.create(urgent("q", 3, labels=labels))
    world.settle(seconds=10)
    assert world.status("q")["phase"] == "Running"
    assert [world.bound(each).total() for each in ("low", "w")] in ([2, 0], [0, 4])
    for each in ("p", "q"):
        world.delete("rayclusters", each)
    world.settle(seconds=60)
    assert [world.status(each)["phase"] for each in ("low", "w")] == ["Running", "Running"]
    assert world.gated() == 0


def test_a_cycle_chooses_others_where_a_budget_forbids() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption={"withinQueue": "LowerPriority"}))
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world.create(gang_of("v", 3, labels=labels), gang_of("w", 3, labels=labels))
    world.settle(seconds=10)
    world.api.budgets[workers_of(world, "w")[0]] = PDB
    world.api.budgets[head_of(world, "w")] = PDB
    world.create(urgent("p", 3, labels=labels))
    world.settle(seconds=30)
    assert [world.status(each)["phase"] for each in ("v", "w", "p")] == [
        "Queued",
        "Running",
        "Running",
    ]
    world.create(urgent("q", 3, labels=labels))
    world.settle(seconds=30)
    assert world.status("q")["phase"] == "Queued"
    assert "team/w" in world.status("q")["message"]
    assert "would violate the budget" in world.status("q")["message"]
    world.api.budgets.clear()
    world.settle(seconds=700)
    assert world.status("q")["phase"] == "Running"


def test_parts_that_are_kept_from_one_cycle_to_the_next_are_as_they_would_be_found_anew() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption={"withinQueue": "LowerPriority"}))
    labels = {**OPTED_IN, names.QUEUE: "team"}
    annotations = {names.MIN_REPLICAS: "workers=1", names.EXPECTED_DURATION: "20s"}
    leader, compared = world.leader, Counter[bool]()

    def compare() -> None:
        if leader.state.agenda.late:
            return  # these are looked at before a cycle
        line_up(leader.state)
        kept = list(parts_of(leader.state, leader._moment()))
        leader.state.cycles.parts.clear()
        assert kept == list(parts_of(leader.state, leader._moment()))
        compared[any(part.outlived for part in kept)] += bool(kept)

    world.create(gang_of("low", 4, labels=labels, annotations=annotations))
    for moment in range(120):
        if moment == 30:
            world.create(urgent("p", 3, labels=labels))
        if moment == 60:
            world.create(urgent("q", 2, labels=labels))
        if moment == 90:
            world.delete("rayclusters", "p")
        world.api.now += 1
        world.controllers()
        leader.hear_all()
        compare()
        leader.tick()
        leader.cycle()
        compare()
        if leader.todo:
            leader.act()
        compare()
        leader.act_all()
        compare()
    assert min(compared[True], compared[False]) > 50


# ---- whatever happens to requests


MISHAPS = [Outcome.DONE] * 6 + [
    Outcome.LOST,
    Outcome.UNSENT,
    Outcome.BROKEN,
    Outcome.THROTTLED,
    Outcome.HELD,
]


def crowd() -> World:
    """Two gangs of which one has surplus, on all of the room, and two that may stop them."""
    world = World(
        node("n1", cpu=5),
        node("n2", cpu=5),
        queue("team", preemption={"withinQueue": "LowerPriority", "deleteAfterSeconds": 300}),
        replicas=2,
    )
    labels = {**OPTED_IN, names.QUEUE: "team"}
    elastic = {names.MIN_REPLICAS: "workers=2"}
    world.create(gang_of("a", 4, labels=labels, annotations=elastic))
    world.create(gang_of("b", 4, labels=labels))
    world.settle(seconds=10)
    assert world.gated() == 0
    world.create(urgent("p", 1, labels=labels), urgent("q", 3, labels=labels))
    return world


def stumble(world: World, chance: random.Random, index: int) -> int:
    """Do one thing at random; return which replica leads."""
    leader = world.replicas[index]
    match chance.randrange(12):
        case 0 | 1:
            world.controllers()
        case 2 | 3:
            leader.hear_all()
        case 4:
            world.api.now += chance.choice([0.5, 5.0, 20.0])
            leader.tick()
        case 5 | 6:
            leader.cycle()
        case 7 if leader.client.held:
            leader.client.let_go()
        case 8 if chance.random() < 0.2:
            leader.resign()
            world.elect(1 - index)
            return 1 - index
        case 9 if chance.random() < 0.1:
            budgets = world.api.budgets
            pods = names_of(world.pods())
            budgets.clear() if budgets else budgets.update({chance.choice(pods): PDB})
        case _ if leader.todo:
            leader.act(0, chance.choice(MISHAPS))
        case _:
            pass
    return index


@pytest.mark.parametrize("seed", range(20))
def test_every_gang_is_whole_or_waits_whatever_happens_to_requests(seed: int) -> None:
    world, chance, index = crowd(), random.Random(seed), 0
    for _ in range(400):
        index = stumble(world, chance, index)
    world.api.budgets.clear()
    for replica in world.replicas:
        while replica.client.held:
            replica.client.let_go()
    world.settle(seconds=2000)
    least = {"a": 3, "b": 5, "p": 2, "q": 4}
    bound = {name: world.bound(name).total() for name in least}
    assert all(count == 0 or count >= least[name] for name, count in bound.items()), bound
    assert (bound["p"], bound["q"]) == (2, 4)
    assert sum(bound.values()) + world.gated() == 16
    assert all(ending(world, name) == [] for name in least)
    used = world.used()
    assert all(each["cpu"] <= 5000 for each in used.values())


def test_surplus_ends_for_a_gang_that_runs_and_lost_a_part_of_its_minimum() -> None:
    world = World(
        node("n1", cpu=5, labels={"zone": "a"}),
        node("n2", cpu=1),
        queue("team", preemption={"withinQueue": "LowerPriority"}),
    )
    labels, here = {**OPTED_IN, names.QUEUE: "team"}, {"zone": "a"}
    low = group("workers", 3, nodeSelector=here)
    elastic = {names.MIN_REPLICAS: "workers=1"}
    head = template(nodeSelector=here)
    world.create(ray_cluster("v", low, head=head, labels=labels, annotations=elastic))
    workers, head = group("workers", 1, priority=10), template(priority=10, nodeSelector=here)
    world.create(ray_cluster("p", workers, head=head, labels=labels))
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 1, "n2": 1}
    world.delete("nodes", "n2")
    world.settle(seconds=30)
    assert world.bound("p") == {"n1": 2}
    assert world.bound("v") == {"n1": 3}
    assert ending(world, "v") == []


def test_the_quota_of_a_hold_that_ends_is_there_for_others_in_the_same_cycle() -> None:
    """The only victim is protected, so what was held for the urgent gang is given back."""
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world = World(
        node("n1", cpu=4), queue("team", cpu=6, preemption={"withinQueue": "LowerPriority"})
    )
    world.create(gang_of("v", 3, labels=labels))
    world.settle(seconds=10)
    world.create(gang_of("q", 1, labels=labels))
    world.settle(seconds=10)
    world.api.budgets.update({workers_of(world, "v")[0]: PDB})
    world.create(urgent("p", 3, labels=labels))
    world.settle(seconds=600)
    assert world.status("q")["reason"] == "InsufficientResources"
    assert world.status("p")["reason"] == "QuotaExceeded"
    assert "team/v cannot be stopped for it" in world.status("p")["message"]
