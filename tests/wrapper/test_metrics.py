"""Each metric of the wrapper moves when what it counts happens. One test for each."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from kube.api.client import Client
from kube.api.leader_election import Term
from kube.api.resources import APP_WRAPPERS
from tests.kube.half_request import count_half_request
from tests.metrics import total, untested
from tests.wrapper.fake_api import over_quota, refused
from tests.wrapper.world import codeflare, job, with_wrapper
from wrapper.messages import TellUser
from wrapper.metrics import Metrics
from wrapper.settings import Settings
from wrapper.shell.app import Replica
from wrapper.shell.executor import Executor


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_every_metric_has_a_test_that_sees_it_move(metrics: Metrics) -> None:
    assert untested(metrics.registry, globals()) == []


async def test_muster_wrapper_leader_moves() -> None:
    class Leads:
        def valid(self) -> bool:
            return True

    replica = Replica(Settings(), cast(Client, None))
    registry = replica.metrics.registry
    acting = asyncio.create_task(replica._act(cast(Term, Leads())))
    await asyncio.sleep(0)
    assert total(registry, "muster_wrapper_leader") == 1
    acting.cancel()
    await asyncio.gather(acting, return_exceptions=True)
    assert total(registry, "muster_wrapper_leader") == 0


def test_muster_wrapper_app_wrappers_moves(metrics: Metrics) -> None:
    metrics.count_phases(["", "Running", "Running"])
    assert total(metrics.registry, "muster_wrapper_app_wrappers", phase="Running") == 2
    assert total(metrics.registry, "muster_wrapper_app_wrappers", phase="New") == 1
    metrics.count_phases(["Failed"])
    assert total(metrics.registry, "muster_wrapper_app_wrappers", phase="Running") == 0


def test_muster_wrapper_writes_total_moves() -> None:
    world = with_wrapper(codeflare(job()))
    world.place()
    world.settle(2)
    registry = world.metrics.registry
    for what in ("start", "create", "status"):
        assert total(registry, "muster_wrapper_writes_total", what=what, outcome="done") >= 1


def test_muster_wrapper_items_refused_total_moves() -> None:
    world = with_wrapper(codeflare(job()))
    registry = world.metrics.registry
    world.api.refuse["jobs"] = over_quota()
    world.place()
    world.settle(1)
    assert total(registry, "muster_wrapper_items_refused_total", lasts="false") >= 1
    assert total(registry, "muster_wrapper_items_refused_total", lasts="true") == 0
    world.api.refuse["jobs"] = refused("no")
    world.place()
    world.settle(10)
    assert total(registry, "muster_wrapper_items_refused_total", lasts="true") == 1


async def test_muster_wrapper_actions_waiting_moves(metrics: Metrics) -> None:
    class Hangs:
        async def create(self, *_: object) -> None:
            await asyncio.Event().wait()

    class Leads:
        def valid(self) -> bool:
            return True

    world = with_wrapper(codeflare(job()))
    (view,) = world.state.views.values()
    told = TellUser(view.key, view.wrapper, "Reason", "message", warning=False)
    executor = Executor(
        cast(Client, Hangs()),
        Leads(),
        lambda _: None,
        apis={APP_WRAPPERS.group: APP_WRAPPERS},
        identity="test",
        concurrency=1,
        metrics=metrics,
    )
    executor.submit([told, told, told])
    assert total(metrics.registry, "muster_wrapper_actions_waiting") == 2
    await executor.close()


def test_muster_wrapper_watch_synced_moves(metrics: Metrics) -> None:
    for synced in (False, True):
        watch = SimpleNamespace(synced=synced, last_contact=None)
        metrics.tell_watches({"gangs": watch}, 10.0)
        seen = total(metrics.registry, "muster_wrapper_watch_synced", resource="gangs")
        assert seen == synced


def test_muster_wrapper_watch_silence_seconds_moves(metrics: Metrics) -> None:
    for now in (12.0, 15.0):
        metrics.tell_watches({"gangs": SimpleNamespace(synced=True, last_contact=10.0)}, now)
        assert total(metrics.registry, "muster_wrapper_watch_silence_seconds") == now - 10.0


async def test_muster_wrapper_connections_moves(metrics: Metrics) -> None:
    await count_half_request(metrics.registry, metrics.connections, "wrapper")


async def test_muster_wrapper_connections_closed_total_moves(metrics: Metrics) -> None:
    await count_half_request(metrics.registry, metrics.connections, "wrapper")
