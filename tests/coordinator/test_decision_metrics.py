"""Metrics of what is decided and repaired, and of the time it takes, move."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.gang.nominations import Guard
from coordinator.messages.actions import ReleasePod
from coordinator.messages.clock import Patience
from coordinator.messages.events import TermStarted, TimePassed
from coordinator.shell import decision_log
from coordinator.shell.loop import Loop
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from kube.api.errors import Forbidden, ServerError
from runtime.controller.loop import BATCH
from tests.coordinator.builders import gang_of, node
from tests.coordinator.journeys.test_lost_manager import started as fenced
from tests.coordinator.offers import MANAGER
from tests.coordinator.scraping import executor_of, scrape_world, value
from tests.coordinator.shell.writes.terms import GANG, POD, turns
from tests.coordinator.shell.writes.test_executor_says import Refusing
from tests.coordinator.world import World, name_of
from tests.kube.fake_api import eventually

PATIENCE = Patience()


def logged(world: World) -> None:
    """Have what was decided written to the log, as the executor does."""
    for each in world.leader.logged:
        decision_log.write(each)


async def grown(world: World, name: str, act: Callable[[], None], **labels: str) -> float:
    """By how much a metric grows while something is done."""
    await scrape_world(world)
    before = value(name, **labels)
    act()
    await scrape_world(world)
    return value(name, **labels) - before


# ---- verdicts


async def test_muster_placements_total_moves() -> None:
    """Of a whole gang, and of more pods of one that has its place."""
    world = World(node("n1", cpu=8))
    name = "muster_placements_total"

    def start() -> None:
        world.create(gang_of("a", 2))
        world.settle(seconds=5)

    def scale() -> None:
        world.scale("a", 3)
        world.settle(seconds=5)

    assert await grown(world, name, start, kind="gang") == 1
    assert await grown(world, name, scale, kind="pods") == 1
    assert value(name, kind="gang") == 1


async def test_muster_refusals_total_moves() -> None:
    """Once for each reason, however many cycles repeat it."""
    world = World(node("n1", cpu=3))

    def wait() -> None:
        world.create(gang_of("runs", 2), gang_of("waits", 2))
        world.settle(seconds=100)

    name = "muster_refusals_total"
    assert await grown(world, name, wait, reason="InsufficientResources") == 1
    assert value(name) == 1


async def test_muster_refusing_predicates_total_moves() -> None:
    world = World(node("n1", cpu=3, cordoned=True), node("n2", cpu=1))

    def wait() -> None:
        world.create(gang_of("waits", 2))
        world.settle(seconds=100)

    name = "muster_refusing_predicates_total"
    assert await grown(world, name, wait, predicate="NodeUnschedulable") == 1
    assert value(name, predicate="TaintToleration") == 0


# ---- repairs


def refused_by_scheduler() -> World:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.grudges.add("n1")
    world.settle(seconds=PATIENCE.bind + 1)
    return world


def test_muster_repairs_total_moves() -> None:
    before = value("muster_repairs_total", why="Stranded")
    logged(refused_by_scheduler())
    assert value("muster_repairs_total", why="Stranded") == before + 3


async def test_muster_bind_refusals_total_moves() -> None:
    await scrape_world(World())
    assert value("muster_bind_refusals_total") == 0
    await scrape_world(refused_by_scheduler())
    assert value("muster_bind_refusals_total") == 3


def test_muster_placements_given_up_total_moves() -> None:
    before = value("muster_placements_given_up_total")
    world = World(node("n1"))
    world.create(gang_of("a", 1))
    world.kuberay()
    for pod in world.pods("a"):
        world.api.refusals[name_of(pod)] = Forbidden(403, "Forbidden", "a policy says no")
    world.settle(seconds=PATIENCE.torn + 1)
    logged(world)
    assert value("muster_placements_given_up_total") == before + 1


# ---- times


def test_muster_admission_seconds_moves() -> None:
    """From when the gang is whole: its RayCluster is older, and its pods came late."""
    world = World(node("n1", cpu=3))
    with world.kuberay_refuses({"type": "ReplicaFailure", "status": "True", "message": "quota"}):
        world.create(gang_of("a", 3))
        world.settle(seconds=50)
    world.settle(seconds=95)
    world.create(node("n2"))
    world.settle(seconds=60)
    name = "muster_admission_seconds"
    before = value(name), value(f"{name}_sum")
    logged(world)
    assert value(name) == before[0] + 1
    assert value(f"{name}_sum") - before[1] == pytest.approx(95, abs=1)


def test_muster_release_seconds_moves() -> None:
    """From the write of the placement: the API server answers 7 s later."""
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    leader.cycle()
    leader.act_all_but(ReleasePod)
    world.api.now += 7
    world.settle(seconds=5)
    name = "muster_release_seconds"
    before = value(name), value(f"{name}_sum")
    logged(world)
    assert value(name) > before[0]
    assert value(f"{name}_sum") - before[1] == pytest.approx(7, abs=1)


class Accepting:
    """A client to which every patch succeeds."""

    async def json_patch(self, *_: Any, **__: Any) -> Any:
        return POD


async def test_muster_gate_removal_seconds_moves() -> None:
    """Only where the gate is off."""
    name = "muster_gate_removal_seconds"
    before = value(name)
    for client, count in ((Refusing(ServerError(500, "InternalError")), 0), (Accepting(), 1)):
        executor = executor_of(client)
        executor.submit([ReleasePod(GANG, POD, "n1")])
        await turns()
        await executor.close(60)
        assert value(name) == before + count


async def test_muster_cycle_part_seconds_moves() -> None:
    """Each part once in a cycle."""
    parts = ("intake", "gangs", "snapshot", "deciding", "answers", "queue_reports", "submit")
    before = {part: value("muster_cycle_part_seconds", part=part) for part in parts}
    cycles = value("muster_cycle_seconds")
    loop = Loop(CoordinatorState(Known(guard=Guard.NONE)), debounce=0.0)
    loop.feed([TermStarted(1)])
    task = asyncio.create_task(loop.run())
    await eventually(lambda: value("muster_cycle_seconds") > cycles)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    done = value("muster_cycle_seconds") - cycles
    for part in parts:
        assert value("muster_cycle_part_seconds", part=part) == before[part] + done


def test_muster_event_lag_seconds_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the oldest event of each step, as long as any is left of its batch."""
    now = 100.0
    monkeypatch.setattr("coordinator.shell.loop.time.monotonic", lambda: now)
    loop = Loop(CoordinatorState(), debounce=0.0)
    loop.feed([TimePassed()] * (BATCH + 5))
    loop.feed([])
    name = "muster_event_lag_seconds"
    before = value(name), value(f"{name}_sum")
    now = 103.0
    loop._step()
    loop.feed([TimePassed()])
    now = 107.0
    loop._step()
    loop._step()
    assert value(name) == before[0] + 2
    assert value(f"{name}_sum") == pytest.approx(before[1] + 3 + 7)


async def test_muster_manager_silence_ratio_moves() -> None:
    world = fenced()
    await scrape_world(world)
    assert value("muster_manager_silence_ratio", manager=MANAGER) > 0
    world.settle(seconds=300)
    await scrape_world(world)
    assert value("muster_manager_silence_ratio", manager=MANAGER) == 0, "it has ended by then"
