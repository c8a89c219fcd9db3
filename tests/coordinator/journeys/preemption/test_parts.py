"""The parts of gangs that a cycle may stop, and what they hold."""

from collections import Counter
from collections.abc import Iterable

from coordinator.state.cycle.cycle_input import line_up, queues_of
from coordinator.state.cycle.preemptible import parts_of
from kube.objects import names
from scheduling.model.amounts import Requests
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    foreign_pod,
    gang_of,
    node,
)
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, LOWER, elastic, two_gangs, urgent
from tests.coordinator.journeys.queues.worlds import gang_in, phases, queue
from tests.coordinator.stopping import (
    choose,
    parts,
)
from tests.coordinator.world import World, key

RECLAIM = {"reclaim": "Any"}


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
