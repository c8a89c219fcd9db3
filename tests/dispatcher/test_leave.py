"""Where no member has room, one at a time may stop gangs or ask for nodes, for five minutes."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import asdict, replace
from random import Random

import pytest

from dispatcher.messages import GiveLeave, TimePassed, WriteRecord
from dispatcher.protocol.leave import CLOCK_SECONDS, LEAVE_SECONDS, Given, Leave
from kube.codec.fields import moment_of
from kube.objects.clusters.queue_clusters import QueueClusters
from tests.dispatcher.world import World

EAST_FIRST = QueueClusters(order=("east", "west"))
TURN = LEAVE_SECONDS + CLOCK_SECONDS
CLOCKS_APART = 30.0


def full(clusters: QueueClusters = EAST_FIRST, **stoppable: int) -> World:
    world = World(clusters, **dict.fromkeys(stoppable, 0))
    for name, count in stoppable.items():
        world.members[name].stoppable = count
    world.submit("train")
    return world


def given(world: World) -> list[str]:
    return [each.member for each in world.written(GiveLeave)]


def with_leave(world: World) -> list[str]:
    """The members that may stop gangs now, by their own clocks."""
    return [
        member.name
        for member in world.members.values()
        for answer in member.answers.values()
        if moment_of(answer.may_stop_until) > world.now
    ]


def on_record(world: World) -> tuple[str, float]:
    """Who may stop gangs by the record, and for how long from now."""
    found = world.dispatch("train").stops_gangs
    return (found.cluster, moment_of(found.until) - world.now) if found else ("", 0.0)


def has_all_of_its_time(world: World) -> str:
    """Who may stop gangs by the record, for no more and hardly less than a turn."""
    found, left = on_record(world)
    assert TURN - 15.0 < left <= TURN
    return found


def test_where_a_member_has_room_none_may_stop_gangs() -> None:
    world = World(EAST_FIRST, east=0, west=1)
    world.members["east"].stoppable = 1
    world.submit("train")
    world.settle(10.0)
    assert world.runs() == {"train": ["west"]}
    assert not given(world)


def test_the_best_member_may_stop_gangs_where_none_has_room_and_the_gang_starts_there() -> None:
    world = full(east=1, west=1)
    world.settle(10.0)
    assert world.runs() == {"train": ["east"]}
    assert given(world) == ["east"]
    assert world.members["west"].stoppable == 1


def test_it_is_on_record_before_the_member_is_told() -> None:
    world = full(east=0, west=0)
    world.settle(10.0)
    world.refuse = {WriteRecord}
    world.settle(TURN + 20.0, each=5.0)
    assert (given(world), with_leave(world)) == (["east"], [])
    world.refuse = set()
    world.settle(40.0)
    assert given(world) == ["east", "west"]


def test_after_five_minutes_it_is_the_next_and_the_record_says_who_and_until_when() -> None:
    world = full(east=0, west=0)
    world.settle(10.0)
    assert has_all_of_its_time(world) == "east"
    assert with_leave(world) == ["east"]
    world.settle(LEAVE_SECONDS, each=5.0)
    assert with_leave(world) == []
    assert on_record(world)[0] == "east"
    world.settle(CLOCK_SECONDS, each=5.0)
    assert has_all_of_its_time(world) == "west"
    assert with_leave(world) == ["west"]
    world.members["west"].stoppable = 1
    world.settle(5.0)
    assert world.runs() == {"train": ["west"]}
    assert given(world) == ["east", "west"]


def test_a_member_alone_has_it_again_and_again() -> None:
    world = full(east=0)
    world.settle(TURN + 20.0, each=5.0)
    assert (given(world), with_leave(world)) == (["east"] * 2, ["east"])


def test_whichever_offers_meanwhile_is_taken() -> None:
    world = full(east=0, west=0)
    world.settle(10.0)
    world.members["west"].room = 1
    world.settle(5.0)
    assert world.runs() == {"train": ["west"]}


# ---- another leader, and members out of reach


def test_the_next_leader_leaves_it_where_it_is() -> None:
    world = full(east=0, west=0)
    world.settle(TURN + 20.0, each=5.0)
    assert with_leave(world) == ["west"]
    before = on_record(world)
    world.lead()
    world.settle(10.0)
    assert with_leave(world) == ["west"]
    assert on_record(world) == (before[0], before[1] - 10.0)


def test_one_that_is_cut_off_keeps_it_for_its_time_alone() -> None:
    world = full(east=0, west=0)
    world.settle(10.0)
    world.members["east"].hangs = True
    world.cut("east")
    world.lead()
    world.settle(LEAVE_SECONDS - 30.0, each=5.0)
    assert (given(world), with_leave(world)) == (["east"], ["east"])
    world.settle(CLOCK_SECONDS + 40.0, each=5.0)
    assert with_leave(world) == ["west"]


def on_its_way() -> World:
    """Leave was written, and what tells the member of it is lost or late."""
    world = full(east=0, west=0)
    world.refuse = {WriteRecord}
    world.settle(10.0)
    world.members["east"].hangs, world.refuse = True, set()
    world.settle(40.0)
    assert (given(world), with_leave(world)) == (["east"], [])
    world.cut("east")
    return world


def test_what_was_on_its_way_to_it_gives_nothing_once_its_time_is_over() -> None:
    world = on_its_way()
    world.settle(TURN + 10.0, each=5.0)
    assert with_leave(world) == ["west"]
    world.members["east"].hangs = False
    world.arrive("east")
    assert with_leave(world) == ["west"]


def test_what_was_lost_on_its_way_to_it_is_told_again() -> None:
    world = on_its_way()
    world.members["east"].hangs, world.members["east"].waiting = False, []
    world.connect("east")
    world.settle(5.0)
    assert with_leave(world) == ["east"]


def test_writes_that_fail_elsewhere_do_not_have_it_told_again() -> None:
    world = full(east=0, west=0)
    world.settle(10.0)
    world.members["west"].refuses = True
    world.close("west", "train", "NotAccepted")
    world.settle(60.0)
    assert given(world) == ["east"] * 2, "once for each attempt"


def test_a_leader_remembers_no_more_of_it_from_turn_to_turn() -> None:
    world = full(east=0, west=0)
    world.settle(2 * TURN, each=5.0)
    leave = world.state.known.views["uid-train"].leave

    def size() -> int:
        return sum(len(each) for each in asdict(leave).values() if isinstance(each, Sized))

    before = size()
    world.settle(6 * TURN, each=10.0)
    assert size() <= before


def test_reasons_from_before_a_gang_was_sent_are_forgotten() -> None:
    """Or leave would be given before each member was asked again."""
    world = full(east=0, west=0)
    world.settle(10.0)
    leave = world.state.known.views["uid-train"].leave
    assert leave.reasons.keys() == {"east", "west"}
    world.members["west"].room = 1
    world.settle(10.0)
    assert world.runs() == {"train": ["west"]}
    assert not leave.reasons


def test_a_further_attempt_within_its_time_has_the_same_member() -> None:
    world = full(east=0, west=0)
    world.settle(10.0)
    world.close("west", "train", "NotAccepted")
    world.settle(10.0)
    assert world.dispatch("train").attempt == 2
    assert (given(world), with_leave(world)) == (["east"] * 2, ["east"])


def test_a_record_that_was_lost_has_it_for_all_of_its_time() -> None:
    world = full(east=0, west=0)
    world.settle(TURN + 20.0, each=5.0)
    world.members["west"].answers = {
        name: replace(each, accepted_by=1, phase="Closed", reason="NotAccepted")
        for name, each in world.members["west"].answers.items()
    }
    world.write_turn("train", dispatch=None)
    world.settle(2.0)
    assert has_all_of_its_time(world) == "west"


@pytest.mark.parametrize("seed", range(12))
def test_never_two_at_a_time_whatever_happens(seed: int) -> None:
    """Leaders whose clocks are apart, and members that hang, are cut off and come back."""
    random = Random(seed)
    world = full(QueueClusters(), east=0, west=0, north=0)
    seen = set()
    for _ in range(60):
        name = random.choice(list(world.members))
        member = world.members[name]
        match random.choice(["lead", "hang", "cut", "heal", "close", "time", "time"]):
            case "lead":
                world.clock_ahead = random.uniform(0.0, CLOCKS_APART)
                world.lead()
            case "hang":
                member.hangs = True
            case "cut":
                member.hangs = True
                world.cut(name)
            case "heal":
                world.heal()
            case "close" if not member.hangs:
                world.close(name, "train", "NameTaken")
        for _ in range(random.randrange(20)):
            world.settle(5.0, each=5.0)
            assert len(with_leave(world)) <= 1
            seen |= {*with_leave(world)}
    assert len(seen) > 1


# ---- members that do not answer


def test_one_whose_coordinator_is_away_keeps_leave_from_no_other_for_longer_than_30_s() -> None:
    world = full(east=0, west=0)
    world.members["east"].lacks = ""
    world.settle(25.0)
    assert not given(world)
    world.settle(10.0)
    assert given(world) == ["west"]
    assert has_all_of_its_time(world) == "west"


def test_nor_does_one_whose_api_server_refuses_gang_offers() -> None:
    world = World(EAST_FIRST, east=0, west=0)
    world.members["east"].refuses = True
    world.submit("train")
    world.settle(35.0)
    assert given(world) == ["west"]


def test_time_alone_has_it_given_to_another() -> None:
    world = full(east=0, west=0)
    world.members["east"].lacks = ""
    world.settle(5.0)
    world.now += 30.0
    assert (world.state.next_wake or 0.0) <= world.now
    world.tell(TimePassed())
    world.settle(0.0)
    assert given(world) == ["west"]


def test_one_that_answers_at_last_is_taken_and_has_leave_in_its_turn() -> None:
    world = full(east=0, west=0)
    world.members["east"].lacks = ""
    world.settle(35.0)
    world.members["east"].lacks = "InsufficientResources"
    world.settle(TURN, each=5.0)
    assert given(world) == ["west", "east"]
    world.members["west"].lacks = ""
    world.members["east"].room = 1
    world.settle(5.0)
    assert world.runs() == {"train": ["east"]}


def test_one_that_has_not_decided_yet_is_waited_for() -> None:
    world = full(east=0, west=0)
    world.members["east"].lacks = "Pending"
    world.settle(10.0)
    assert not given(world)
    world.members["east"].lacks = "InsufficientResources"
    world.settle(10.0)
    assert given(world) == ["east"]


def test_where_none_answers_none_has_it() -> None:
    world = full(east=0, west=0)
    for each in world.members.values():
        each.lacks = ""
    world.settle(100.0)
    assert on_record(world) == ("", 0.0)


def test_nor_does_one_of_an_older_release_whose_offers_cannot_be_taken() -> None:
    world = World(EAST_FIRST, lost_after=300, east=1, west=0)
    world.members["east"].is_old = True
    world.submit("train")
    world.settle(35.0)
    assert given(world) == ["west"]
    world.close("east", "train", "NotAccepted")
    world.settle(30.0)
    assert world.dispatch("train").attempt == 1, "it costs the others no attempt"
    assert not world.members["east"].answers
    said = {each.cluster: each.message for each in world.dispatch("train").refusals}
    assert "older" in said["east"]


# ---- whom it helps


@pytest.mark.parametrize("lacks", ["NeverFits", "NoFeasibleNode"])
def test_where_no_node_would_do_it_helps_a_member_whose_queue_asks_for_nodes(lacks: str) -> None:
    world = full(east=0, west=0)
    for each in world.members.values():
        each.lacks = lacks
    world.settle(10.0)
    assert not given(world)
    world.ask_for_nodes("west")
    world.settle(10.0)
    assert given(world) == ["west"]
    world.settle(TURN, each=5.0)
    assert given(world) == ["west"] * 2


def test_it_is_likelier_to_help_where_nodes_are_there() -> None:
    world = full(east=0, west=0)
    world.members["east"].lacks = "NeverFits"
    world.ask_for_nodes("east")
    world.settle(TURN + 10.0, each=5.0)
    assert given(world) == ["west", "east"]


def test_a_member_of_an_older_release_is_told_once_and_passed_over_in_time() -> None:
    world = full(east=0, west=1)
    world.members["east"].is_old = True
    world.settle(60.0)
    assert given(world) == ["east"]
    world.settle(TURN, each=5.0)
    assert world.runs() == {"train": ["west"]}


def test_one_that_leave_does_not_help_is_passed_over_and_after_the_last_it_begins_anew() -> None:
    leave = Leave()

    def after(before: Given | None, helped: str) -> str:
        leave.note(before)
        found = leave.next_one(helped.split(), 0.0)
        return found.cluster if found is not None else ""

    assert after(None, "b c") == "b"
    assert after(Given("b", 1.0), "c") == "c"
    assert after(Given("c", 1.0), "a b c") == "a"
    assert after(Given("a", 1.0), "a b c") == "a"
    assert after(Given("a", 1.0), "b c") == "b"
    assert after(Given("b", 1.0), "") == ""
    assert after(Given("b", 1.0), "a b c") == "c"
