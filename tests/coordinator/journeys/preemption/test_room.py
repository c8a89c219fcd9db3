"""Whom room and quota of victims go to."""

from kube.objects import names
from tests.coordinator.api import key_of
from tests.coordinator.builders import (
    OPTED_IN,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.preemption.worlds import (
    IN_TEAM,
    LOWER,
    PDB,
    evicted,
    stay,
    urgent,
    workers_of,
)
from tests.coordinator.journeys.queues.worlds import gang_in, phases, queue
from tests.coordinator.stopping import (
    ending,
)
from tests.coordinator.world import World


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
