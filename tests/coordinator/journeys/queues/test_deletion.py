"""A queue goes only with the last gang that holds its quota."""

import pytest

from coordinator.queues.write_budget import EACH
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, node
from tests.coordinator.journeys.queues.worlds import (
    active,
    found,
    gang_in,
    name_queue,
    phases,
    queue,
    queue_writes,
    status_of,
)
from tests.coordinator.world import World

FINALIZER = "muster.dev/admitted-gangs"


def test_gangs_that_ended_under_another_leader_are_counted_no_more() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=10)
    world.leader.resign()
    world.elect(1)
    world.delete("rayclusters", "a")
    world.delete("rayclusters", "b")
    world.settle(seconds=20)
    world.replicas[1].resign()
    world.elect(0)
    world.settle(seconds=20)
    assert not world.leader.state.known.quota.gangs
    assert (status_of(world, "team")["pending"], status_of(world, "team")["admitted"]) == (0, 0)


def test_a_new_leader_counts_pods_whose_ray_cluster_is_gone() -> None:
    """They hold quota as they hold nodes until they are gone."""
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.delete("rayclusters", "a")
    world.collect_garbage()
    assert not list(world.api.all("gangs"))
    new = world.elect(1)
    (by_uid,) = new.state.known.quota.gangs.values()
    (held,) = by_uid.values()
    assert (held.queue, held.amounts["cpu"]) == ("team", 4000)


# ---- deletion


def test_a_queue_goes_only_with_its_last_gang() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == [FINALIZER]

    world.api.delete(Key("gangqueues", "", "team"))
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=10)
    said = "the GangQueue is being deleted: it goes once none of its gangs holds anything"
    assert active(world, "team") == ("False", "Terminating", said)
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert world.status("b")["reason"] == "QueueInactive"

    world.delete("rayclusters", "a")
    world.settle()
    assert not list(world.api.all("gangqueues")), "it is not kept longer"


def test_a_queue_that_is_deleted_as_soon_as_its_first_gang_is_placed_stays() -> None:
    """Without the finalizer it would go, and what its gangs hold would count nowhere."""
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle()
    assert phases(world, "a") == ["Running"]
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert active(world, "team")[:2] == ("False", "Terminating")


def test_a_queue_that_is_being_deleted_is_written_no_more_often() -> None:
    gangs = [f"gang-{at}" for at in range(8)]
    world = World(node("n1", cpu=100), queue("team", cpu=50))
    world.create(*(gang_in("team", name, 1) for name in gangs))
    world.settle(seconds=20)
    world.api.delete(Key("gangqueues", "", "team"))
    before = len(queue_writes(world.leader.log))
    for name in gangs[1:]:
        world.delete("rayclusters", name)
        world.settle(seconds=1)
    assert len(queue_writes(world.leader.log)) - before <= 1 + len(gangs) / EACH


def test_the_finalizer_is_not_put_on_a_queue_that_is_being_deleted() -> None:
    """The API server would refuse it."""
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.api.hold(found(world, "team"), FINALIZER, "example.com/theirs")
    world.api.delete(Key("gangqueues", "", "team"))
    world.api.hold(found(world, "team"), "example.com/theirs")
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == ["example.com/theirs"]


def opt_in(world: World, gang: str, said: str) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, gang))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].update({names.OPT_IN: said}))


@pytest.mark.parametrize("leader", [0, 1])
def test_a_gang_that_was_opted_out_comes_back_into_its_queue(leader: int) -> None:
    """The queue that it names meanwhile was not asked for what its pods use."""
    queues = queue("team", cpu=4), queue("other", cpu=1)
    world = World(node("n1", cpu=100), *queues, replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    opt_in(world, "a", "false")
    world.settle(seconds=20)
    name_queue(world, "a", "other")
    world.settle(seconds=10)
    if leader:
        world.leader.resign()
        world.elect(leader)
        world.settle(seconds=20)
    opt_in(world, "a", "true")
    world.settle(seconds=20)
    used = {name: status_of(world, name)["summary"] for name in ("team", "other")}
    assert used == {"team": "cpu 4/4", "other": "cpu 0/1"}
    assert world.status("a")["phase"] == "Running"


def test_a_gang_that_was_opted_out_holds_quota_while_its_pods_run() -> None:
    """Its record says in which queue, and goes with them."""
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    opt_in(world, "a", "false")
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=20)
    told = world.status("a")
    assert (told["reason"], "placement" in told) == ("OptedOut", False)
    assert "counts in queue team" in told["message"]
    assert phases(world, "b") == ["Queued"]
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=20)
    assert (phases(world, "b"), world.bound("a")) == (["Queued"], {"n1": 4})
    assert status_of(world, "team")["summary"] == "cpu 4/4"

    world.edit("a", suspend=True)
    world.settle(seconds=20)
    assert not [each for each in world.api.all("gangs") if each["metadata"]["name"] == "a"]
    assert phases(world, "b") == ["Running"]


def test_a_gang_that_was_opted_out_does_not_hold_up_the_deletion_of_its_queue() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    opt_in(world, "a", "false")
    world.settle(seconds=20)
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert not list(world.api.all("gangqueues"))
    assert not list(world.api.all("gangs"))
    assert world.bound("a") == {"n1": 4}


def test_a_queue_without_gangs_goes_at_once() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == [FINALIZER]
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle()
    assert not list(world.api.all("gangqueues"))


def test_finalizers_of_others_stay() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.api.hold(found(world, "team"), "example.com/theirs")
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == ["example.com/theirs", FINALIZER]
    world.api.delete(Key("gangqueues", "", "team"))
    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == ["example.com/theirs"]
