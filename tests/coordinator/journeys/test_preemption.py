"""Gangs, and replicas of their surplus, that are stopped for others, and come back."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from coordinator.gang.eviction.endings import FIRST_KEEP
from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    FencePod,
    ReadBudgets,
    ReleasePod,
    TryEviction,
    WriteGangStatus,
)
from coordinator.reconcile.eviction.evictions import AT_ONCE
from coordinator.state.cycle.cycle_input import line_up, queues_of
from coordinator.state.cycle.preemptible import parts_of
from kube.api.errors import TooManyRequests
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from scheduling.model.amounts import Requests
from scheduling.model.preemption import GangPart
from tests.coordinator.api import Key, Outcome, key_of
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.test_queues import change, gang_in, phases, queue
from tests.coordinator.ray_jobs import owned_by, ray_service
from tests.coordinator.stopping import (
    act_until,
    choose,
    choose_whole,
    condition,
    ending,
    go_until,
    names_of,
    parts,
    terminating,
)
from tests.coordinator.world import Replica, World, is_gated, key
from tests.examples import every_other

PDB = TooManyRequests(
    429,
    "TooManyRequests",
    "Cannot evict pod as it would violate the budget",
    causes=("DisruptionBudget",),
)
IN_TEAM = {**OPTED_IN, names.QUEUE: "team"}
LOWER = {"withinQueue": "LowerPriority"}
RECLAIM = {"reclaim": "Any"}
FOR_P = "stopped for RayCluster team/p (priority 10, queue default)"


def urgent(name: str, workers: int, **more: Any) -> Json:
    """A Ray cluster of priority 10."""
    workers_of_it = group("workers", workers, priority=10)
    return ray_cluster(name, workers_of_it, head=template(priority=10), **more)


def two_gangs(cpu: int = 4, workers: int = 3, replicas: int = 1, **more: Any) -> World:
    """Gang v has all of the room, and p waits."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
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


def budget(name: str, least: int, **labels: str) -> Json:
    """A budget by which so many of the pods with these labels must stay."""
    selector = {"matchLabels": {f"ray.io/{key}": value for key, value in labels.items()}}
    spec = {"minAvailable": least, "selector": selector}
    meta = {"name": name, "namespace": TEAM}
    return {"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}


def evicted(world: World) -> list[str]:
    return [each.name for each in world.leader.log if isinstance(each, EvictPod)]


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


@pytest.mark.parametrize(("replicas", "binds"), [(1, True), (1, False), (2, True), (2, False)])
def test_the_room_that_surplus_is_on_its_way_to_is_kept_until_it_is_gone(
    replicas: int, binds: bool
) -> None:
    world = World(
        node("n1", cpu=3),
        node("n2", cpu=2),
        queue("team", preemption=LOWER),
        replicas=replicas,
    )
    surplus = {names.MIN_REPLICAS: "workers=1"}
    workers = group("workers", 2, hosts=2)
    world.create(ray_cluster("v", workers, labels=IN_TEAM, annotations=surplus))
    schedule_one = world._schedule_one

    def schedule_four(raw: Json) -> None:
        if world.bound("v").total() < 4:
            schedule_one(raw)

    world._schedule_one = schedule_four  # type: ignore[method-assign]
    world.settle(seconds=5)
    (late,) = (pod for pod in world.pods("v") if not pod["spec"].get("nodeName"))
    assert not is_gated(late)
    world.create(ray_cluster("p", head=template(priority=10), labels=IN_TEAM))
    leader = world.leader
    for _ in range(200):
        world.kuberay()
        leader.hear_all()
        leader.cycle()
        leader.act_all_but(EvictPod)
    assert ending(world, "v")
    if replicas > 1:
        leader.resign()
        leader = world.elect(1)
        leader.cycle()
        leader.act_all_but(EvictPod)
    assert leader.state.known.views[key("v")].reservation.reserved.slots.total() == 1
    assert world.gated("p") == 1
    world._schedule_one = schedule_one  # type: ignore[method-assign]
    if binds:
        schedule_one(late)
    else:
        world.delete("pods", late["metadata"]["name"])
    world.settle(seconds=30)
    assert (world.bound("p").total(), world.bound("v").total(), world.gated("v")) == (1, 3, 2)
    assert ending(world, "v") == []


def test_surplus_that_ends_before_it_was_bound_is_not_released_again() -> None:
    world = World(node("n1", cpu=3))
    world.create(elastic(2, 1))
    world.kuberay()
    late, schedule_one = workers_of(world, "v")[1], world._schedule_one
    world._schedule_one = (  # type: ignore[method-assign]
        lambda raw: None if raw["metadata"]["name"] == late else schedule_one(raw)
    )
    world.settle(seconds=10)
    assert (world.bound("v").total(), world.gated("v")) == (2, 0)
    world.create(urgent("p", 0))
    world.settle(seconds=10)
    surplus = parts(world, "v")[1]
    assert surplus.replica == f"workers/{late}"
    choose(world, "p", surplus)
    act_until(world, lambda: ending(world, "v"))
    world.delete("pods", late)
    world.settle(seconds=30)
    assert (world.bound("p").total(), world.bound("v").total(), world.gated("v")) == (1, 2, 1)


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
    choose(world, "p", *parts(world, "v")[1:3])
    act_until(world, lambda: evicted(world))
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
    before = world.leader.state.known.agenda.cycle_wanted
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
    act_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    protected = workers_of(world, "v")[1]
    world.api.budgets[protected] = PDB
    return protected


def test_pods_that_do_not_end_are_not_waited_for_and_another_victim_is_chosen() -> None:
    world = World(
        node("n1", cpu=4),
        node("n2", cpu=4),
        queue("team", preemption=LOWER),
    )
    world.create(gang_in("team", "other", 3))
    world.settle(seconds=5)
    world.create(gang_in("team", "v", 1))
    world.settle(seconds=5)
    stay(world, "v-")
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=40)
    assert terminating(world, "v") == ["headgroup", "workers"]
    assert (world.status("p")["reason"], world.bound("other")) == ("Preempting", {"n1": 4})
    world.settle(seconds=60)
    assert (world.status("p")["phase"], world.gated("other")) == ("Running", 4)
    assert "60 s after their grace" in parts(world, "v")[-1].kept_because
    assert sum(pod.holds != "" for pod in members(world, "v")) == 2, "their room is not given out"


def stay(world: World, prefix: str) -> None:
    """Have pods that are deleted stay, as on a node that does not answer."""
    remove = world.api.remove

    def remove_others(key: Key) -> None:
        if key.plural != "pods" or not key.name.startswith(prefix):
            remove(key)

    world.api.remove = remove_others  # type: ignore[method-assign]


def members(world: World, name: str) -> list[ObservedPod]:
    return list(world.leader.state.known.cache.pods_of(key(name)))


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
    act_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("v")), PDB))
    world.settle(seconds=20)
    assert world.bound("v") == {"n1": 4}
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert condition(world, "v", "Evicted") == {}
    assert parts(world, "v")[0].kept_because == str(PDB)


def test_a_queue_may_have_pods_deleted_whose_eviction_is_refused() -> None:
    rules = {**LOWER, "deleteAfterSeconds": 120}
    world = World(node("n1", cpu=4), queue("team", preemption=rules))
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    protected = workers_of(world, "v")[1]
    world.create(urgent("p", 3, labels=IN_TEAM))
    leader = world.leader
    go_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    world.api.budgets[protected] = PDB
    world.settle(seconds=100)
    assert protected in names_of(world.pods("v"))
    world.settle(seconds=60)
    assert [a.name for a in world.leader.log if isinstance(a, DeletePod)] == [protected]
    assert (world.gated("v"), world.gated("p")) == (4, 0)


@pytest.mark.parametrize("least", [3, 4])
def test_a_budget_keeps_no_gang_whose_queue_deletes_pods_in_the_end(least: int) -> None:
    """Whether it lets one pod go, or none: a dry run that it refuses is overruled as well."""
    rules = {**LOWER, "deleteAfterSeconds": 120}
    world = World(node("n1", cpu=4), queue("team", preemption=rules))
    world.create(gang_in("team", "v", 3), budget("v", least, cluster="v"))
    world.settle(seconds=10)
    before = names_of(world.pods("v"))
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=100)
    assert world.status("v")["phase"] == "Preempting"
    assert len(set(before) & set(names_of(world.pods("v")))) == least
    world.settle(seconds=90)
    deleted = [a.name for a in world.leader.log if isinstance(a, DeletePod)]
    assert (len(deleted), set(deleted) <= set(before)) == (least, True)
    assert (world.gated("v"), world.status("p")["phase"]) == (4, "Running")


# ---- what budgets say of all evictions together


def test_a_gang_is_chosen_only_where_its_budget_lets_all_of_its_pods_go() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption=LOWER))
    world.create(gang_in("team", "w", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "v", 3), budget("one-by-one", 3, cluster="v"))
    world.settle(seconds=10)
    before = names_of(world.pods("v"))
    world.create(urgent("p", 3, labels=IN_TEAM))  # of equals the one that came last would go
    world.settle(seconds=30)
    assert phases(world, "v", "w", "p") == ["Running", "Queued", "Running"]
    world.create(urgent("q", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert world.status("q")["message"].endswith(
        "team/v cannot be stopped for it: PodDisruptionBudget one-by-one lets 1 of its pods go "
        "now, and 4 ready pods would have to"
    )
    assert names_of(world.pods("v")) == before
    world.delete("poddisruptionbudgets", "one-by-one")
    world.settle(seconds=700)
    assert world.status("q")["phase"] == "Running"


def test_the_pods_of_all_gangs_that_end_together_count_against_one_budget() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(gang_in("team", "v", 1), gang_in("team", "w", 1))
    world.create(budget("workers", 1, group="workers"))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels=IN_TEAM))  # needs both, each of which could go alone
    world.settle(seconds=30)
    assert evicted(world) == []
    assert "PodDisruptionBudget workers lets 1 of its pods go now" in world.status("p")["message"]
    world.create(urgent("q", 1, labels=IN_TEAM))
    world.settle(seconds=130)
    assert world.status("q")["phase"] == "Running"


def test_pods_whose_end_is_decided_count_against_a_budget_before_they_are_evicted() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1), budget("workers", 1, group="workers"))
    world.settle(seconds=10)
    world.create(urgent("p", 1), urgent("q", 1))
    world.settle(seconds=10)
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    choose_whole(world, "q", "w")
    while others := [at for at, a in enumerate(leader.todo) if not isinstance(a, EvictPod)]:
        leader.act(others[0])
    assert "1 of them for other gangs" in parts(world, "w")[0].kept_because
    world.settle(seconds=20)
    assert (world.gated("v"), world.bound("w").total()) == (2, 2)


def test_a_replica_of_several_hosts_ends_only_where_a_budget_lets_all_of_them_go() -> None:
    world = World(node("n1", cpu=5))
    world.create(elastic(2, 1, hosts=2), budget("workers", 3, group="workers"))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    chosen = parts(world, "v")[1]
    choose(world, "p", chosen)
    world.settle(seconds=10)
    assert evicted(world) == []
    assert "lets 1 of its pods go now" in parts(world, "v")[1].kept_because


def test_no_gang_is_stopped_whose_budgets_cannot_be_read() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: any(isinstance(each, ReadBudgets) for each in leader.todo))
    leader.act(reads_fail=True)
    assert "PodDisruptionBudgets cannot be read" in parts(world, "v")[0].kept_because
    world.settle(seconds=10)
    assert evicted(world) == []


def test_budgets_are_read_once_for_all_gangs_of_a_namespace() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    choose_whole(world, "p", "v", "w")
    world.settle(seconds=10)
    assert world.status("p")["phase"] == "Running"
    assert sum(isinstance(each, ReadBudgets) for each in world.leader.log) == 1


def test_of_another_namespace_neither_gangs_nor_budgets_are_named_where_nothing_is_stopped() -> (
    None
):
    """Two equal gangs, of which one is in the namespace of what cannot be stopped."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create({"kind": "Namespace", "metadata": {"name": "secret"}})
    world.create(gang_of("merger", 3, labels=IN_TEAM, namespace="secret"))
    world.settle(seconds=10)
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("merger")), PDB))
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.create(urgent("q", 3, labels=IN_TEAM, namespace="secret"))
    world.settle(seconds=20)
    told = [world.status("p"), world.api.get(Key("gangs", "secret", "q"))["status"]]
    assert [each["message"].partition("secret/merger; ")[2] for each in told] == [
        "1 gang of another namespace cannot be stopped for it: a PodDisruptionBudget forbids it",
        f"secret/merger cannot be stopped for it: {PDB}",
    ]


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
    act_until(world, lambda: evicted(world))
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
    leader.act(at)
    before = set(names_of(world.pods("v")))
    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.status("v")["phase"] == "Running"  # anew, in the room that came free
    assert not before & set(names_of(world.pods("v")))


@pytest.mark.parametrize("quota", [None, 6])
def test_a_gang_that_is_opted_out_halfway_ends_no_further_and_nothing_waits_for_that(
    quota: int | None,
) -> None:
    """Nor is its end taken up where it is opted in again."""
    world = World(node("n1", cpu=4), queue("team", quota, preemption=LOWER), replicas=2)
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels=IN_TEAM))
    leader = world.leader
    while len(evicted(world)) < 2:
        world.kuberay()
        leader.hear_all()
        leader.tick()
        leader.cycle()
        if leader.todo:
            leader.act()
    cluster = world.api.get(next(k for k in world.api.objects if k.name == "v"))
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update({names.OPT_IN: "false"}))
    world.settle(seconds=60)
    assert world.bound("v").total() == 4
    assert world.status("p")["reason"] == "InsufficientResources"
    assert "it is opted out" in world.status("p")["message"]
    left = names_of(world.pods("v"))
    world.leader.resign()
    world.elect(1)
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update({names.OPT_IN: "true"}))
    world.api.change(
        world.api.get(Key("gangqueues", "", "team")), lambda o: o["spec"].pop("preemption")
    )
    world.settle(seconds=60)
    assert names_of(world.pods("v")) == left


@pytest.mark.parametrize("label", [{names.OPT_IN: "false"}, {names.QUEUE: "nowhere"}])
def test_a_gang_goes_on_where_the_one_that_it_was_to_end_for_may_ask_no_more(label: Json) -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.leader.act_all_but(WriteGangStatus)
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update(label))
    world.settle(seconds=20)
    assert evicted(world) == []
    assert ending(world, "v") == []
    assert world.bound("v") == {"n1": 4}


def at_the_write() -> World:
    """The end of gang v for p is written, and no eviction was sent."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=2)
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels=IN_TEAM))
    leader = world.leader
    go_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    while sends := [at for at, a in enumerate(leader.todo) if isinstance(a, EvictPod)]:
        leader.act(sends[0], Outcome.UNSENT)
    assert ending(world, "v")
    return world


def test_a_gang_goes_on_where_the_queue_of_the_other_lets_it_stop_no_more() -> None:
    world = at_the_write()
    before = names_of(world.pods("v"))
    change(world, "team", preemption={"withinQueue": "Never"})
    world.settle(seconds=30)
    assert names_of(world.pods("v")) == before
    assert phases(world, "v", "p") == ["Running", "Queued"]
    assert ending(world, "v") == []


@pytest.mark.parametrize("leader", [0, 1])
def test_a_gang_goes_on_where_the_other_was_made_anew_under_its_name(leader: int) -> None:
    """The new one asks for more than there ever was: a priority alone gives no right to v."""
    world = at_the_write()
    before = names_of(world.pods("v"))
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.create(urgent("p", 30, labels=IN_TEAM))
    if leader:
        world.kuberay()
        world.leader.resign()
        world.elect(leader)
    world.settle(seconds=30)
    assert names_of(world.pods("v")) == before
    assert world.status("v")["phase"] == "Running"


def test_a_new_leader_stops_no_gang_of_which_nothing_is_gone_for_one_that_is_gone() -> None:
    world = two_gangs(replicas=2)
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: ending(world, "v"))
    before = names_of(world.pods("v"))
    leader.resign()
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.elect(1)
    world.settle(seconds=60)
    assert names_of(world.pods("v")) == before
    assert ending(world, "v") == []
    assert (world.status("v")["phase"], world.bound("v").total()) == ("Running", 4)


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
    world = two_gangs(replicas=2)
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
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
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(gang_of("v", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    leader = world.leader
    world.create(urgent("p", 3, labels=IN_TEAM))
    while not leader.state.known.term.trials:
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
    assert not world.leader.state.known.term.trials
    assert evicted(world) == []
    assert world.leader.state.known.views[key("v")].eviction.probes == {}


def test_a_choice_that_changes_is_tried_anew_and_one_that_stands_is_not() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    choose_whole(world, "p", "v")
    assert sum(isinstance(each, TryEviction) for each in world.leader.log) == 4


# ---- another leader


@pytest.mark.parametrize("acts", every_other(range(22)))
def test_another_leader_finishes_or_undoes_what_one_began(acts: int) -> None:
    world = two_gangs(replicas=2)
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
    states = phases(world, "v", "p")
    assert states in (["Running", "Queued"], ["Queued", "Running"])
    assert sorted((world.bound(each).total(), world.gated(each)) for each in ("v", "p")) == [
        (0, 4),
        (4, 0),
    ]
    assert states == ["Queued", "Running"] or not (written or begun)


def test_a_new_leader_finishes_an_end_of_which_no_room_is_left_to_be_given_back() -> None:
    world = two_gangs(replicas=2)
    refused_halfway(world)
    world.settle(seconds=30)
    assert world.gated("v") == 2
    assert "placement" not in world.status("v")
    world.leader.resign()
    for pod in world.pods("v"):
        world.delete("pods", pod["metadata"]["name"])
    world.controllers()
    assert world.gated("v") == 4
    world.elect(1)
    world.settle(seconds=120)
    assert (world.gated("v"), world.bound("p").total()) == (4, 4)
    assert ending(world, "v") == []


def test_a_new_leader_goes_on_with_surplus_that_ends() -> None:
    world = World(node("n1", cpu=5), replicas=2)
    world.create(elastic(4, 1))
    world.settle(seconds=10)
    world.create(urgent("p", 1))
    world.settle(seconds=10)
    leader = world.leader
    choose(world, "p", *parts(world, "v")[1:3])
    act_until(world, lambda: ending(world, "v"))
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
    assert not world.replicas[1].state.known.views[key("v")].survey.ran


# ---- parts


def slow_scheduler(world: World, name: str, bound: int) -> None:
    """Have kube-scheduler bind so many workers of a gang and no more."""
    schedule = world._schedule_one

    def schedule_some(raw: Json) -> None:
        pod = raw["metadata"]["name"]
        done = [each for each in world.pods(name) if each["spec"].get("nodeName")]
        if not pod.startswith(f"{name}-workers") or len(done) < 1 + bound:
            schedule(raw)

    world._schedule_one = schedule_some  # type: ignore[method-assign]


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
        held = sum(h.amounts["cpu"] for h in leader.state.known.quota.of(key("v")).values())
        room = [dict(each)["cpu"] for part in parts(world, "v") for _, each in part.room]
        assert sum(room) == held
        if leader.todo:
            leader.act()
        leader.hear_all()
    marked = [part for part in parts(world, "v") if part.is_ending]
    assert [len(part.room) for part in marked] == [2]


def test_surplus_that_ends_before_it_is_bound_is_in_some_part_at_each_step() -> None:
    world = World(node("n1", cpu=5))
    slow_scheduler(world, "v", 1)
    world.create(elastic(4, 1))
    world.settle(seconds=5)
    world.create(urgent("p", 1))
    world.settle(seconds=5)
    leader, found = world.leader, list[list[GangPart]]()
    choose(world, "p", *parts(world, "v")[1:3])
    for _ in range(30):
        found.append(parts(world, "v"))
        held = sum(h.amounts["cpu"] for h in leader.state.known.quota.of(key("v")).values())
        room = [dict(each)["cpu"] for part in found[-1] for _, each in part.room]
        assert sum(room) == held
        if leader.todo:
            leader.act()
        leader.hear_all()
    ends = [len(part.room) for each in found for part in each if part.is_ending]
    assert max(ends) == 2


def test_a_gang_that_is_opted_out_or_deleted_is_no_victim() -> None:
    world = two_gangs()
    cluster = world.api.get(next(k for k in world.api.objects if k.name == "v"))
    world.api.hold(cluster, "test/finalizer")
    world.delete("rayclusters", "v")
    world.leader.hear_all()
    (part,) = parts(world, "v")
    assert part.is_ending


def opted_out_and_grown(workers: int) -> World:
    """A gang of queue `a` that was opted out, and has workers since which no quota counts."""
    queues = queue("a", cpu=4, parent="root"), queue("b", cpu=4, parent="root", preemption=RECLAIM)
    world = World(node("n1", cpu=8), queue("root"), *queues)
    world.create(gang_in("a", "out", 0))
    world.settle(seconds=20)
    cluster = world.api.get(Key("rayclusters", TEAM, "out"))
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update({names.OPT_IN: "false"}))
    world.settle(seconds=20)
    world.webhook = False  # it gates no pod of a Ray cluster that is no gang
    world.scale("out", workers)
    world.settle(seconds=20)
    for pod in world.pods("out"):
        if not pod["spec"].get("nodeName"):
            world.api.change(pod, lambda o: o["spec"].update(nodeName="n1"))
    world.webhook = True
    world.settle(seconds=20)
    return world


def cpu_of(room: Iterable[tuple[str, Requests]]) -> int:
    return sum(dict(requests)["cpu"] for _, requests in room)


def test_pods_that_an_opted_out_gang_adds_use_up_no_quota_that_covers_other_gangs() -> None:
    """They fill the node, and what is covered runs on: 3 CPU and 1 of the quota of 4."""
    world = opted_out_and_grown(3)
    world.create(gang_in("a", "v", 2), foreign_pod("f", "n1", cpu=1))
    world.settle(seconds=20)
    world.create(gang_in("b", "p", 0))
    world.settle(seconds=60)
    assert phases(world, "v", "p") == ["Running", "Queued"]
    assert [cpu_of(each.room) for each in parts(world, "out")] == [1000]


def test_of_an_opted_out_gang_only_that_quota_is_expected_back_which_it_counts_for() -> None:
    """The node gets back all."""
    world = opted_out_and_grown(3)
    known = world.leader.state.known
    holdings = list(queues_of(known, world.leader._moment()).holdings())
    assert [(each.queue, cpu_of(each.room)) for each in holdings] == [("a", 1000), ("", 3000)]


def test_surplus_that_is_released_and_not_bound_is_enough_where_the_room_of_it_is() -> None:
    world = World(node("n1", cpu=5), queue("team", preemption=LOWER))
    slow_scheduler(world, "v", 1)
    annotations = {names.MIN_REPLICAS: "workers=1"}
    world.create(gang_in("team", "v", 4, annotations=annotations))
    world.settle(seconds=5)
    assert world.bound("v").total() == 2
    assert [len(each.room) for each in parts(world, "v")] == [2, 1, 1, 1]
    before = names_of(pod for pod in world.pods("v") if pod["spec"].get("nodeName"))
    world.create(urgent("p", 1, labels=IN_TEAM))
    world.settle(seconds=20)
    assert world.status("p")["phase"] == "Running"
    assert world.status("v")["phase"] == "Running"
    assert set(before) <= set(names_of(world.pods("v")))


# ---- chosen by cycles


def test_a_cycle_chooses_surplus_first_then_whole_gangs_and_the_room_is_kept() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption=LOWER))
    annotations = {names.MIN_REPLICAS: "workers=1"}
    world.create(gang_of("low", 3, labels=IN_TEAM, annotations=annotations))
    world.create(gang_of("w", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    world.create(urgent("p", 1, labels=IN_TEAM))
    world.settle(seconds=10)
    assert world.status("p")["phase"] == "Running"
    assert (world.bound("low").total(), world.gated("low")) == (2, 2)
    assert world.bound("w").total() == 4
    world.create(urgent("q", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    assert world.status("q")["phase"] == "Running"
    assert [world.bound(each).total() for each in ("low", "w")] in ([2, 0], [0, 4])
    for each in ("p", "q"):
        world.delete("rayclusters", each)
    world.settle(seconds=60)
    assert phases(world, "low", "w") == ["Running", "Running"]
    assert world.gated() == 0


def test_a_rayservice_gives_its_surplus_and_serves_on_with_its_head_and_minimum() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(ray_service("serve"))
    service = world.api.get(Key("rayservices", TEAM, "serve"))
    least = {names.MIN_REPLICAS: "workers=1"}
    cluster = gang_of("v", 3, labels=IN_TEAM, annotations=least)
    world.create(owned_by(service, cluster))
    named = {"activeServiceStatus": {"rayClusterName": "v"}}
    world.api.change(service, lambda obj: obj["status"].update(named))
    world.settle(seconds=10)
    head = head_of(world, "v")
    world.create(urgent("p", 1, labels=IN_TEAM))
    world.settle(seconds=30)
    assert (world.bound("p").total(), world.bound("v").total()) == (2, 2)
    assert (head_of(world, "v"), world.status("v")["phase"]) == (head, "Running")


def test_a_gang_that_had_grown_comes_back_with_its_minimum() -> None:
    """What the autoscaler had added is no condition of its next start."""
    world = World(node("n1", cpu=5), queue("team", preemption=LOWER))
    workers = group("workers", 1, least=1, most=9)
    world.create(ray_cluster("v", workers, labels=IN_TEAM, enableInTreeAutoscaling=True))
    world.settle(seconds=10)
    world.scale("v", 4)
    world.settle(seconds=10)
    assert world.bound("v").total() == 5
    world.create(urgent("p", 4, labels=IN_TEAM))
    world.settle(seconds=60)
    assert (world.bound("p").total(), world.bound("v").total()) == (5, 0)
    world.create(node("n2", cpu=2))
    world.settle(seconds=60)
    assert (world.bound("v"), world.status("v")["phase"]) == ({"n2": 2}, "Running")


def test_a_cycle_chooses_others_where_a_budget_forbids() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption=LOWER))
    world.create(gang_of("v", 3, labels=IN_TEAM), gang_of("w", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    world.api.budgets[workers_of(world, "w")[0]] = PDB
    world.api.budgets[head_of(world, "w")] = PDB
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert phases(world, "v", "w", "p") == ["Queued", "Running", "Running"]
    world.create(urgent("q", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert world.status("q")["phase"] == "Queued"
    assert "team/w" in world.status("q")["message"]
    assert "would violate the budget" in world.status("q")["message"]
    world.api.budgets.clear()
    world.settle(seconds=700)
    assert world.status("q")["phase"] == "Running"


def test_parts_that_are_kept_from_one_cycle_to_the_next_are_as_they_would_be_found_anew() -> None:
    world = World(node("n1", cpu=8), queue("team", preemption=LOWER))
    annotations = {names.MIN_REPLICAS: "workers=1", names.EXPECTED_DURATION: "20s"}
    leader, compared = world.leader, Counter[bool]()

    def compare() -> None:
        if leader.state.known.agenda.late:
            return  # these are looked at before a cycle
        line_up(leader.state.known)
        kept = list(parts_of(leader.state.known, leader._moment()))
        leader.state.known.cycles.parts.clear()
        assert kept == list(parts_of(leader.state.known, leader._moment()))
        compared[any(part.outlived for part in kept)] += bool(kept)

    world.create(gang_of("low", 4, labels=IN_TEAM, annotations=annotations))
    for moment in range(120):
        if moment == 30:
            world.create(urgent("p", 3, labels=IN_TEAM))
        if moment == 60:
            world.create(urgent("q", 2, labels=IN_TEAM))
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
    elastic = {names.MIN_REPLICAS: "workers=2"}
    world.create(gang_of("a", 4, labels=IN_TEAM, annotations=elastic))
    world.create(gang_of("b", 4, labels=IN_TEAM))
    world.settle(seconds=10)
    assert world.gated() == 0
    world.create(urgent("p", 1, labels=IN_TEAM), urgent("q", 3, labels=IN_TEAM))
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


@pytest.mark.parametrize("seed", every_other(range(20)))
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
        queue("team", preemption=LOWER),
    )
    here = {"zone": "a"}
    low = group("workers", 3, nodeSelector=here)
    elastic = {names.MIN_REPLICAS: "workers=1"}
    head = template(nodeSelector=here)
    world.create(ray_cluster("v", low, head=head, labels=IN_TEAM, annotations=elastic))
    workers, head = group("workers", 1, priority=10), template(priority=10, nodeSelector=here)
    world.create(ray_cluster("p", workers, head=head, labels=IN_TEAM))
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 1, "n2": 1}
    world.delete("nodes", "n2")
    world.settle(seconds=30)
    assert world.bound("p") == {"n1": 2}
    assert world.bound("v") == {"n1": 3}
    assert ending(world, "v") == []


def test_a_gang_that_lost_two_workers_waits_for_both_that_end_for_it() -> None:
    """A part of them placed early would end what is held for the rest."""
    here = {"zone": "a"}
    world = World(
        node("n1", cpu=6, labels=here), node("n2", cpu=2), queue("team", preemption=LOWER)
    )
    low = group("workers", 4, nodeSelector=here)
    least = {names.MIN_REPLICAS: "workers=1"}
    head = template(nodeSelector=here)
    world.create(ray_cluster("v", low, head=head, labels=IN_TEAM, annotations=least))
    workers, head = group("workers", 2, priority=10), template(priority=10, nodeSelector=here)
    world.create(ray_cluster("p", workers, head=head, labels=IN_TEAM))
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 1, "n2": 2}
    remove = world.api.remove
    stay(world, "v-")
    world.delete("nodes", "n2")
    world.settle(seconds=5)
    world.create(gang_of("filler", 0, labels=IN_TEAM))
    leaving = [pod for pod in world.pods("v") if "deletionTimestamp" in pod["metadata"]]
    assert len(leaving) == 2
    for pod in leaving:
        remove(key_of(pod))
        world.settle(seconds=3)
    assert (world.bound("p"), world.bound("filler")) == ({"n1": 3}, {})
    assert len(evicted(world)) == 2


def test_the_quota_of_a_hold_that_ends_is_there_for_others_in_the_same_cycle() -> None:
    """The only victim is protected, so what was held for the urgent gang is given back."""
    world = World(node("n1", cpu=4), queue("team", cpu=6, preemption=LOWER))
    world.create(gang_of("v", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    world.create(gang_of("q", 1, labels=IN_TEAM))
    world.settle(seconds=10)
    world.api.budgets.update({workers_of(world, "v")[0]: PDB})
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=600)
    assert world.status("q")["reason"] == "InsufficientResources"
    assert world.status("p")["reason"] == "QuotaExceeded"
    assert "team/v cannot be stopped for it" in world.status("p")["message"]


def test_the_room_is_held_when_a_device_class_changes_while_the_victim_ends() -> None:
    """`other`, of another queue, waits for longer: it would get the room that comes free."""
    team, plain = ({**OPTED_IN, names.QUEUE: each} for each in ("team", "plain"))
    within = {"withinQueue": "LowerPriority"}
    nodes = node("n1", cpu=4), node("n2", cpu=4)
    world = World(*nodes, queue("team", preemption=within), queue("plain"))
    for name in ("v1", "v2"):
        world.create(gang_of(name, 3, labels=team))
        world.settle(seconds=5)
    world.create(urgent("other", 3, labels=plain))
    world.settle(seconds=5)
    world.create(urgent("p", 3, labels=team))
    for _ in range(400):
        world.controllers()
        world.leader.hear_all()
        if not world.bound("v2"):
            break
        world.leader.tick()
        world.leader.cycle()
        if world.leader.todo:
            world.leader.act()
    assert not world.bound("v2")
    assert not world.bound("p")
    world.create({"kind": "DeviceClass", "metadata": {"name": "any.example.com"}, "spec": {}})
    world.settle(seconds=60)
    assert world.bound("p") == {"n2": 4}
    assert world.bound("v1") == {"n1": 4}
    assert not world.bound("other")


def test_a_gang_that_was_refused_when_another_was_admitted_is_asked_again() -> None:
    """Where a queue is FIFO the older one is first, and one of higher priority stops it then."""
    fifo = queue("team", 100, ordering="FIFO", preemption=LOWER)
    world = World(node("n1", cpu=4), fifo, urgent("runs", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    world.create(gang_in("team", "low", 3))
    world.settle(seconds=10)
    world.create(urgent("high", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    assert phases(world, "low", "high") == ["Queued", "Queued"]
    world.delete("rayclusters", "runs")
    world.settle(seconds=60)
    assert phases(world, "low", "high") == ["Queued", "Running"]
