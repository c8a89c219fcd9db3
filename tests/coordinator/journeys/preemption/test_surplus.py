"""Surplus ends before gangs, replica by replica."""

import pytest

from coordinator.messages.actions import (
    EvictPod,
    WriteGangStatus,
)
from kube.objects import names
from scheduling.model.preemption import GangPart
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.preemption.worlds import (
    IN_TEAM,
    LOWER,
    elastic,
    evicted,
    head_of,
    urgent,
    workers_of,
)
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.ray_jobs import owned_by, ray_service
from tests.coordinator.stopping import (
    act_until,
    choose,
    choose_whole,
    condition,
    ending,
    names_of,
    parts,
)
from tests.coordinator.world import World, is_gated, key

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
