"""The dispatcher's state machine, with API servers and coordinators played around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dispatcher.messages import (
    HERE,
    Act,
    AskMember,
    CloseRecord,
    CreateCopy,
    Done,
    Failed,
    Gone,
    MirrorStatus,
    PatchCopy,
    PatchOffer,
    Seen,
    TakeLease,
    WithdrawOffer,
    WriteRecord,
)
from dispatcher.mirroring import DISPATCHED
from dispatcher.reading import Answer
from dispatcher.state_machine import FIRST_FEW
from kube.objects.clusters.dispatch import CLOSED, STARTED
from kube.objects.clusters.queue_clusters import QueueClusters
from tests.dispatcher.objects import GPU, member_cluster
from tests.dispatcher.world import World
from tests.examples import examples

EAST_FIRST = QueueClusters(order=("east", "west"))


def test_a_gang_is_asked_for_recorded_accepted_and_only_then_created() -> None:
    world = World(EAST_FIRST, east=1, west=1)
    world.submit("train")
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}
    assert not world.members["west"].answers
    assert not world.statuses, "its copy has none yet"
    world.report("east", "train", state="ready")
    world.settle(1.0)
    kinds = [type(getattr(each, "deed", each)) for each in world.log]
    order = [
        kinds.index(each) for each in (AskMember, TakeLease, PatchOffer, CreateCopy, MirrorStatus)
    ]
    assert order == sorted(order)
    choice = next(each for each in world.written(WriteRecord) if each.dispatch.cluster)
    assert choice.dispatch.cluster == "east"
    (copy,) = world.written(CreateCopy)
    assert "managedBy" not in copy.body["spec"]
    (owner,) = copy.body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == (
        "GangOffer",
        next(iter(world.members["east"].answers.values())).metadata.uid,
    )
    assert world.dispatch("train").phase == STARTED


def test_of_three_gangs_two_run_and_the_third_says_why_for_each_and_follows_on_what_is_freed() -> (
    None
):
    world = World(east=1, west=1)
    for name in ("one", "two", "three"):
        world.submit(name)
    world.settle(5.0)
    running = world.runs()
    assert len(running) == 2
    (third,) = {"one", "two", "three"} - running.keys()
    refusals = {each.cluster: each.message for each in world.dispatch(third).refusals}
    assert refusals == dict.fromkeys(("east", "west"), "0 of 2 workers fit")

    first = min(running)
    world.delete(first)
    world.settle(2.0)
    assert world.runs()[third] == running[first]
    assert not any(
        each.of == f"uid-{first}" for m in world.members.values() for each in m.answers.values()
    )


def test_a_member_that_hangs_delays_no_gang_that_fits_elsewhere() -> None:
    world = World(EAST_FIRST, east=1, west=1)
    world.members["east"].hangs = True
    world.submit("train")
    world.settle(1.0)
    assert world.runs() == {"train": ["west"]}
    world.submit("next")
    world.settle(3.0)
    said = {each.cluster: each.message for each in world.dispatch("next").refusals}
    assert "fit" in said["west"]
    world.cut("east")
    world.settle(3.0)
    said = {each.cluster: each.message for each in world.dispatch("next").refusals}
    assert said["east"] == "not connected: no answer"


def test_an_attempt_that_its_member_closed_is_followed_by_another_once_it_is_its_turn() -> None:
    world = World(EAST_FIRST, east=1, west=1)
    world.submit("train")
    world.settle(3.0)
    world.close("east", "train", "RoomLost")
    (closed,) = world.written(CloseRecord)
    assert (closed.dispatch.cluster, closed.dispatch.phase) == ("east", CLOSED)
    assert world.dispatch("train").message == "east: RoomLost: so it is"
    assert world.runs() == {}
    world.settle(3.0)
    assert world.runs() == {"train": ["west"]}, "east is left alone for a time"
    assert world.dispatch("train").attempt == 2
    assert not world.members["east"].answers


def test_where_nothing_is_accepted_for_lack_of_a_right_on_the_lease_it_is_told() -> None:
    world = World(east=1)
    world.members["east"].keeps_lease = True
    world.submit("train")
    world.settle(5.0)
    assert world.dispatch("train").message == "east: 403: no right"
    world.members["east"].keeps_lease = False
    world.settle(60.0)
    assert world.runs() == {"train": ["east"]}
    assert world.dispatch("train").message == ""


def test_a_gang_that_goes_while_its_member_is_away_is_withdrawn_by_uid_when_it_is_back() -> None:
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    (offer,) = world.members["east"].answers.values()
    world.members["east"].hangs = True
    world.cut("east")
    world.delete("train")
    world.settle(3.0)
    assert world.members["east"].answers
    world.members["east"].hangs = False
    world.connect("east")
    world.settle(1.0)
    assert not world.members["east"].answers
    (withdrawn,) = world.written(WithdrawOffer)
    assert withdrawn.answer.metadata.uid == offer.metadata.uid


def test_the_next_leader_goes_on_between_record_and_start() -> None:
    world = World(east=1, west=1)
    world.refuse = {PatchOffer}
    world.submit("train")
    world.settle(1.0)
    where = world.dispatch("train").cluster
    assert where
    assert world.runs() == {}
    world.refuse = set()
    world.lead()
    world.settle(2.0)
    assert world.runs() == {"train": [where]}
    assert world.dispatch("train").term == world.members[where].lease == 2


def test_a_gang_whose_record_was_deleted_is_found_on_its_member() -> None:
    world = World(east=1, west=1)
    world.submit("train")
    world.settle(3.0)
    where = world.dispatch("train").cluster
    world.lead()
    world.write_turn("train", dispatch=None, is_its_turn=True)
    world.settle(3.0)
    assert world.runs() == {"train": [where]}
    assert world.dispatch("train").cluster == where


def test_a_gang_that_loses_its_quota_is_withdrawn_and_its_attempt_closed() -> None:
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    world.write_turn("train", is_its_turn=False, is_to_end=True)
    world.settle(1.0)
    assert world.runs() == {}
    assert world.dispatch("train").phase == CLOSED
    world.write_turn("train", is_its_turn=True, is_to_end=False)
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}


def test_a_gang_that_waits_and_loses_its_turn_is_asked_for_no_more() -> None:
    world = World(east=0)
    world.submit("train")
    world.settle(3.0)
    assert world.members["east"].answers
    world.write_turn("train", is_its_turn=False, is_to_end=True)
    world.settle(1.0)
    assert not world.members["east"].answers
    assert world.dispatch("train").phase == CLOSED


class WithLateAnswers(World):
    """The watch tells that an offer is gone before the DELETE of it is answered."""

    def _written(self, action: Act) -> Done | Failed:
        result = super()._written(action)
        if isinstance(action.deed, WithdrawOffer) and isinstance(result, Done) and result.things:
            [(where, going)] = result.things
            assert isinstance(going, Answer)
            del self.members[where].answers[going.metadata.name]
            self.tell(Gone(where, going))
        return result


def test_an_offer_that_is_gone_does_not_come_back_with_a_late_answer() -> None:
    world = WithLateAnswers(east=1)
    world.submit("train")
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}
    world.write_turn("train", is_its_turn=False, is_to_end=True)
    world.settle(2.0)
    asked = len(world.written(WithdrawOffer))
    world.settle(5.0)
    assert len(world.written(WithdrawOffer)) == asked
    assert world.dispatch("train").phase == CLOSED


def test_of_a_queue_members_are_asked_for_the_first_few_alone() -> None:
    world = World(east=0)
    for number in range(12):
        world.submit(f"g{number:02}")
    world.settle(3.0)
    assert len(world.members["east"].answers) == 8
    world.delete("g00")
    world.settle(1.0)
    assert len(world.members["east"].answers) == 8


def test_members_beyond_three_are_asked_after_a_time() -> None:
    world = World(QueueClusters(order=tuple("abcd")), a=0, b=0, c=0, d=1)
    world.submit("train")
    world.settle(30.0)
    assert not world.members["d"].answers
    world.settle(40.0)
    assert world.runs() == {"train": ["d"]}


def test_a_member_with_room_is_asked_before_those_of_the_order_as_soon_as_it_shows_room() -> None:
    world = World(QueueClusters(order=tuple("abcd")), a=0, b=0, c=0, d=0)
    for name in "abcd":
        world.show_room(name, pods=0)
    world.submit("train")
    world.write_turn("train", needs=(({GPU: 8}, 2),))
    world.settle(5.0)
    assert not world.members["d"].answers
    world.members["d"].room = 1
    world.show_room("d", pods=2)
    world.settle(2.0)
    assert world.runs() == {"train": ["d"]}


def test_a_member_whose_room_comes_and_goes_keeps_no_other_from_being_asked() -> None:
    names = ("a", "b", "c", "d", "e")
    world = World(QueueClusters(order=names), a=0, b=0, c=0, d=0, e=1)
    for name in names:
        world.show_room(name, pods=9)
    world.submit("train")
    world.write_turn("train", needs=(({GPU: 8}, 2),))
    for _ in range(10):
        world.settle(20.0)
        world.show_room("b", pods=0)
        world.settle(20.0)
        world.show_room("b", pods=9)
    assert world.runs() == {"train": ["e"]}


def test_an_offer_stands_though_the_room_that_is_kept_for_it_shows_no_more() -> None:
    world = World(QueueClusters(order=tuple("abcd")), a=0, b=0, c=0, d=1)
    for name in "abc":
        world.show_room(name, pods=0)
    world.submit("train")
    world.write_turn("train", needs=(({GPU: 8}, 2),))
    world.refuse = {WriteRecord}
    world.settle()
    world.show_room("d", pods=0)
    world.refuse = set()
    world.settle(10.0)
    assert world.runs() == {"train": ["d"]}
    assert not [each for each in world.written(WithdrawOffer) if each.member == "d"]


def test_what_its_user_changes_goes_down_once() -> None:
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    world.edit("train", workers=4)
    (patch,) = world.written(PatchCopy)
    assert patch.operations[1:-1] == [
        {"op": "add", "path": "/spec/workerGroupSpecs/0/replicas", "value": 4}
    ]
    world.settle(3.0)
    assert len(world.written(PatchCopy)) == 1
    world.edit("train", workers=4, suspend=True)
    assert world.written(PatchCopy)[-1].operations[1:-1] == [
        {"op": "add", "path": "/spec/suspend", "value": True}
    ]


def test_the_status_of_a_copy_comes_up_with_the_cluster_and_the_generation_of_its_original() -> (
    None
):
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    world.edit("train", workers=3)
    world.report("east", "train", state="ready", observedGeneration=0, readyWorkerReplicas=3)
    world.settle(1.0)
    status = world.statuses["train"]
    assert (status["state"], status["observedGeneration"]) == ("ready", 2)
    (condition,) = status["conditions"]
    assert (condition["type"], condition["message"]) == (DISPATCHED, "it runs on cluster east")
    written = len(world.written(MirrorStatus))
    world.settle(3.0)
    assert len(world.written(MirrorStatus)) == written

    world.close("east", "train", "Ended")
    world.settle(0.0)
    assert "state" not in world.statuses["train"]


def test_a_status_that_changes_at_once_again_comes_up_once_and_within_a_second() -> None:
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    for at in range(8):
        world.report("east", "train", readyWorkerReplicas=at)
        world.settle(0.2, each=0.1)
    told = [each.status["readyWorkerReplicas"] for each in world.written(MirrorStatus)]
    assert told == [4], "after a second it is told as it is then"
    world.settle(0.5, each=0.1)
    assert world.statuses["train"]["readyWorkerReplicas"] == 7
    assert len(world.written(MirrorStatus)) == 2


def test_of_each_queue_only_the_first_few_have_a_record_and_the_next_once_one_is_taken() -> None:
    world = World(east=0)
    names = [f"g{at:02}" for at in range(12)]
    for name in names:
        world.submit(name)
    world.settle(5.0)
    asked = {each.turn.metadata.name for each in world.written(WriteRecord)}
    assert len(asked) == FIRST_FEW
    world.members["east"].room = 1
    world.settle(5.0)
    assert sum(map(len, world.runs().values())) == 1
    asked = {each.turn.metadata.name for each in world.written(WriteRecord)}
    assert len(asked) == FIRST_FEW + 1


def test_what_is_never_sent_says_so_and_keeps_no_other_from_being_asked_for() -> None:
    world = World(east=1)
    long = [f"{at:02}{'x' * 62}" for at in range(FIRST_FEW)]
    for name in (*long, "train"):
        world.submit(name)
    world.settle(5.0)
    assert world.runs() == {"train": ["east"]}
    assert all("characters" in world.dispatch(name).message for name in long)


def test_why_a_gang_is_not_whole_on_its_member_is_on_record_until_it_is() -> None:
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    world.say("east", "train", "BelowMinimum", "1 of 3\nworkers run")
    world.settle(3.0)
    record = world.dispatch("train")
    assert (record.phase, record.reason) == (STARTED, "BelowMinimum")
    assert record.message == "1 of 3 workers run"
    world.cut("east")
    world.settle(3.0)
    assert world.dispatch("train").reason == ""
    assert "not connected" in world.dispatch("train").message
    world.connect("east")
    world.settle(3.0)
    assert world.dispatch("train").reason == "BelowMinimum"
    world.say("east", "train", "", "")
    world.settle(3.0)
    assert (world.dispatch("train").reason, world.dispatch("train").message) == ("", "")
    world.say("east", "train", "Preempted", "for b")
    world.settle(3.0)
    world.close("east", "train", "Stopped")
    (closed,) = world.written(CloseRecord)
    assert (closed.dispatch.reason, closed.dispatch.message) == ("", "east: Stopped: so it is")


def test_a_cordoned_member_takes_nothing_new_and_keeps_what_it_has() -> None:
    world = World(east=2)
    world.submit("train")
    world.settle(3.0)
    world.tell(Seen(HERE, member_cluster("east", state="Cordoned")))
    world.submit("next")
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}
    assert [each.message for each in world.dispatch("next").refusals] == ["it is Cordoned"]


def test_an_offer_that_is_gone_is_looked_for_before_another_attempt_is_made() -> None:
    world = World(east=1, west=1)
    world.submit("train")
    world.settle(3.0)
    where = world.dispatch("train").cluster
    member = world.members[where]
    ((name, answer),) = member.answers.items()
    member.answers.clear()
    world.tell(Gone(where, answer))
    (closed,) = world.written(CloseRecord)
    assert closed.offer == name
    world.settle(3.0)
    assert world.dispatch("train").attempt == 2


@pytest.mark.parametrize("lost_after", [0, 300])
@examples(15, otherwise=3)
@given(history=st.binary(min_size=20, max_size=80))
def test_whatever_is_lost_or_late_no_gang_runs_twice_and_all_that_fit_run_in_the_end(
    lost_after: int, history: bytes
) -> None:
    world = World(lost_after=lost_after, east=1, west=1)
    for name in GANGS:
        world.submit(name)
    for choice in history:
        happen(world, choice)
        once(world)
    world.heal()
    world.settle(150.0, each=1.0)
    once(world)
    assert len(world.runs()) == 2


GANGS = ("one", "two", "three")


def once(world: World) -> None:
    assert all(len(where) == 1 for where in world.runs().values()), world.runs()


def happen(world: World, choice: int) -> None:
    """Have one of the things happen that a byte can choose."""
    member = world.members[("east", "west")[choice % 2]]
    name = GANGS[choice % 3]
    match choice // 6 % 9:
        case 0:
            world.settle(1.0)
        case 1:
            world.settle(100.0, each=20.0)
        case 2:
            member.hangs = True
        case 3:
            world.arrive(member.name)
        case 4:
            member.hangs = True
            world.cut(member.name)
        case 5:
            member.hangs = False
            world.connect(member.name)
        case 6:
            world.lead()
        case 7:
            world.close(member.name, name, "Preempted")
        case 8:
            world.refuse ^= {PatchOffer if choice % 2 else WriteRecord}


def drain(world: World, name: str) -> None:
    world.tell(Seen(HERE, member_cluster(name, state="Drained")))


def test_gangs_leave_a_drained_member_the_least_urgent_and_newest_first() -> None:
    world = World(EAST_FIRST, east=3, west=0)
    for name in ("old", "new", "urgent"):
        world.submit(name)
        world.write_turn(name, priority=5 if name == "urgent" else 0)
    world.settle(5.0)
    assert set(world.runs()) == {"old", "new", "urgent"}
    made = {"old": "2026-01-01T00:00:00Z", "new": "2026-01-02T00:00:00Z"}
    for name, time in made.items():
        found = world.turns[name]
        world.write_turn(name, metadata=replace(found.metadata, creation_timestamp=time))
    drain(world, "east")
    world.settle(20.0)
    assert world.runs() == {}, "each waits for room elsewhere by now"
    order = [each.dispatch for each in world.written(CloseRecord)]
    went = [each.answer.of for each in world.written(WithdrawOffer) if each.answer.accepted_by]
    assert went == ["uid-new", "uid-old", "uid-urgent"]
    assert [each.phase for each in order] == [CLOSED] * 3
    world.members["west"].room = 3
    world.settle(70.0)
    assert world.runs() == {"old": ["west"], "new": ["west"], "urgent": ["west"]}


def test_what_no_other_member_takes_stays_on_a_drained_one() -> None:
    world = World(east=1)
    world.submit("train")
    world.settle(3.0)
    drain(world, "east")
    world.settle(20.0)
    assert world.runs() == {"train": ["east"]}
    world.submit("next")
    world.settle(5.0)
    said = {each.cluster: each.message for each in world.dispatch("next").refusals}
    assert said == {"east": "it is Drained"}
