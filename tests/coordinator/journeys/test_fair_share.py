"""Fair share over time: usage in the status of queues, over restarts, clocks and bad input."""

from typing import Any

import pytest

from coordinator.messages.actions import WriteQueueStatus
from coordinator.queues.fair_share import INTERVAL
from tests.coordinator.api import Key
from tests.coordinator.builders import Json, node
from tests.coordinator.journeys.queues.worlds import change, found, gang_in, queue, status_of
from tests.coordinator.world import World

DAY = 24 * 3600.0
WEEK = 7 * DAY


def namespace(name: str) -> Json:
    return {"kind": "Namespace", "metadata": {"name": name}}


def fair_world(cpu: int = 8, **rules: Any) -> World:
    """A queue with fair sharing over two namespaces."""
    start = [namespace("old"), namespace("new"), node("n1", cpu=cpu)]
    return World(*start, queue("q", cpu=cpu, fairSharing=rules))


def of(where: str, name: str, workers: int = 3) -> Json:
    return gang_in("q", name, workers, namespace=where)


def phase(world: World, where: str, name: str) -> str:
    return str(world.api.get(Key("gangs", where, name)).get("status", {}).get("phase"))


def used(world: World, name: str = "q") -> dict[str, str]:
    """The share of each namespace, as the status says it."""
    said = status_of(world, name).get("fairShare", {}).get("namespaces", ())
    return {each["name"]: each["share"] for each in said}


def status_writes(world: World) -> list[WriteQueueStatus]:
    return [each for each in world.leader.log if isinstance(each, WriteQueueStatus)]


def edit_status(world: World, said: Json | None) -> None:
    """Write this of the usage by hand, over what is said of it; None for nothing at all."""
    queue = found(world, "q")
    status = {**queue["status"], "fairShare": said}
    world.api.change(queue, lambda obj: obj.update(status=status), "status")


def conditions(world: World, name: str = "q") -> dict[str, tuple[str, str]]:
    said = status_of(world, name)["conditions"]
    return {e["type"]: (e["reason"], e.get("message", "")) for e in said if e["status"] == "False"}


def later(world: World, seconds: float) -> None:
    """Let time pass in which nothing happens and nobody looks, and then let everybody look."""
    world.settle(seconds=10)
    world.api.now += seconds - 20
    world.settle(seconds=10)


def used_all_yesterday(world: World) -> None:
    """Namespace `old` holds all of the queue for a day, then nothing for a night."""
    world.create(of("old", "day", 7))
    later(world, DAY)
    world.delete("rayclusters", "day", "old")
    later(world, DAY / 2)


def which_starts(world: World) -> list[str]:
    """Let a gang of each namespace wait for room for one, the older of `old`; say which runs."""
    world.create(of("new", "full", 7))
    world.settle(seconds=10)
    world.create(of("old", "o", 7))
    world.settle(seconds=5)
    world.create(of("new", "n", 7))
    world.settle(seconds=5)
    world.delete("rayclusters", "full", "new")
    world.settle(seconds=30)
    both = (("old", "o"), ("new", "n"))
    return [name for where, name in both if phase(world, where, name) == "Running"]


def test_who_used_all_yesterday_waits_for_who_used_nothing() -> None:
    world = fair_world()
    used_all_yesterday(world)
    assert used(world) == {"old": "8.37%"}
    assert which_starts(world) == ["n"]


def test_without_fair_sharing_the_older_gang_starts() -> None:
    world = World(namespace("old"), namespace("new"), node("n1", cpu=8), queue("q", cpu=8))
    used_all_yesterday(world)
    assert which_starts(world) == ["o"]
    assert "fairShare" not in status_of(world, "q")


def test_usage_survives_a_restart() -> None:
    world = fair_world()
    used_all_yesterday(world)
    before = used(world)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=60)
    assert used(world) == before
    assert which_starts(world) == ["n"]


def test_a_crash_loses_nothing_of_what_is_held_on() -> None:
    """The next leader counts what is held when it looks as held since the status was written."""
    world, other = fair_world(), fair_world()
    for each in (world, other):
        each.create(of("old", "day", 7))
        each.settle(seconds=60)
    world.leader.restart()  # for a day nobody leads
    world.api.now += DAY
    world.elect(0)
    later(other, DAY)
    for each in (world, other):
        each.settle(seconds=INTERVAL)
    assert used(world) == used(other) != {}


def test_a_crash_loses_at_most_an_interval_of_what_ended() -> None:
    world = fair_world()
    world.create(of("old", "day", 7))
    later(world, DAY)
    said = status_of(world, "q")["fairShare"]
    before = float(said["namespaces"][0]["usage"]["cpu"])
    world.leader.restart()
    world.delete("rayclusters", "day", "old")
    world.controllers()
    world.elect(0)
    world.settle(seconds=INTERVAL)
    after = float(status_of(world, "q")["fairShare"]["namespaces"][0]["usage"]["cpu"])
    assert before * 0.999 - 8 * INTERVAL / WEEK <= after <= 8 * (1 - 2 ** (-DAY / WEEK))


@pytest.mark.parametrize("by", [3600.0, -3600.0, -2 * DAY])
def test_a_clock_that_is_set_changes_no_usage(by: float) -> None:
    world = fair_world()
    used_all_yesterday(world)
    world.leader.clock_off += by
    world.settle(seconds=2 * INTERVAL)
    assert used(world)["old"].startswith("8.3")
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=2 * INTERVAL)
    assert used(world)["old"].startswith(("8.3", "8.2"))


def test_a_clock_that_was_ahead_when_the_status_was_written_takes_no_usage_away() -> None:
    world = fair_world()
    world.leader.clock_off = 100 * DAY
    used_all_yesterday(world)
    world.leader.restart()
    world.leader.clock_off = 0.0
    world.elect(0)
    world.settle(seconds=60)
    assert used(world) == {"old": "8.37%"}


def test_fair_sharing_counts_from_when_it_is_switched_on_and_is_forgotten_when_off() -> None:
    world = World(namespace("old"), node("n1", cpu=8), queue("q", cpu=8))
    world.create(of("old", "a", 7))
    later(world, DAY)
    change(world, "q", fairSharing={})
    world.settle(seconds=60)
    assert used(world) == {"old": "6.70%"}, "what it holds counts at once"
    later(world, DAY)
    assert used(world) == {"old": "15.50%"}
    change(world, "q", fairSharing=None)
    world.settle(seconds=60)
    assert "fairShare" not in status_of(world, "q")


def test_an_idle_queue_and_one_that_stays_as_it_is_are_written_seldom() -> None:
    world = fair_world()
    world.create(of("old", "day", 7))
    world.settle(seconds=600)
    before = len(status_writes(world))
    world.settle(seconds=10 * INTERVAL)
    assert 1 <= len(status_writes(world)) - before <= 10
    world.delete("rayclusters", "day", "old")
    later(world, 100 * WEEK)
    before = len(status_writes(world))
    world.settle(seconds=10 * INTERVAL)
    assert len(status_writes(world)) == before, "nothing is left to tell of"
    assert world.leader.state.known.fair.next_at is None


# ---- bad input


BAD: list[tuple[Json, str]] = [
    ({"weight": 0}, 'spec.fairSharing.weight: "0"'),
    ({"weight": -1}, 'spec.fairSharing.weight: "-1"'),
    ({"weight": 2**62}, "spec.fairSharing.weight"),
    ({"namespaceWeights": {"old": 0}}, 'spec.fairSharing.namespaceWeights[old]: "0"'),
    ({"halfLifeSeconds": 0}, 'spec.fairSharing.halfLifeSeconds: "0"'),
    ({"halfLifeSeconds": 365 * 24 * 3600}, "spec.fairSharing.halfLifeSeconds"),
]


@pytest.mark.parametrize(("rules", "told"), BAD)
def test_a_bad_value_is_a_condition_and_the_queue_works_without(rules: Json, told: str) -> None:
    world = fair_world(**rules)
    world.create(of("old", "a"))
    world.settle(seconds=30)
    assert phase(world, "old", "a") == "Running"
    reason, message = conditions(world)["UsageCounted"]
    assert reason == "InvalidFairSharing"
    assert message.startswith(told)
    assert "allowed: " in message
    change(world, "q", fairSharing={})
    world.settle(seconds=30)
    assert conditions(world) == {}


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ({"fairSharing": {"weight": 0}}, {"fairSharing": {}}),
        ({"quota": {"cpu": "x"}}, {"quota": {"cpu": "8"}}),
    ],
)
def test_a_rule_that_cannot_be_read_for_a_time_loses_no_usage(bad: Json, good: Json) -> None:
    world = fair_world()
    used_all_yesterday(world)
    before = used(world)
    change(world, "q", **bad)
    world.settle(seconds=2 * INTERVAL)
    change(world, "q", **good)
    world.settle(seconds=60)
    assert before == {"old": "8.37%"}
    assert used(world)["old"].startswith("8.3")
    assert which_starts(world) == ["n"]


EDITED: list[tuple[Json, str]] = [
    ({"at": "yesterday"}, "status.fairShare.at"),
    ({"at": ""}, "status.fairShare.at"),
    ({"rest": {"cpu": "-5"}}, "status.fairShare.rest[cpu]"),
    ({"rest": {"cpu": "NaN"}}, "status.fairShare.rest[cpu]"),
    ({"namespaces": [{"name": "x", "usage": {"cpu": "9" * 20}}]}, "status.fairShare.namespaces[x]"),
    ({"namespaces": [{"name": "x", "usage": {"cpu": "1e999"}}]}, "status.fairShare.namespaces[x]"),
]


@pytest.mark.parametrize(("edit", "told"), EDITED)
def test_a_status_that_was_edited_by_hand_is_a_condition(edit: Json, told: str) -> None:
    world = fair_world()
    used_all_yesterday(world)
    world.leader.restart()
    edit_status(world, {**status_of(world, "q")["fairShare"], **edit})
    world.elect(0)
    world.create(of("new", "n"))
    world.settle(seconds=30)
    assert phase(world, "new", "n") == "Running"
    reason, message = conditions(world)["UsageCounted"]
    assert reason == "UnreadableUsage"
    assert message.startswith(told)
    later(world, 2 * DAY)
    assert conditions(world) == {}


def test_the_largest_amounts_and_a_thousand_namespaces_are_read() -> None:
    world = fair_world()
    world.settle(seconds=10)
    most = str(2**60)
    many = [{"name": f"ns{at}", "usage": {"cpu": most, "memory": most}} for at in range(1000)]
    said = {"at": "1970-01-02T00:00:00Z", "namespaces": many, "rest": {"cpu": most}}
    world.leader.restart()
    edit_status(world, said)
    world.elect(0)
    world.create(of("new", "n"))
    world.settle(seconds=INTERVAL)
    assert phase(world, "new", "n") == "Running"
    assert len(status_of(world, "q")["fairShare"]["namespaces"]) <= 200


def test_an_edit_while_a_leader_leads_is_undone() -> None:
    world = fair_world()
    used_all_yesterday(world)
    edit_status(world, None)
    world.settle(seconds=2 * INTERVAL)
    assert used(world)["old"].startswith("8.3")
