"""Each metric of the coordinator moves when what it counts happens.

One test for each, named for it; what is read off the state is read as a scraper does.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from prometheus_client import REGISTRY
from pytest_aiohttp import AiohttpServer

from coordinator.messages.actions import EmitEvent, NominatePod
from coordinator.messages.clock import Patience
from coordinator.messages.events import TermStarted, TimePassed
from coordinator.metrics import CONNECTIONS
from coordinator.settings import Settings
from coordinator.shell import decision_log
from coordinator.shell.app import Coordinator
from coordinator.shell.definitions import Definitions
from coordinator.shell.loop import Loop
from coordinator.state_machine import CoordinatorState
from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.errors import ServerError
from kube.api.leader_election import Term
from kube.objects import names
from runtime.controller.loop import BATCH
from tests.coordinator import test_decision_metrics, test_device_metrics, test_gpu_metrics
from tests.coordinator.api import Key
from tests.coordinator.builders import gang_of, node
from tests.coordinator.gang.pods.test_kept_slots import QUOTA, failure, lose_workers, running
from tests.coordinator.journeys import test_late_starts as late_starts
from tests.coordinator.journeys.queues.worlds import change, gang_in, queue
from tests.coordinator.offers import member, offer, started
from tests.coordinator.scraping import executor_of, scrape, scrape_world, value
from tests.coordinator.shell.test_definitions import Served
from tests.coordinator.shell.writes.terms import GANG, POD, turns
from tests.coordinator.shell.writes.test_executor import RecordingNominations
from tests.coordinator.shell.writes.test_executor_says import NO_RIGHT, Refusing
from tests.coordinator.world import World
from tests.kube.fake_api import FakeApi, eventually, says, serving
from tests.kube.half_request import count_half_request
from tests.metrics import untested

PATIENCE = Patience()


def test_every_metric_has_a_test_that_sees_it_move() -> None:
    elsewhere = (test_decision_metrics, test_device_metrics, test_gpu_metrics)
    tests = {name: test for each in elsewhere for name, test in vars(each).items()}
    assert untested(REGISTRY, {**globals(), **tests}) == []


def one_runs_one_waits() -> World:
    world = World(node("n1", cpu=3))
    world.create(gang_of("runs", 2))
    world.settle(seconds=5)
    world.create(gang_of("waits", 2))
    world.settle(seconds=5)
    return world


# ---- gangs


async def test_muster_gangs_moves() -> None:
    world = one_runs_one_waits()
    await scrape_world(world)
    assert value("muster_gangs", phase="Running") == 1
    assert value("muster_gangs", phase="Queued") == 1
    world.create(node("n2"))
    world.settle(seconds=5)
    await scrape_world(world)
    assert value("muster_gangs", phase="Running") == 2
    assert value("muster_gangs", phase="Queued") == 0


async def test_muster_gangs_waiting_moves() -> None:
    world = one_runs_one_waits()
    await scrape_world(world)
    assert value("muster_gangs_waiting") == 1
    assert value("muster_gangs_waiting", reason="InsufficientResources") == 1


def a_queue_with_quota() -> World:
    """One gang runs, another waits; the parent lends nothing and has no gangs."""
    world = World(node("n1", cpu=100), queue("all", cpu=1), queue("red", cpu=4, parent="all"))
    world.create(gang_in("red", "a", 3), gang_in("red", "b", 3))
    world.settle(seconds=5)
    return world


async def test_muster_queue_pending_moves() -> None:
    world = a_queue_with_quota()
    await scrape_world(world)
    assert value("muster_queue_pending", queue="red") == 1
    assert value("muster_queue_pending", queue="all") == 0
    world.delete("rayclusters", "b")
    world.settle(seconds=5)
    await scrape_world(world)
    assert value("muster_queue_pending", queue="red") == 0


async def test_muster_queue_stopped_moves() -> None:
    world = a_queue_with_quota()
    for stop, shown in (("Hold", 1), ("None", 0)):
        change(world, "all", stop=stop)
        world.settle(seconds=5)
        await scrape_world(world)
        assert value("muster_queue_stopped", queue="red") == shown


async def test_muster_queue_usage_moves() -> None:
    world = a_queue_with_quota()
    await scrape_world(world)
    assert value("muster_queue_usage", queue="red", resource="cpu") == 4
    assert value("muster_queue_usage", queue="all", resource="cpu") == 4
    world.delete("rayclusters", "a")
    world.delete("rayclusters", "b")
    world.settle(seconds=5)
    await scrape_world(world)
    assert value("muster_queue_usage", queue="red", resource="cpu") == 0


async def test_muster_queue_quota_moves() -> None:
    world = a_queue_with_quota()
    await scrape_world(world)
    assert value("muster_queue_quota", queue="red", resource="cpu") == 4
    assert value("muster_queue_quota", queue="all", resource="cpu") == 5
    world.api.delete(Key("gangqueues", "", "all"))
    world.settle(seconds=5)
    await scrape_world(world)
    assert value("muster_queue_quota") == 0, "a queue that is not active has no place in the tree"


async def test_muster_kept_slots_moves() -> None:
    """Workers are lost, and KubeRay may not make others."""
    world = running()
    await scrape_world(world)
    assert value("muster_kept_slots") == 0
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 3)
        world.settle(seconds=5)
    await scrape_world(world)
    assert value("muster_kept_slots") == 3


async def test_muster_avoided_nodes_moves() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    await scrape_world(world)
    assert value("muster_avoided_nodes") == 0
    world.grudges.add("n1")
    world.settle(seconds=PATIENCE.bind + 1)
    await scrape_world(world)
    assert value("muster_avoided_nodes") == 1


async def test_muster_late_starts_total_moves() -> None:
    world = late_starts.begun()
    before = value("muster_late_starts_total", queue="team")
    world.settle(seconds=120)
    for each in world.leader.logged:
        decision_log.write(each)
    assert value("muster_late_starts_total", queue="team") == before + 1


async def test_muster_admission_wait_seconds_moves() -> None:
    """Once for each gang, by the whole wait; surplus and replacements are no waits of a gang."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 3))
    world.settle(seconds=95)
    world.create(node("n2"))
    world.settle(seconds=60)
    world.scale("a", 5)
    world.settle(seconds=60)
    before = value("muster_admission_wait_seconds"), value("muster_admission_wait_seconds_sum")
    executor_of(None).submit(world.leader.logged)
    assert value("muster_admission_wait_seconds") == before[0] + 1
    assert value("muster_admission_wait_seconds_sum") == pytest.approx(before[1] + 95)


# ---- leading


async def test_muster_leader_moves() -> None:
    async with leading(epoch=3):
        assert value("muster_leader") == 1
    assert value("muster_leader") == 0


async def test_muster_leader_epoch_moves() -> None:
    async with leading(epoch=7):
        assert value("muster_leader_epoch") == 7


@contextlib.asynccontextmanager
async def leading(epoch: int) -> AsyncIterator[None]:
    coordinator = Coordinator(Settings(), cast(Client, None))
    term = Term(epoch, "test", deadline=60.0, clock=lambda: 0.0)
    task = asyncio.create_task(coordinator._act(term))
    await turns()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# ---- the loop and its writes


async def test_muster_cycle_seconds_moves() -> None:
    before = value("muster_cycle_seconds")
    loop = Loop(CoordinatorState(), debounce=0.0)
    loop.feed([TermStarted(1)])
    task = asyncio.create_task(loop.run())
    await eventually(lambda: value("muster_cycle_seconds") > before)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_muster_inbox_events_moves() -> None:
    loop = Loop(CoordinatorState(), debounce=0.0)
    loop.feed([TimePassed()] * (BATCH + 5))
    loop._step()
    assert value("muster_inbox_events") == 5
    loop._step()
    assert value("muster_inbox_events") == 0


def test_muster_writes_total_moves() -> None:
    def done() -> list[float]:
        whats = ("gang_create", "gang_status", "pod_release")
        return [value("muster_writes_total", what=what, outcome="done") for what in whats]

    before = done()
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)
    grown = [after - earlier for after, earlier in zip(done(), before, strict=True)]
    assert grown == [1, 2, 4]


async def test_muster_nominations_forbidden_moves() -> None:
    """Until one succeeds, or the term ends."""
    client = RecordingNominations()
    executor = executor_of(Refusing(NO_RIGHT))
    executor.submit([NominatePod(GANG, POD, "n1", "x")])
    await eventually(lambda: value("muster_nominations_forbidden") == 1)
    executor._pods._client = cast(Client, client)
    executor.submit([NominatePod(GANG, POD, "n1", "x")])
    await eventually(lambda: value("muster_nominations_forbidden") == 0)
    executor._pods._client = cast(Client, Refusing(NO_RIGHT))
    executor.submit([NominatePod(GANG, POD, "n1", "x")])
    await eventually(lambda: value("muster_nominations_forbidden") == 1)
    await executor.close()
    assert value("muster_nominations_forbidden") == 0


async def test_muster_definition_missing_fields_moves(aiohttp_server: AiohttpServer) -> None:
    served = Served()
    app = web.Application()
    app.router.add_get("/{path:.*}", served.handle)
    running = await aiohttp_server(app)
    async with Client(open_access(str(running.make_url("")))) as client:
        definitions = Definitions(client)
        for dropped, expected in ((("decided", "held"), 2), ((), 0)):
            served.mend()
            for field in dropped:
                served.drop(field)
            await definitions.look()
            said = value("muster_definition_missing_fields", definition="gangs.muster.dev")
            assert said == expected


async def test_muster_events_dropped_total_moves() -> None:
    before = value("muster_events_dropped_total")
    executor = executor_of(Refusing(ServerError(500, "InternalError")))
    executor.submit([EmitEvent(GANG, "uid", True, "Misconfigured", "bad")])
    await turns()
    await executor.close()
    assert value("muster_events_dropped_total") == before + 1


# ---- watches


@contextlib.asynccontextmanager
async def watching(fake: FakeApi) -> AsyncIterator[Coordinator]:
    """A replica whose watch of nodes runs."""
    async with serving(fake) as api, Client(open_access(api.url), timeout=60.0) as client:
        coordinator = Coordinator(Settings(), client)
        task = asyncio.create_task(coordinator.reflectors["nodes"].run())
        try:
            yield coordinator
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_muster_watch_synced_moves() -> None:
    async with watching(FakeApi()) as coordinator:
        await scrape(coordinator)
        assert value("muster_watch_synced", resource="nodes") == 0
        await coordinator.reflectors["nodes"].wait_synced()
        await scrape(coordinator)
    assert value("muster_watch_synced", resource="nodes") == 1
    assert value("muster_watch_synced", resource="gangs") == 0


async def test_muster_watch_relists_moves() -> None:
    async with watching(FakeApi()) as coordinator:
        await scrape(coordinator)
        assert value("muster_watch_relists", resource="nodes") == 0
        await coordinator.reflectors["nodes"].wait_synced()
        await scrape(coordinator)
    assert value("muster_watch_relists", resource="nodes") == 1


async def test_muster_watch_reopened_moves() -> None:
    async with watching(FakeApi()) as coordinator:
        nodes = coordinator.reflectors["nodes"]
        await nodes.wait_synced()
        await eventually(nodes.reopen)
        await scrape(coordinator)
    assert value("muster_watch_reopened", resource="nodes") == 1
    assert value("muster_watch_reopened", resource="gangs") == 0


async def test_muster_watch_silence_seconds_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(FakeApi()) as coordinator:
        nodes = coordinator.reflectors["nodes"]
        await nodes.wait_synced()
        assert nodes.last_contact is not None
        later = nodes.last_contact + 1000.0
        monkeypatch.setattr(
            "coordinator.shell.scrape.time", SimpleNamespace(monotonic=lambda: later)
        )
        await scrape(coordinator)
    assert value("muster_watch_silence_seconds", resource="nodes") == pytest.approx(1000, abs=60)


async def test_muster_watch_blind_moves() -> None:
    """The server ends the watch, and answers nothing more."""
    fake = FakeApi()
    async with watching(fake) as coordinator:
        nodes = coordinator.reflectors["nodes"]
        await nodes.wait_synced()
        await scrape(coordinator)
        assert value("muster_watch_blind", resource="nodes") == 0
        fake.always = {"watch": says(500), "list": says(500)}
        fake.end_watches()
        await eventually(lambda: nodes.blind)
        await scrape(coordinator)
        assert value("muster_watch_blind", resource="nodes") == 1


# ---- connections


async def test_muster_coordinator_connections_moves() -> None:
    await count_half_request(REGISTRY, CONNECTIONS, "coordinator")


async def test_muster_coordinator_connections_closed_total_moves() -> None:
    await count_half_request(REGISTRY, CONNECTIONS, "coordinator")


def preempting_world() -> World:
    """A gang whose surplus was stopped for a gang of higher priority, and the rest for another."""
    world = World(node("n1", cpu=4), queue("lost", preemption={"withinQueue": "LowerPriority"}))
    elastic = {names.MIN_REPLICAS: "workers=1"}
    world.create(gang_in("lost", "low", 3, annotations=elastic))
    world.settle(seconds=10)
    for name, workers in (("one", 1), ("two", 0)):
        cluster = gang_in("lost", name, workers)
        for each in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
            each["template"]["spec"]["priority"] = 10
        world.create(cluster)
        world.settle(seconds=10)
    return world


def test_muster_offers_total_moves() -> None:
    asked = [("Offered", ""), ("Closed", "NotAccepted"), ("Started", "")]
    names_of = [{"phase": phase, "reason": reason} for phase, reason in asked]
    before = [value("muster_offers_total", **each) for each in names_of]
    open_for_long = member(offer("a-1", gang_of("a", 3)))
    open_for_long.settle(seconds=70)
    started()
    now = [value("muster_offers_total", **each) for each in names_of]
    assert [after - was for after, was in zip(now, before, strict=True)] == [2.0, 1.0, 1.0]


def test_muster_preemptions_total_moves() -> None:
    kinds = {"surplus": 2.0, "gang": 1.0}
    before = {each: value("muster_preemptions_total", queue="lost", kind=each) for each in kinds}
    world = preempting_world()
    for decision in world.leader.logged:
        decision_log.write(decision)
    for each, count in kinds.items():
        now = value("muster_preemptions_total", queue="lost", kind=each)
        assert now == before[each] + count


def test_muster_evictions_total_moves() -> None:
    outcomes = {"would_be_accepted": 4.0, "accepted": 4.0, "gone": 0.0}
    before = {each: value("muster_evictions_total", outcome=each) for each in outcomes}
    preempting_world()
    for each, count in outcomes.items():
        assert value("muster_evictions_total", outcome=each) == before[each] + count
