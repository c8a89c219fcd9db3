"""A gang costs few writes, and its status is never older than documented."""

import pytest

from coordinator.gang.record import Record, Writing
from coordinator.messages.actions import (
    CreateGang,
    EmitEvent,
    PatchGangSpec,
    ReleasePod,
    WriteGangStatus,
)
from coordinator.record.urgency import (
    GATHER_DELAY,
    GATHER_LIMIT,
    LONGEST_QUIET,
    QUIET_DELAY,
    RUNNING,
    SETTLE_DELAY,
    ClusterActivity,
    Urgency,
    quiet_delay,
)
from scheduling.model.verdict import Reason
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node, template
from tests.coordinator.world import World, key

GANGS = 20


def writes(world: World, name: str) -> list[str]:
    """What was asked for the gang's own object: create, spec, or the reason that a status says."""
    found = []
    for each in world.leader.log:
        match each:
            case CreateGang() if each.key.name == name:
                found.append("create")
            case PatchGangSpec() if each.key.name == name:
                found.append("spec")
            case WriteGangStatus() if each.key.name == name:
                found.append(str(each.status["reason"]))
    return found


def trickle(world: World, name: str, every: float) -> None:
    """KubeRay makes the pods of a RayCluster, one each so many seconds."""
    cluster = world.api.get(Key("rayclusters", TEAM, name))
    for pod_set, _, wanted in list(world._sets(cluster, ())):
        for _ in range(wanted):
            world.leader.hear_all()
            world._make_replica(cluster, pod_set, 1)
            world.schedule()
            world.kubelets()
            end = world.api.now + every
            while world.api.now < end:
                world.api.now = min(end, world._next_moment(end))
                world._work(world.leader)


@pytest.mark.parametrize("every", [0.01, 0.9 * GATHER_DELAY])
def test_a_gang_of_a_burst_costs_a_create_and_two_status_writes(every: float) -> None:
    """However slowly its pods come, and though it has a priority that only they tell."""
    world = World(node("n1", cpu=64))
    low = {"spec": {**template()["spec"], "priority": -5}}
    world.create(gang_of("a", 3, head=low))
    trickle(world, "a", every)
    world.settle(seconds=60)
    assert writes(world, "a") == ["create", "Admitted", "Running"]
    assert not [each for each in world.leader.log if isinstance(each, EmitEvent)]
    assert len([each for each in world.leader.log if isinstance(each, ReleasePod)]) == 4


def test_gangs_of_a_burst_are_not_told_that_pods_are_missing_while_those_of_others_come() -> None:
    """KubeRay makes the pods of one cluster after the other."""
    world = World(node("n1", cpu=64))
    names = ("a", "b")
    for name in names:
        world.create(gang_of(name, 2))
    for name in names:
        trickle(world, name, 0.8 * GATHER_DELAY)
    world.settle(seconds=60)
    assert [writes(world, name)[-2:] for name in names] == [["Admitted", "Running"]] * 2
    assert [len(writes(world, name)) for name in names] == [3, 3]


def test_a_gang_whose_pods_do_not_come_is_told_so_while_those_of_others_come() -> None:
    world = World(node("n1", cpu=64))
    world.create(*(gang_of(name, 9) for name in ("late", "one", "two")))
    trickle(world, "one", 0.09 * GATHER_LIMIT)
    assert writes(world, "late") == ["create"]
    trickle(world, "two", 0.09 * GATHER_LIMIT)
    assert writes(world, "late") == ["create", "GangIncomplete"]


def test_a_gang_whose_pods_do_not_come_is_told_so_within_seconds_where_none_come() -> None:
    world = World(node("n1", cpu=64))
    world.create(gang_of("a", 3))
    world._work(world.leader)
    assert writes(world, "a") == []
    world.api.now += GATHER_DELAY
    world._work(world.leader)
    assert writes(world, "a") == ["create", "GangIncomplete"]


def test_a_pod_that_is_lost_and_made_again_while_the_gang_waits_costs_no_write() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=30)
    before = writes(world, "a")
    world.delete("pods", world.pods("a")[1]["metadata"]["name"])
    world._work(world.leader)
    world.settle(seconds=30)
    assert writes(world, "a") == before == ["create", "NeverFits"]


def test_a_gang_that_is_admitted_within_the_second_was_never_told_that_it_waits() -> None:
    world = World(node("n1", cpu=2), foreign_pod("x", "n1", cpu=1))
    world.create(gang_of("a", 1))
    world.settle(seconds=0.9 * SETTLE_DELAY)
    assert writes(world, "a") == ["create"]
    world.api.remove(Key("pods", "others", "x"))
    world.settle(seconds=60)
    assert writes(world, "a") == ["create", "Admitted", "Running"]


def said(reason: Reason, message: str = "", phase: str = "Queued") -> dict[str, str]:
    return {"phase": phase, "reason": reason, "message": message}


RUNS = said(Reason.RUNNING, phase="Running")
BUSY = ClusterActivity(LONGEST_QUIET, came=100.0)


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        (said(Reason.MISCONFIGURED, "key a"), said(Reason.MISCONFIGURED, "key b"), False),
        (said(Reason.INSUFFICIENT_RESOURCES), said(Reason.NEVER_FITS), True),
        (said(Reason.INSUFFICIENT_RESOURCES), said(Reason.UNSUPPORTED), True),
        (
            said(Reason.RUNNING, phase="Running"),
            said(Reason.GANG_INCOMPLETE, phase="Running"),
            False,
        ),
    ],
)
def test_what_only_its_user_can_end_is_told_within_a_second_however_many_wait(
    before: dict[str, str], after: dict[str, str], refused: bool
) -> None:
    urgency = Urgency(written_at=98.0)
    urgency = urgency.compared(after, before, 100.0)
    due = urgency.due(after, before, BUSY, refused=refused)
    assert due is not None
    assert due <= 100.0 + SETTLE_DELAY


def test_a_status_that_did_not_arrive_is_as_urgent_as_before() -> None:
    told, news = said(Reason.NO_FEASIBLE_NODE), said(Reason.INSUFFICIENT_RESOURCES)
    before = Urgency(written_at=40.0).compared(news, told, 100.0)
    record = Record(writing=Writing(before=before), urgency=before.sent(news, told, 101.0))
    record.write_ended("timed out", 101.5)
    urgency = record.urgency.compared(news, told, 101.5)
    due = before.due(news, told, BUSY, refused=True)
    assert urgency.due(news, told, BUSY, refused=True) == due == 100.0 + SETTLE_DELAY


def test_what_was_written_stays_so_where_the_next_write_is_of_the_spec_and_fails() -> None:
    world = World(node("n1", cpu=1), foreign_pod("x", "n1", cpu=1))
    world.create(gang_of("a", 1))
    world.settle(seconds=30)
    record = world.leader.state.known.views[key("a")].record
    written_at = record.urgency.written_at
    record.writing = Writing()
    record.write_ended("timed out", 40.0)
    assert record.urgency.written_at == written_at > 0


def backlog() -> World:
    """Gangs of two that have waited for long, and a node that is full."""
    world = World(node("n1", cpu=2 * GANGS))
    world.create(*(foreign_pod(f"x{number}", "n1", cpu=2) for number in range(GANGS)))
    for number in range(GANGS):
        world.create(gang_of(f"{number:03}", 1))
        world.settle(seconds=0.1)
    world.settle(seconds=120)
    world.leader.log.clear()
    return world


def free(world: World, number: int) -> None:
    world.api.remove(Key("pods", "others", f"x{number}"))


def test_the_gangs_of_a_backlog_cost_two_status_writes_each_where_room_comes_within_seconds() -> (
    None
):
    """Although the place of each in the queue, and what is free, move with every one that goes."""
    world = backlog()
    for number in range(GANGS):
        free(world, number)
        world.settle(seconds=0.05)
    world.settle(seconds=30)
    for number in range(GANGS):
        assert writes(world, f"{number:03}") == ["Admitted", "Running"]


def test_the_numbers_of_waiting_gangs_are_written_once_a_quiet_time_where_room_comes_slowly() -> (
    None
):
    world, every = backlog(), 3.0
    for number in range(GANGS):
        free(world, number)
        world.settle(seconds=every)
        check_positions(world, number + 1)
    for number in range(GANGS):
        waited = number * every
        assert len(writes(world, f"{number:03}")) <= 2 + waited / QUIET_DELAY + 4


def check_positions(world: World, gone: int) -> None:
    """No number is older than it may be: here ten seconds at most, a gang of the queue each 3 s."""
    for number in range(gone, GANGS):
        true = number - gone + 1
        assert true <= world.status(f"{number:03}")["position"] <= true + QUIET_DELAY / 3.0 + 1


def test_the_longer_a_gang_waits_the_less_often_its_numbers_are_written() -> None:
    """Foreign pods come and go each second, for 10 minutes."""
    world = World(node("n1", cpu=8))
    world.create(gang_of("a", 3, cpu=2), foreign_pod("x", "n1", cpu=4))
    world.settle(seconds=30)
    for number in range(600):
        world.create(foreign_pod(f"y{number}", "n1", cpu=1))
        world.settle(seconds=1)
        world.api.remove(Key("pods", "others", f"y{number}"))
        if number % 2:
            world.settle(seconds=0.1)
    assert len(writes(world, "a")) <= 5 + 660 / QUIET_DELAY


def test_ten_writes_a_second_tell_all_waiting_gangs() -> None:
    assert [quiet_delay(n) for n in (0, 10, 300, 600, 5000)] == [
        SETTLE_DELAY,
        SETTLE_DELAY,
        30.0,
        LONGEST_QUIET,
        LONGEST_QUIET,
    ]


def test_what_of_a_gang_ends_is_written_at_once() -> None:
    written = {"phase": RUNNING, "reason": "Running"}
    status = {**written, "evictions": [{"reason": "Preempted", "replicas": ["workers/one"]}]}
    urgency = Urgency().compared(status, written, 100.0)
    due = urgency.due(status, written, ClusterActivity(60.0, 0.0), refused=False)
    assert due == 0.0
