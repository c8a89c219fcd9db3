"""How often queues are written, and what becomes of writes that fail."""

import pytest

from coordinator.messages.actions import (
    Action,
    WriteQueueFinalizers,
)
from coordinator.queues.write_budget import EACH, MOST, WINDOW
from tests.coordinator.api import Api, Key
from tests.coordinator.builders import Json, node
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.queues.worlds import (
    QUEUE_WRITES,
    active,
    change,
    found,
    gang_in,
    queue,
    queue_writes,
    status_of,
)
from tests.coordinator.world import World

# ---- writes


def test_a_queue_that_does_not_change_is_written_once() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.settle(seconds=300)
    assert len(queue_writes(world.leader.log)) == 1


def test_a_queue_is_written_at_most_once_in_some_seconds() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=50))
    for at in range(10):
        world.create(gang_in("team", f"gang-{at}", 1))
        world.settle(seconds=1)
    assert 1 < len(queue_writes(world.leader.log)) <= 1 + 10 / EACH
    world.settle(seconds=EACH)
    assert status_of(world, "team")["admitted"] == 10


def test_few_queues_are_written_within_a_second() -> None:
    """Each write takes its turn, and none is forgotten."""
    many = [queue(f"team-{at:02}", cpu=4) for at in range(4 * MOST)]
    world = World(node("n1"), *many)
    written = []

    def writes() -> list[Action]:
        return [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)]

    for _ in range(12):
        before = len(writes())
        world.settle(seconds=WINDOW)
        written.append(len(writes()) - before)
    assert max(written) <= 2 * MOST, "a span of a second may have the ends of two"
    assert len(writes()) == 2 * len(many)
    assert sum(written[:4]) <= 5 * MOST


@pytest.mark.parametrize("outcome", [Outcome.UNSENT, Outcome.LOST, Outcome.BROKEN])
def test_a_failed_write_is_tried_again(outcome: Outcome) -> None:
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    world.leader.act(outcome=outcome)
    world.settle(seconds=30)
    assert active(world, "team") == ("True", "Active", "")
    assert len(queue_writes(world.leader.log)) <= 2


def test_after_a_conflict_the_watch_is_waited_for() -> None:
    """A write on a version that is too old would fail again and again."""
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    world.api.change(found(world, "team"), lambda obj: obj["metadata"].update(labels={"a": "b"}))
    world.leader.act()
    for _ in range(20):
        world.api.now += 10
        world.leader.tick()
    assert len(queue_writes(world.leader.log)) == 1
    world.settle(seconds=30)
    assert len(queue_writes(world.leader.log)) == 2
    assert active(world, "team") == ("True", "Active", "")


def test_one_write_of_a_queue_is_under_way_at_a_time() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    for quota in range(5, 25):
        change(world, "team", quota={"cpu": str(quota)})
        world.leader.hear_all()
        world.api.now += 1
        world.leader.tick()
    assert len(queue_writes(world.leader.log)) == 1


def test_finalizers_that_cannot_be_written_are_tried_more_and_more_seldom() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    fail_writes_of_finalizers(world, seconds=100)
    tries = [each for each in world.leader.log if isinstance(each, WriteQueueFinalizers)]
    assert 5 < len(tries) < 25


def fail_writes_of_finalizers(world: World, *, seconds: int) -> None:
    leader = world.leader
    for _ in range(seconds):
        world.controllers()
        leader.hear_all()
        leader.tick()
        leader.cycle()
        while leader.todo:
            failing = isinstance(leader.todo[0], WriteQueueFinalizers)
            leader.act(outcome=Outcome.UNSENT if failing else Outcome.DONE)
        world.api.now += 1


def test_a_queue_that_goes_before_it_is_written_is_forgotten() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.leader.hear_all()
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert not queue_writes(world.leader.log)


class OldApi(Api):
    """Has the CRD of an older release, which does not know the summary."""

    def _store(self, key: Key, obj: Json) -> Json:
        known = {name: said for name, said in obj.get("status", {}).items() if name != "summary"}
        return super()._store(key, {**obj, "status": known})

    def _update(self, key: Key, old: Json, asked: Json, subresource: str) -> Json:
        asked.get("status", {}).pop("summary", None)
        return super()._update(key, old, asked, subresource)


def test_what_an_older_schema_drops_is_not_written_over_and_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.coordinator.world.Api", OldApi)
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.settle(seconds=300)
    assert len(queue_writes(world.leader.log)) < 4
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=20)
    assert status_of(world, "team")["admitted"] == 1


def until_queue_write(world: World) -> None:
    """Go on until the leader is about to write the status of a queue."""
    leader = world.leader
    leader.hear_all()
    while not queue_writes(leader.todo):
        leader.act_all()
        leader.hear_all()
        world.api.now += 1
        leader.tick()
    assert len(leader.todo) == 1


def test_only_the_leader_writes_and_another_one_goes_on() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert not queue_writes(world.replicas[1].log)

    world.leader.resign()
    world.elect(1)
    world.settle(seconds=30)
    assert not queue_writes(world.replicas[1].log), "it says the same"
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=30)
    assert status_of(world, "team")["pending"] == 1
    assert status_of(world, "team")["admitted"] == 1


def test_a_replica_that_does_not_lead_asks_for_no_time() -> None:
    world = World(node("n1"), queue("team", cpu=4), replicas=2)
    other = world.replicas[1]
    other.hear_all()
    assert other.state.next_wake is None
    world.leader.act_all()
    world.leader.hear_all()
    assert world.leader.state.next_wake is not None
    world.leader.resign()
    assert world.leader.state.next_wake is None


def test_a_write_that_an_earlier_term_did_not_make_is_made_in_the_next() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    world.leader.resign()
    world.elect(0)
    world.settle(seconds=10)
    assert active(world, "team") == ("True", "Active", "")
