"""Each metric of the extender moves when what it counts happens. One test for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from certs.chain import expires_at
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.serve import _certificate, _watch_gauges
from extender.settings import Settings
from extender.tls import RECENT
from extender.unscheduled_pods import UnscheduledPods
from extender.wake import Waker
from extender.watches import Watches
from kube.api.client import Client
from kube.api.watch.events import Changed
from tests.extender.conftest import Pki, Served
from tests.extender.test_app import asked
from tests.extender.test_wake import Bell
from tests.extender.test_watches import Told
from tests.extender.worlds import as_gang, as_watched_pod, gang, ledger, member, node, pinned, pod
from tests.kube.half_request import count_half_request
from tests.metrics import total, untested


@dataclass
class Watched:
    """What an extender watches, with the gauges that are read off it."""

    watches: Watches
    in_flight_pods: InFlightPods
    unscheduled: UnscheduledPods
    registry: CollectorRegistry

    def value(self, name: str) -> float:
        return total(self.registry, f"muster_extender_{name}")

    def show(self, *objects: Any) -> None:
        """Take in nodes, pods and Gangs, as the reflectors tell of them."""
        ours = self.watches
        for obj in objects:
            ours._sink(ours._gang, ours._gang_gone)([Changed(obj)])


@pytest.fixture
def watched() -> Watched:
    metrics, unscheduled = Metrics(), UnscheduledPods()
    in_flight_pods = InFlightPods(settle=0.0, keep=30.0, limit=10)
    watches = Watches(
        cast(Client, None), in_flight_pods, unscheduled, silence=90.0, clock=lambda: 150.0
    )
    _watch_gauges(metrics, watches, in_flight_pods, unscheduled)
    return Watched(watches, in_flight_pods, unscheduled, metrics.registry)


def test_every_metric_has_a_test_that_sees_it_move(watched: Watched) -> None:
    assert untested(watched.registry, globals()) == []


# ---- calls


async def test_muster_extender_calls_total_moves(served: Served) -> None:
    def counted(result: str) -> float:
        registry = served.metrics.registry
        return total(registry, "muster_extender_calls_total", verb="filter", result=result)

    await served.post("filter", asked(pod("p", gpu=1), "a", "b"))
    await served.post("filter", b"no question")
    served.known.fresh = False
    await served.post("filter", asked(pod("p", gpu=1), "a", "b"))
    assert [counted(each) for each in ("answered", "refused", "unready", "failed")] == [1, 1, 1, 0]


async def test_muster_extender_seconds_moves(served: Served) -> None:
    await served.post("filter", asked(pod("p", gpu=1), "a", "b"))
    await served.post("prioritize", asked(pod("p", gpu=1), "a", "b"))
    registry = served.metrics.registry
    assert total(registry, "muster_extender_seconds", verb="filter") == 1
    assert total(registry, "muster_extender_seconds", verb="prioritize") == 1


async def test_muster_extender_pods_refused_total_moves(served: Served) -> None:
    """Room on `a` is kept for a gang, on `b` it is free."""
    name, registry = "muster_extender_pods_refused_total", served.metrics.registry
    await served.post("filter", asked(pod("p", gpu=1), "a", "b"))
    assert total(registry, name) == 0
    await served.post("filter", asked(pod("p", gpu=1), "a"))
    assert total(registry, name) == 1


async def test_muster_extender_wakes_total_moves() -> None:
    known, unscheduled, metrics = (
        ledger(node("a"), gang(slots={"a": 1})),
        UnscheduledPods(),
        Metrics(),
    )
    in_flight_pods = InFlightPods(settle=0.0, keep=30.0, limit=10)
    waker = Waker(
        known, in_flight_pods, unscheduled, Bell(), metrics, pause=0.01, clock=lambda: 1.0
    )
    unscheduled.woken()
    unscheduled.note(as_watched_pod(pod("p", gpu=1)))
    assert not await waker._wake_if_due()
    assert total(metrics.registry, "muster_extender_wakes_total") == 0
    known.put_gang(as_gang(gang()))
    assert await waker._wake_if_due()
    assert total(metrics.registry, "muster_extender_wakes_total") == 1


# ---- the certificate


def refused_certificate(pki: Pki) -> Metrics:
    """The counters after one was taken into use and the next one was not."""
    metrics, at = Metrics(), pki.directory
    settings = Settings(
        certificate_file=at / "tls.crt", key_file=at / "tls.key", client_ca_file=at / "ca.crt"
    )
    hot = _certificate(settings, metrics)
    hot.refresh()
    assert total(metrics.registry, "muster_extender_certificate_refusals_total") == 0
    (at / "tls.key").write_text("broken")
    hot.refresh()
    return metrics


def test_muster_extender_certificate_refusals_total_moves(pki: Pki) -> None:
    registry = refused_certificate(pki).registry
    assert total(registry, "muster_extender_certificate_refusals_total") == 1


def test_muster_extender_certificate_expiry_timestamp_seconds_moves(pki: Pki) -> None:
    registry = refused_certificate(pki).registry
    written = (pki.directory / "tls.crt").stat().st_mtime
    assert total(registry, "muster_extender_certificate_expiry_timestamp_seconds") > written


async def test_muster_extender_caller_certificate_expiry_timestamp_seconds_moves(
    pki: Pki, served: Served
) -> None:
    name, registry = "muster_extender_caller_certificate_expiry_timestamp_seconds", served.metrics
    assert total(registry.registry, name) == 0
    assert (await served.post("filter", asked(pod("p"), "b")))[0] == 200
    client = (pki.directory / "client.crt").read_bytes()
    assert total(registry.registry, name) == int(expires_at(client).timestamp())
    served.clock.now += RECENT
    assert total(registry.registry, name) == 0, "a scheduler that calls no more is not told of"


# ---- what is known


def test_muster_extender_synced_moves(watched: Watched) -> None:
    watched.watches.reflectors = cast(Any, (Told(), Told(synced=False)))
    assert watched.value("synced") == 0
    watched.watches.reflectors = cast(Any, (Told(), Told()))
    assert watched.value("synced") == 1


def test_muster_extender_silence_seconds_moves(watched: Watched) -> None:
    watched.watches.reflectors = cast(Any, (Told(told_until=149.0), Told(told_until=120.0)))
    assert watched.value("silence_seconds") == 30.0


def test_muster_extender_placed_gangs_moves(watched: Watched) -> None:
    watched.show(as_gang(gang("waits")))
    assert watched.value("placed_gangs") == 0
    watched.show(as_gang(gang(slots={"a": 1})))
    assert watched.value("placed_gangs") == 1


def test_muster_extender_reserved_pods_moves(watched: Watched) -> None:
    watched.show(as_gang(gang(slots={"a": 3})))
    assert watched.value("reserved_pods") == 3


async def test_muster_extender_passed_pods_moves(watched: Watched, served: Served) -> None:
    _watch_gauges_of(served, watched)
    await served.post("filter", asked(member(pinned(pod("w", gpu=8), "a")), "a"))
    assert total(served.metrics.registry, "muster_extender_passed_pods") == 1


async def test_muster_extender_refused_pods_moves(watched: Watched, served: Served) -> None:
    _watch_gauges_of(served, watched)
    await served.post("filter", asked(pod("p", gpu=1), "a"))
    assert total(served.metrics.registry, "muster_extender_refused_pods") == 1
    await served.post("filter", asked(pod("p", gpu=1), "b"))
    assert total(served.metrics.registry, "muster_extender_refused_pods") == 0


def _watch_gauges_of(served: Served, watched: Watched) -> None:
    _watch_gauges(served.metrics, watched.watches, served.in_flight_pods, served.unscheduled)


# ---- connections


async def test_muster_extender_connections_moves(served: Served) -> None:
    await count_half_request(served.metrics.registry, served.metrics.connections, "extender")


async def test_muster_extender_connections_closed_total_moves(served: Served) -> None:
    await count_half_request(served.metrics.registry, served.metrics.connections, "extender")
