"""The numbers of all waiting gangs are renewed in time, and few of them in one cycle."""

from typing import Any

import pytest

from coordinator.record.renewals import AT_ONCE, PAUSE, ROUNDS, Renewals
from coordinator.state.cycle import run_cycle
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Decision
from scheduling.queueing.queues import Queues
from scheduling.state.node_snapshot import NodeSnapshot
from tests.coordinator.api import Key
from tests.coordinator.builders import foreign_pod, group, node, ray_cluster
from tests.coordinator.world import World

QUIET = 60.0


def keys(count: int) -> list[GangKey]:
    return [GangKey("team", f"g{at:05}") for at in range(count)]


def test_all_are_decided_anew_once_in_the_order_of_the_queue() -> None:
    renewals, waiting = Renewals(), keys(2 * AT_ONCE + 1)
    found = [renewals.due(waiting, at * PAUSE, QUIET) for at in range(4)]
    shares = waiting[:AT_ONCE], waiting[AT_ONCE : 2 * AT_ONCE], waiting[2 * AT_ONCE :]
    assert found == [*map(frozenset, shares), frozenset()]


def test_no_gang_waits_for_more_than_so_many_cycles_however_many_there_are() -> None:
    renewals, waiting = Renewals(), keys(50 * AT_ONCE * ROUNDS + 7)
    found = [renewals.due(waiting, at * PAUSE, QUIET) for at in range(ROUNDS)]
    assert frozenset().union(*found) == frozenset(waiting)


def test_the_next_are_due_soon_while_some_are_left_and_else_when_the_quiet_time_is_over() -> None:
    renewals = Renewals()
    renewals.due(keys(AT_ONCE + 1), 5.0, QUIET)
    assert renewals.next_at(5.0, QUIET) == 5.0 + PAUSE
    renewals.due([], 6.0, QUIET)
    assert renewals.next_at(6.0, QUIET) == 5.0 + QUIET
    assert not renewals.due(keys(3), 5.0 + QUIET - 0.1, QUIET)
    assert renewals.due(keys(3), 5.0 + QUIET, QUIET) == frozenset(keys(3))


def test_a_gang_that_comes_meanwhile_has_numbers_and_is_due_in_the_next_quiet_time() -> None:
    renewals, waiting = Renewals(), keys(AT_ONCE + 1)
    renewals.due(waiting, 0.0, QUIET)
    assert renewals.due([*keys(3), *waiting], PAUSE, QUIET) == frozenset(waiting[-1:])


# ---- in the coordinator

GANGS = AT_ONCE + 20


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many gangs each cycle decided anew."""
    found: list[int] = []

    def counted(
        queues: Queues, columns: NodeSnapshot, memory: Memory | None, **more: Any
    ) -> tuple[tuple[Decision, ...], Memory]:
        decisions, later = next_cycle(queues, columns, memory, **more)
        found.append(len(decisions) - later.kept)
        return decisions, later

    monkeypatch.setattr(run_cycle, "next_cycle", counted)
    return found


@pytest.fixture
def world(anew: list[int]) -> World:
    """One in which gangs wait, and room has come that is too little for any of them."""
    world = World(node("n1", cpu=8), node("n2", cpu=4))
    world.create(foreign_pod("x", "n1", cpu=5))
    world.create(foreign_pod("y", "n2", cpu=4))
    world.create(*(ray_cluster(f"g{at:03}", group("w", 1, cpu=8)) for at in range(GANGS)))
    world.settle(seconds=60)
    assert messages(world, "3 are free") == GANGS
    anew.clear()
    world.api.remove(Key("pods", "others", "y"))
    return world


def test_all_waiting_gangs_have_numbers_of_now_soon_after_their_quiet_time(
    world: World, anew: list[int]
) -> None:
    world.settle(seconds=2 * GANGS / 10 + 10)  # once to be renewed, once to be written
    assert messages(world, "7 are free") == GANGS
    assert sum(anew) == GANGS
    assert max(anew) == AT_ONCE
    world.settle(seconds=300)
    assert sum(anew) == GANGS, "where nothing changes nothing is renewed"


def test_pods_that_come_put_no_renewal_off(world: World, anew: list[int]) -> None:
    for _ in range(60):
        world.settle(seconds=PAUSE / 2)
        if sum(anew):
            break
    assert sum(anew) == AT_ONCE
    world.create(foreign_pod("z", "n2"))
    world.settle(seconds=PAUSE)
    assert sum(anew) == GANGS


def messages(world: World, said: str) -> int:
    return sum(said in world.status(f"g{at:03}")["message"] for at in range(GANGS))
