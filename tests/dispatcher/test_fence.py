"""Gangs of queues with whenClusterLost: Requeue leave a lost member, once they have ended there."""

import pytest

from dispatcher.messages import AskMember, TakeLease, WriteRecord
from kube.objects.clusters.dispatch import CLOSED
from kube.objects.clusters.queue_clusters import QueueClusters
from tests.dispatcher.world import World

EAST_FIRST = QueueClusters(order=("east", "west"))
LOST_AFTER = 300


def running(lost_after: int = LOST_AFTER) -> World:
    """Two members with room for one gang each, of which one runs on the first."""
    world = World(EAST_FIRST, lost_after=lost_after, east=1, west=1)
    world.submit("train")
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}
    return world


def lose(world: World, name: str) -> None:
    world.members[name].hangs = True
    world.cut(name)


def back(world: World, name: str) -> None:
    world.members[name].hangs = False
    world.arrive(name)
    world.connect(name)


def pass_time(world: World, seconds: float) -> None:
    """Let time pass, in which no gang is ever on two members."""
    for _ in range(int(seconds)):
        world.settle(1.0, each=1.0)
        assert all(len(where) == 1 for where in world.runs().values()), world.runs()


def renewals(world: World) -> int:
    return sum(isinstance(each, TakeLease) for each in world.log)


def test_a_gang_leaves_a_lost_member_once_it_has_ended_there() -> None:
    world = running()
    pass_time(world, 60)
    lose(world, "east")
    pass_time(world, LOST_AFTER - 10)
    assert world.dispatch("train").cluster == "east"
    assert world.runs() == {}, "it has ended on its member by then"
    pass_time(world, 20)
    assert world.runs() == {"train": ["west"]}
    said = "east: lost for 300 s: what ran there has ended by itself"
    records = [each.dispatch for each in world.written(WriteRecord)]
    assert [each.message for each in records if each.phase == CLOSED] == [said]
    back(world, "east")
    pass_time(world, 60)
    assert world.runs() == {"train": ["west"]}
    assert not world.members["east"].answers


def test_by_default_it_stays_for_as_long_as_its_member_is_away() -> None:
    world = running(lost_after=0)
    assert renewals(world) == 1
    lose(world, "east")
    world.settle(3600.0, each=30.0)
    assert world.runs() == {"train": ["east"]}
    assert world.dispatch("train").cluster == "east"


def test_a_member_that_is_back_in_time_keeps_it() -> None:
    world = running()
    for _ in range(4):
        lose(world, "east")
        pass_time(world, 120)
        back(world, "east")
        pass_time(world, 60)
    assert world.runs() == {"train": ["east"]}


def test_while_all_is_well_the_lease_is_renewed_every_twenty_seconds() -> None:
    world = running()
    before = renewals(world)
    pass_time(world, 200)
    assert 9 <= renewals(world) - before <= 11
    assert world.runs() == {"train": ["east"]}


def test_also_where_it_is_lost_after_few_seconds() -> None:
    world = running(lost_after=20)
    pass_time(world, 60)
    assert world.runs() == {"train": ["east"]}
    assert world.dispatch("train").attempt == 1


def test_a_new_leader_counts_from_the_begin_of_its_term() -> None:
    """It does not know when the one before wrote a stamp back."""
    world = running()
    lose(world, "east")
    pass_time(world, 200)
    world.lead()
    pass_time(world, LOST_AFTER - 10)
    assert world.dispatch("train").cluster == "east"
    pass_time(world, 20)
    assert world.runs() == {"train": ["west"]}


def test_what_the_queue_says_is_of_the_next_attempt() -> None:
    world = running(lost_after=0)
    world.write_queue(LOST_AFTER)
    lose(world, "east")
    pass_time(world, 2 * LOST_AFTER)
    assert world.runs() == {"train": ["east"]}


def test_a_member_whose_coordinator_is_away_is_not_lost_and_starts_nothing_new() -> None:
    world = World(EAST_FIRST, lost_after=LOST_AFTER, east=1)
    world.members["east"].stamps = False
    world.submit("train")
    pass_time(world, 30)
    assert world.runs() == {}
    world.members["east"].stamps = True
    pass_time(world, 40)
    assert world.runs() == {"train": ["east"]}


def test_a_member_of_an_older_release_is_passed_over_and_why_is_told() -> None:
    world = World(EAST_FIRST, lost_after=LOST_AFTER, east=1, west=1)
    world.members["east"].is_old = True
    world.submit("train")
    pass_time(world, 5)
    assert world.runs() == {"train": ["west"]}
    world.submit("next")
    pass_time(world, 5)
    said = {each.cluster: each.message for each in world.dispatch("next").refusals}
    assert said["east"] == "its Muster is older, and does not know lostAfterSeconds"


def test_a_record_that_was_not_written_is_written_again_when_the_member_is_back() -> None:
    """By then its leader has given the attempt up, for good."""
    world = running()
    lose(world, "east")
    pass_time(world, LOST_AFTER - 5)
    world.refuse = {WriteRecord}
    pass_time(world, 20)
    assert world.dispatch("train").cluster == "east"
    back(world, "east")
    world.refuse = set()
    pass_time(world, 40)
    assert world.dispatch("train").attempt == 2
    assert len(world.runs()["train"]) == 1


@pytest.mark.parametrize("lost_after", [0, LOST_AFTER])
def test_members_are_asked_with_the_fence_that_is_on_record(lost_after: int) -> None:
    world = running(lost_after)
    fences = {each.body["spec"].get("lostAfterSeconds", 0) for each in world.written(AskMember)}
    assert fences == {lost_after}
