"""Which members are asked for a gang, and what is said of the others."""

from collections.abc import Mapping
from typing import Any

from dispatcher.candidates import (
    LONGEST_REFUSAL,
    NO_TROUBLE,
    Member,
    able,
    one_line,
    ranked,
    refusals,
)
from dispatcher.reading import QueueRoom, room_of
from kube.gang.holes import Room
from kube.objects.base import ObjectMeta
from kube.objects.clusters.queue_clusters import ClusterSelector, QueueClusters
from kube.objects.queues.queue import GangQueue, GangQueueSpec, Provisioning, QueueHole
from scheduling.model.amounts import CPU
from tests.dispatcher.objects import GPU, TEAM, member_cluster

ALL = QueueClusters()


def member(name: str, *, up: bool = True, gangs: int = 0, **more: Any) -> Member:
    uids = {str(number) for number in range(gangs)}
    return Member(member_cluster(name, **more), up, "" if up else "no answer", gangs=uids)


def chosen(
    clusters: QueueClusters, members: Mapping[str, Member], trouble: Mapping[str, str] = NO_TROUBLE
) -> list[str]:
    found = able(clusters, TEAM, members, trouble)
    return [name for _, name in ranked(clusters, "all", (), found)]


def by_name(*members: Member) -> dict[str, Member]:
    return {each.name: each for each in members}


def test_those_of_the_order_come_first_and_of_the_others_the_emptiest() -> None:
    members = by_name(member("a", gangs=2), member("b"), member("c", gangs=9), member("d"))
    assert chosen(QueueClusters(order=("c", "x")), members) == ["c", "b", "d", "a"]


def test_those_whose_queue_shows_room_come_before_those_of_the_order() -> None:
    members = by_name(*map(member, ("full", "unknown", "tight", "roomy")))
    for name, pods, at_most in (("full", 3, 3), ("tight", 3, 4), ("roomy", 4, 4)):
        hole = QueueHole(resource=GPU, size=8, pods=pods, at_most=at_most)
        holes = (hole, QueueHole(resource=GPU, size=1, pods=99, at_most=99))
        members[name].rooms = {"all": QueueRoom(ObjectMeta(name="all"), holes)}
    needs = (({GPU: 16, CPU: 4}, 2), ({CPU: 64}, 10))  # four times 8 GPUs
    clusters = QueueClusters(order=("full", "tight"))
    assert ranked(clusters, "all", needs, members.values()) == [
        (Room.AMPLE, "roomy"),
        (Room.AMPLE, "unknown"),
        (Room.TIGHT, "tight"),
        (Room.NONE, "full"),
    ]
    assert ranked(clusters, "another", needs, members.values())[0] == (Room.AMPLE, "full")


def test_a_selector_takes_members_with_all_of_its_labels() -> None:
    gpu = {"gpu": "h100", "site": "north"}
    members = by_name(member("a", labels=gpu), member("b", labels={"gpu": "h100"}), member("c"))
    clusters = QueueClusters(selector=ClusterSelector(match_labels=gpu))
    assert chosen(clusters, members) == ["a"]
    assert refusals(clusters, "other", members, {})[0].cluster == "a"


def test_who_takes_nothing_says_why_in_one_line() -> None:
    members = by_name(
        member("asked"),
        member("away", up=False),
        member("cordoned", state="Cordoned"),
        member("drained", state="Drained"),
        member("foreign", namespaces=("others",)),
        member("silent"),
    )
    assert chosen(ALL, members) == ["asked", "silent"]
    said = refusals(ALL, TEAM, members, {"asked": "0 of 2\n workers fit"})
    assert {each.cluster: each.message for each in said} == {
        "asked": "0 of 2 workers fit",
        "away": "not connected: no answer",
        "cordoned": "it is Cordoned",
        "drained": "it is Drained",
        "foreign": f"namespace {TEAM} is not among spec.namespaces of MemberCluster foreign",
    }


def test_who_refused_for_reasons_of_its_own_is_left_out_for_a_time() -> None:
    members = by_name(member("a"), member("b"))
    assert chosen(ALL, members, {"a": "NameTaken"}) == ["b"]


def test_a_line_has_the_length_that_the_record_allows() -> None:
    assert len(one_line("x" * 5000)) == LONGEST_REFUSAL


def test_a_queue_there_says_whether_it_asks_for_nodes() -> None:
    rules = Provisioning(class_name="check.example")
    asks, not_so = GangQueue(spec=GangQueueSpec(provisioning=rules)), GangQueue()
    assert [room_of(each).provisions for each in (asks, not_so)] == [True, False]
    assert room_of(asks) != room_of(not_so)
