"""How many nominations are written: in bursts, for plans that move, and where none may be."""

from collections import Counter

import pytest

from coordinator.gang import nominations as rules
from coordinator.gang.nominations import FORBIDDEN_FOR, PER_SECOND, Guard, Pace
from coordinator.gang.pods.nominating import CALM, FIRST_MOVE_PAUSE, LONGEST_MOVE_PAUSE, PlanMoves
from coordinator.gang.start_window import UNDER_WAY
from coordinator.messages.actions import NominatePod, ReleasePod
from coordinator.messages.events import SchedulerSeen
from coordinator.messages.write_ends import NominationEnded
from coordinator.reconcile.pod_writes.nominations import PAUSE, PAUSE_IN_LINE
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.deeds import decided
from tests.coordinator.journeys.nominations.worlds import (
    field_of,
    fields,
    guarded,
    nominations,
    pass_time,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World, is_gated, name_of

LABELS = {**OPTED_IN, names.QUEUE: "team"}
GANGS = 4 * UNDER_WAY
WORKERS = 2
PACE = 0.6
"""Seconds that kube-scheduler takes for a gang."""


def burst(guard: Guard) -> World:
    """Gangs that are all placed at once, on nodes of three CPUs: one for each of them."""
    world = World(*(node(f"n{number:02}", cpu=3) for number in range(GANGS)), guard=guard)
    for number in range(GANGS):
        world.create(gang_of(f"g{number:02}", WORKERS, created=1 + number))
    decided(world)
    return world


def bind_one(world: World) -> None:
    """Have kube-scheduler bind the pods of the first gang that are released, and time pass."""
    world.leader.hear_all()
    world.leader.act_all()
    released = [pod for pod in world.pods() if not is_gated(pod) and "nodeName" not in pod["spec"]]
    first = min((_gang(pod) for pod in released), default="")
    for pod in released:
        if _gang(pod) == first:
            world._schedule_one(pod)
    world.kubelets()
    world.leader.hear_all()
    world.leader.act_all()
    pass_time(world, PACE)
    world.leader.act_all()


def _gang(pod: Json) -> str:
    return str(pod["metadata"]["labels"][names.RAY_CLUSTER])


def finish(world: World) -> list[type]:
    """Bind gang after gang until all are; return the kinds of all writes to pods."""
    for _ in range(4 * GANGS):
        if sum(world.bound().values()) < GANGS * (WORKERS + 1):
            bind_one(world)
    assert sum(world.bound().values()) == GANGS * (WORKERS + 1)
    writes = [type(each) for each in world.leader.log]
    return [each for each in writes if each in (NominatePod, ReleasePod)]


@pytest.mark.long
def test_in_a_burst_pods_are_written_as_often_as_without_the_guard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gangs stand in the line longer than one whose release is held up waits."""
    monkeypatch.setattr("coordinator.gang.start_window.SLACK", 1000.0)
    assert PAUSE < PACE < PAUSE_IN_LINE / GANGS
    ours, without = finish(burst(Guard.NOMINATION)), finish(burst(Guard.NONE))
    assert Counter(ours) == Counter(without) == {ReleasePod: GANGS * (WORKERS + 1)}


def test_gangs_that_stand_in_the_line_for_long_are_nominated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kube-scheduler binds none of those before them; their releases are not answered."""
    monkeypatch.setattr("coordinator.gang.start_window.SLACK", 1000.0)
    world = burst(Guard.NOMINATION)
    last = f"g{GANGS - 1}"
    pass_time(world, PAUSE)
    assert nominations(world, "g00") != []
    pass_time(world, PAUSE_IN_LINE - 2 * PAUSE)
    assert nominations(world, last) == []
    pass_time(world, PAUSE)
    assert len(nominations(world, last)) == WORKERS + 1


def test_a_gang_in_the_line_that_lost_its_room_is_nominated_after_a_moment() -> None:
    world = burst(Guard.NOMINATION)
    last = GangKey(TEAM, f"g{GANGS - 1}")
    [where] = placed_on(world, last)
    world.create(node("spare", cpu=3))
    world.create(other_pod("filler", where))
    leader = world.leader
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    leader.cycle()
    leader.act_all_but(ReleasePod)
    assert "spare" in placed_on(world, last)
    assert nominations(world, last.name) == []
    pass_time(world, PAUSE)
    leader.act_all_but(ReleasePod)
    assert fields(world, last.name) == placed_on(world, last)


def placed_on(world: World, gang: GangKey) -> set[str]:
    """The nodes of the slots of a gang, none of which is taken."""
    standing = world.leader.state.known.views[gang].survey.standing
    return {node for each in standing for _, node in each.with_slot}


def other_pod(name: str, where: str, cpu: int = 1) -> Json:
    """A pod of no gang that is bound."""
    requests = {"resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM, "labels": {}},
        "spec": {"nodeName": where, "containers": [{"name": "main", **requests}]},
        "status": {"phase": "Running"},
    }


# ---- over all gangs


def test_no_more_than_so_many_nominations_are_asked_for_in_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all gangs together; those that are due then follow in the next seconds."""
    monkeypatch.setattr(rules, "PER_SECOND", 10)
    monkeypatch.setattr("coordinator.gang.start_window.SLACK", 1000.0)
    world = burst(Guard.NOMINATION)
    world.leader.act_all_but(ReleasePod)
    pass_time(world, PAUSE)
    assert len(nominations(world)) == 10
    world.leader.act_all_but(ReleasePod)
    pass_time(world, 0.5)
    assert len(nominations(world)) == 10
    pass_time(world, 0.5)
    world.leader.act_all_but(ReleasePod)
    assert len(nominations(world)) == 20
    pass_time(world, 1.0)
    assert len(nominations(world)) == UNDER_WAY * (WORKERS + 1)


def test_no_release_waits_for_its_turn_among_the_nominations_of_all_gangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "PER_SECOND", 0)
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1", cpu=64))
    world.create(gang_of("a", 5))
    world.settle()
    assert len(nominations(world)) == 6
    assert world.bound("a") == {"n1": 6}


def test_another_kube_scheduler_is_told_of_all_nominations_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coordinator.gang.start_window.SLACK", 1000.0)
    world = burst(Guard.NOMINATION)
    pass_time(world, PAUSE)
    leader = world.leader
    leader.act_all_but(ReleasePod)
    asked = len(nominations(world))
    assert asked == UNDER_WAY * (WORKERS + 1)
    monkeypatch.setattr(rules, "PER_SECOND", 0)
    pass_time(world, 1.0)
    leader.handle([SchedulerSeen("another")])
    assert len(nominations(world)) == 2 * asked


def test_a_pace_counts_anew_each_second() -> None:
    pace = Pace()
    assert [pace.spend(5.0) for _ in range(PER_SECOND + 1)] == [True] * PER_SECOND + [False]
    assert not pace.spend(5.9)
    assert pace.next_second == 6.0
    assert pace.spend(6.0)


# ---- plans that move


def test_a_plan_that_moves_is_followed_after_a_pause_that_grows() -> None:
    now = 0.0
    moves = PlanMoves().followed(["n1", "n1"], now)
    moves = moves.followed(["n1", "n1", "n2"], now)
    assert moves.until < now, "a plan that only grows is no move"
    pauses = []
    for place in ("n3", "n4", "n5", "n6", "n7", "n8"):
        moves = moves.followed([place], now)
        pauses.append(moves.until - now)
        now = moves.until
        assert moves.followed([place], now) == moves
    assert pauses == [FIRST_MOVE_PAUSE * factor for factor in (1, 2, 4, 8)] + 2 * [
        LONGEST_MOVE_PAUSE
    ]
    now += CALM
    assert moves.followed(["n1"], now).until - now == FIRST_MOVE_PAUSE


def with_a_plan_that_can_move() -> World:
    """Gang v ends for p, which has room on either of two nodes beside it."""
    world = World(
        node("n1", cpu=4),
        node("n2", cpu=2),
        node("n3", cpu=2),
        queue("team", preemption={"withinQueue": "LowerPriority"}),
        guard=Guard.NOMINATION,
    )
    world.create(other_pod("at-n2", "n2", 2), other_pod("at-n3", "n3", 1))
    world.create(gang_of("v", 3, labels=LABELS))
    world.settle(seconds=10)
    world.kubelets = lambda: None  # type: ignore[method-assign]
    workers = group("workers", 4, priority=10)
    world.create(ray_cluster("p", workers, head=template(priority=10), labels=LABELS, created=2))
    world.settle(seconds=5)
    assert fields(world, "p") == {"n1", "n3"}
    return world


def test_of_a_plan_that_moves_again_and_again_few_pods_are_written() -> None:
    """The room that it has beside what ends is now on one node, now on another."""
    world = with_a_plan_that_can_move()
    asked, here, there = len(nominations(world)), "n2", "n3"
    for _ in range(20):
        world.api.remove(Key("pods", TEAM, f"at-{here}"))
        world.create(other_pod(f"at-{here}", here, 1))
        world.api.remove(Key("pods", TEAM, f"at-{there}"))
        world.create(other_pod(f"at-{there}", there, 2))
        world.settle(seconds=1)
        here, there = there, here
    assert len(nominations(world)) - asked <= 12
    world.settle(seconds=2 * LONGEST_MOVE_PAUSE)
    assert {field_of(world, name_of(pod)) for pod in world.pods("p")} == {"n1", there} - {here}


# ---- where none may be written


def forbid(world: World) -> None:
    """Have the API server say of all nominations that are asked for that none may be written."""
    asked = [each for each in world.leader.todo if isinstance(each, NominatePod)]
    for each in asked:
        world.leader.todo.remove(each)
        world.leader.handle([NominationEnded(each.gang, each.pod.metadata.uid, forbidden=True)])
    assert asked != []


def test_where_nominations_are_forbidden_nothing_waits_for_them_and_they_are_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gang all of whose pods are to be nominated before their release, and another one."""
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1", cpu=64))
    for name in ("a", "b"):
        world.create(gang_of(name, 3))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    leader.act_all_but(NominatePod, ReleasePod)
    assert leader.releases() == []
    forbid(world)
    asked = len(nominations(world))
    world.settle(seconds=5)
    assert world.bound() == {"n1": 8}
    assert len(nominations(world)) == asked
    world.create(gang_of("c", 3))
    world.settle(seconds=FORBIDDEN_FOR)
    assert len(nominations(world)) == asked
    world.create(gang_of("d", 3))
    world.settle(seconds=1)
    assert len(nominations(world, "d")) == 4
    assert world.bound("d") == {"n1": 4}


def test_the_end_of_the_time_without_nominations_has_held_up_gangs_nominated() -> None:
    world = burst(Guard.NOMINATION)
    leader = world.leader
    leader.act_all_but(ReleasePod)
    leader.handle([NominationEnded(GangKey(TEAM, "g00"), "x", forbidden=True)])
    for _ in range(10):
        pass_time(world, FORBIDDEN_FOR / 10 - 1)
    assert nominations(world) == []
    pass_time(world, 10)
    pass_time(world, PAUSE)
    assert nominations(world, "g00") != []
