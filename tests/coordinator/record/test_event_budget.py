"""Events stay few however often pods are patched, and always say why a gang waits."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from coordinator.messages.actions import EmitEvent
from coordinator.record.event_budget import (
    BURST,
    REFILL,
    RENEWAL,
    SPACING,
    SPREAD,
    EventBudget,
    Lasting,
    renewal_of,
    spacing_of,
)
from kube.objects import names
from scheduling.model.verdict import Reason
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.deeds import annotate
from tests.coordinator.world import World, key

FORGOTTEN = 3600.0  # seconds after which an API server forgets an Event, by default


def happened(reason: str, message: str = "") -> EmitEvent:
    return EmitEvent(key("a"), "uid", True, reason, message)


def sifted(telling: EventBudget, now: float, *offered: EmitEvent) -> list[str]:
    """The messages of the Events that go out."""
    found = telling.sift(offered, now, SPACING)
    return [each.message or each.reason for each in found if isinstance(each, EmitEvent)]


# ---- the bucket


def test_what_has_no_token_waits_for_one() -> None:
    telling = EventBudget()
    offered = [happened(f"Reason{number}") for number in range(BURST + 2)]
    assert len(sifted(telling, 0.0, *offered)) == BURST
    assert telling.next_at(SPACING) == REFILL
    assert sifted(telling, REFILL / 2) == []
    assert sifted(telling, REFILL) == [f"Reason{BURST}"]
    assert sifted(telling, 2 * REFILL) == [f"Reason{BURST + 1}"]
    assert telling.next_at(SPACING) is None


def test_of_what_waits_the_newest_of_each_reason_is_kept() -> None:
    telling = EventBudget()
    sifted(telling, 0.0, *(happened(f"Reason{number}") for number in range(BURST)))
    for number in range(100):
        assert sifted(telling, 1.0, happened("Bad", f"try {number}")) == []
    assert sifted(telling, 1000.0) == ["try 99"]


def test_what_its_user_knows_is_not_said_again_before_it_is_renewed() -> None:
    telling = EventBudget()
    assert sifted(telling, 0.0, happened("Bad", "one")) == ["one"]
    assert sifted(telling, SPACING, happened("Bad", "one")) == []
    assert sifted(telling, RENEWAL, happened("Bad", "one")) == ["one"]


def test_another_message_of_the_same_reason_waits_for_half_a_minute() -> None:
    telling = EventBudget()
    assert sifted(telling, 0.0, happened("Bad", "one")) == ["one"]
    assert sifted(telling, 1.0, happened("Bad", "two")) == []
    assert telling.next_at(SPACING) == SPACING
    assert sifted(telling, SPACING) == ["two"]


def test_the_next_wrong_value_is_told_as_soon_as_its_user_wrote_it() -> None:
    """Else `kubectl describe` shows the first one, while it is mended already or wrong anew."""
    telling = EventBudget()
    for now, value in enumerate(("soon", "later", "at once")):
        telling.lasting = Lasting(happened(Reason.MISCONFIGURED, value))
        assert sifted(telling, float(now)) == [value]
    telling.lasting = Lasting(happened(Reason.MISCONFIGURED, "never"))
    assert sifted(telling, 3.0) == []
    assert sifted(telling, REFILL) == ["never"]
    assert telling.next_at(SPACING) == REFILL + renewal_of("uid")


@pytest.mark.parametrize(("waiting", "at_most_a_second"), [(10, 1.0), (100, 1.7), (600, 1.0)])
def test_numbers_of_all_gangs_that_wait_are_told_about_once_a_second(
    waiting: int, at_most_a_second: float
) -> None:
    assert waiting / spacing_of(waiting) <= at_most_a_second


# ---- a gang that waits


def waiting_world() -> World:
    """Room for 3 of 5 pods."""
    world = World(node("n1", cpu=8))
    world.create(foreign_pod("first", "n1", cpu=5))
    world.create(gang_of("a", 4))
    world.settle(seconds=1)
    return world


def told(world: World) -> list[str]:
    return [each.message for each in world.leader.emitted]


def times_told(world: World, seconds: float, step: float = 10.0) -> Iterator[float]:
    """When Events went out, to a step, while so much time passes."""
    end = world.api.now + seconds
    while world.api.now < end:
        before = len(world.leader.emitted)
        world.settle(seconds=step)
        if len(world.leader.emitted) > before:
            yield world.api.now


def test_a_storm_of_patches_makes_a_few_events_a_minute_and_the_last_word_is_told() -> None:
    """Each patch changes the reason: with bad annotations and without."""
    world = waiting_world()
    for number in range(200):
        bad = {names.MIN_REPLICAS: f"nobody={number}"} if number % 2 else {}
        annotate(world, "a", **bad)
        world.settle(seconds=0.6)
    assert BURST <= len(told(world)) <= BURST + 120 / REFILL
    annotate(world, "a", **{names.MIN_REPLICAS: "nobody=last"})
    world.settle(seconds=SPACING + REFILL)
    assert '"nobody=last" is not valid' in told(world)[-1]


def test_the_numbers_of_a_waiting_gang_are_told_again_soon() -> None:
    world = waiting_world()
    [first] = told(world)
    world.create(foreign_pod("other", "n1", cpu=2))
    world.settle(seconds=SPACING / 2)
    assert told(world) == [first]
    world.settle(seconds=SPACING / 2)
    assert told(world) == [first, world.status("a")["message"]]
    assert first != world.status("a")["message"]


def test_what_holds_for_hours_is_renewed_before_it_is_forgotten() -> None:
    world = waiting_world()
    times = [world.api.now, *times_told(world, 4 * FORGOTTEN), world.api.now]
    assert all(later - earlier < FORGOTTEN / 2 for earlier, later in pairwise(times))
    assert len(times) <= 2 + 4 * FORGOTTEN / (0.75 * RENEWAL)


def test_surplus_that_waits_is_told_for_as_long_as_it_does() -> None:
    """The gang runs, and its reason is Running; of the workers that wait the Event speaks."""
    world = World(node("n1", cpu=3))
    workers = group("workers", 4, least=2, most=9, cpu=1)
    world.create(ray_cluster("a", workers, enableInTreeAutoscaling=True))
    world.settle(seconds=10)
    assert world.status("a")["reason"] == "Running"
    began = world.api.now
    times = [began, *times_told(world, 2 * FORGOTTEN), world.api.now]
    assert all(later - earlier < FORGOTTEN / 2 for earlier, later in pairwise(times))
    assert {each.reason for each in world.leader.emitted} == {"InsufficientResources"}
    assert "2 of 5 pods wait" in told(world)[-1]
    world.create(node("n2"))
    world.settle(seconds=10)
    count = len(told(world))
    world.settle(seconds=2 * FORGOTTEN)
    assert len(told(world)) == count


def test_keys_without_a_meaning_are_told_for_as_long_as_they_are_there() -> None:
    """Also of a RayCluster that is no gang, where nothing else says so."""
    world = World(node("n1"))
    world.create(gang_of("a", 1, labels={"muster.dev/gan": "true"}))
    world.settle(seconds=10)
    times = [world.api.now, *times_told(world, 2 * FORGOTTEN), world.api.now]
    assert all(later - earlier < FORGOTTEN / 2 for earlier, later in pairwise(times))
    assert {each.reason for each in world.leader.emitted} == {"UnknownKey"}


def test_a_new_leader_says_nothing_twice_and_leaves_no_gap() -> None:
    """Also one that takes over right before the Event would have been renewed."""
    world = waiting_world()
    began = world.api.now
    world.settle(seconds=0.7 * RENEWAL)
    assert len(told(world)) == 1
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=1)
    assert len(told(world)) == 1
    assert next(times_told(world, FORGOTTEN)) < began + FORGOTTEN


def test_a_new_leader_tells_numbers_that_moved_since() -> None:
    world = waiting_world()
    world.leader.restart()
    world.elect(0)
    world.create(foreign_pod("other", "n1", cpu=2))
    world.settle(seconds=SPACING)
    assert len(told(world)) == 2
    assert told(world)[-1] == world.status("a")["message"]


def test_gangs_that_were_told_together_are_not_renewed_together() -> None:
    world = World(node("n1", cpu=3))
    world.create(*(gang_of(f"g{number}", 4) for number in range(20)))
    world.settle(seconds=30)
    assert len(told(world)) == 20
    times = list(times_told(world, RENEWAL))
    assert len(times) > 10


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_what_an_earlier_leader_told_is_renewed_in_the_gangs_own_time(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Not for all gangs when the term begins, nor for all at one time after that."""
    monkeypatch.setattr("coordinator.record.event_budget.share_of", lambda _: share)
    telling = EventBudget(Lasting(happened("Bad")))
    telling.adopt(happened("Bad"), now=1000.0)
    offset = share * RENEWAL * (1 - SPREAD * share)
    assert sifted(telling, 1000.0) == (["Bad"] if share == 0 else [])
    assert telling.next_at(SPACING) == pytest.approx(1000.0 + (offset or RENEWAL))


def test_the_gang_and_the_head_pod_show_what_the_ray_cluster_shows() -> None:
    world = waiting_world()
    [event] = world.leader.emitted
    assert (event.reason, event.message) == ("InsufficientResources", world.status("a")["message"])
    shown = {each.regarding.kind: each for each in world.leader.echoed if each.regarding}
    assert {each.message for each in shown.values()} == {event.message}
    gang, head = shown["Gang"].regarding, shown["Pod"].regarding
    assert gang
    assert head
    assert gang.uid == world.gang("a")["metadata"]["uid"]
    [pod] = [each for each in world.pods("a") if each["metadata"]["uid"] == head.uid]
    assert pod["metadata"]["labels"][names.RAY_NODE_TYPE] == "head"


def test_a_gang_that_starts_at_once_costs_no_event_at_all() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.settle(seconds=2 * FORGOTTEN)
    assert world.status("a")["phase"] == "Running"
    assert world.leader.emitted == world.leader.echoed == []


def test_a_gang_that_waited_is_told_that_it_starts_and_no_more() -> None:
    world = waiting_world()
    world.create(node("n2"))
    world.settle(seconds=2 * FORGOTTEN)
    reasons = [each.reason for each in world.leader.emitted]
    assert reasons == ["InsufficientResources", "Admitted"]
    assert [each.warning for each in world.leader.emitted] == [True, False]


def test_an_opted_out_gang_is_told_nothing_more() -> None:
    world = waiting_world()
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(labels={names.OPT_IN: "false"}))
    world.settle(seconds=2 * FORGOTTEN)
    assert len(told(world)) == 1
