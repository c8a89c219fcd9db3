"""Quota holds gangs back, and goes with what queues are above and beside."""

from coordinator.messages.actions import (
    WriteGangStatus,
)
from coordinator.messages.events import WatchLost, WatchRecovered
from tests.coordinator.builders import node
from tests.coordinator.journeys.queues.worlds import (
    QUEUE_WRITES,
    active,
    change,
    gang_in,
    phases,
    queue,
    reserved,
    status_of,
)
from tests.coordinator.world import World

# ---- gangs


def test_quota_holds_a_gang_back_until_another_one_ends() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "b", 2))
    world.settle(seconds=10)

    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert world.status("b")["reason"] == "QuotaExceeded"
    assert world.status("b")["message"] == (
        "queue team uses 4 of its quota of 4 cpu and may take 0 more, and the gang needs 3"
    )
    assert reserved(world, "a") == ("True", "Admitted")
    assert reserved(world, "b") == ("False", "QuotaExceeded")

    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert phases(world, "b") == ["Running"]
    assert reserved(world, "b") == ("True", "Admitted")


def test_a_quota_that_is_raised_lets_a_waiting_gang_in() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=2))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert world.status("a")["reason"] == "QuotaExceeded"

    change(world, "team", quota={"cpu": "4"})
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]


def test_a_quota_that_is_lowered_ends_nothing() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    change(world, "team", quota={"cpu": "1"})
    world.settle(seconds=60)

    assert phases(world, "a") == ["Running"]
    assert world.bound("a") == {"n1": 4}
    assert status_of(world, "team")["summary"] == "cpu 4/1"
    assert status_of(world, "team")["borrowed"] == {"cpu": "3000m"}


def two_teams() -> World:
    """Two queues that share 8 CPUs."""
    queues = [queue("all"), queue("red", cpu=4, parent="all"), queue("blue", cpu=4, parent="all")]
    return World(node("n1", cpu=100), *queues)


def test_what_an_inactive_queue_has_borrowed_is_not_given_out_again() -> None:
    world = two_teams()
    world.create(gang_in("red", "a", 5))
    world.settle(seconds=10)
    change(world, "red", lendingLimit={"cpu": "5"})
    world.create(gang_in("blue", "b", 3), gang_in("blue", "c", 1))
    world.settle(seconds=10)
    assert active(world, "red")[:2] == ("False", "InvalidSpec")
    assert phases(world, "a", "b", "c") == ["Running", "Queued", "Running"]
    assert status_of(world, "all")["summary"] == "cpu 4/4 (and 4 kept below)"

    world.delete("rayclusters", "a")
    world.delete("rayclusters", "c")
    world.settle(seconds=10)
    assert phases(world, "b") == ["Running"]


def test_an_inactive_queue_lends_nothing_and_takes_nothing_from_others() -> None:
    world = two_teams()
    world.create(gang_in("red", "a", 1))
    world.settle(seconds=10)
    change(world, "red", lendingLimit={"cpu": "5"})
    world.create(gang_in("blue", "b", 3), gang_in("blue", "c", 0))
    world.settle(seconds=10)
    assert phases(world, "a", "b", "c") == ["Running", "Running", "Queued"]
    assert world.status("c")["reason"] == "QuotaExceeded"


def test_what_is_below_an_inactive_queue_counts_above_it() -> None:
    world = World(
        node("n1", cpu=100),
        queue("all", cpu=8),
        queue("red", cpu=0, parent="all"),
        queue("inner", cpu=0, parent="red"),
        queue("blue", cpu=0, parent="all"),
    )
    world.create(gang_in("inner", "a", 5))
    world.settle(seconds=10)
    change(world, "red", lendingLimit={"cpu": "9999999999999999999999"})
    world.create(gang_in("blue", "b", 3))
    world.settle(seconds=10)
    assert active(world, "inner")[:2] == ("False", "ParentNotActive")
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert status_of(world, "all")["summary"] == "cpu 6/8"


def test_a_queue_whose_rules_name_no_quota_requires_none() -> None:
    world = World(node("n1", cpu=100), queue("team"))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    conditions = {each["type"]: each for each in world.status("a")["conditions"]}
    assert conditions["QuotaReserved"]["reason"] == "NotRequired"
    assert conditions["QuotaReserved"]["message"] == "queue team has no quota"


def test_quota_costs_a_gang_no_more_status_writes() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=60)
    assert sum(isinstance(each, WriteGangStatus) for each in world.leader.log) == 2


def test_nothing_is_decided_while_the_watch_of_queues_is_down() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.settle(seconds=10)
    before = [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)]
    world.leader.handle([WatchLost("gangqueues")])
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    change(world, "team", quota={"cpu": "5"})
    world.settle(seconds=10)
    assert not world.leader.releases()
    assert [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)] == before

    world.leader.handle([WatchRecovered("gangqueues")])
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]
    assert status_of(world, "team")["admitted"] == 1
