"""Says whether this replica is alive and synced, and serves its metrics."""

import time

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from coordinator import metrics
from coordinator.queues.status import in_base_units, usage_of
from coordinator.shell.app import Coordinator
from coordinator.state_machine import CoordinatorState

STALLED = 30.0  # seconds without a step of the loop; it takes one each second when idle


def application(coordinator: Coordinator) -> web.Application:
    """The plain-HTTP endpoints: /livez, /readyz and /metrics."""

    async def livez(_: web.Request) -> web.Response:
        lag = time.monotonic() - coordinator.loop.last_step
        return _answer(lag < STALLED, f"the loop has not turned for {lag:.0f} s")

    async def readyz(_: web.Request) -> web.Response:
        waiting = [n for n, r in coordinator.reflectors.items() if not r.synced]
        return _answer(not waiting, f"not synced: {', '.join(waiting)}")

    async def metrics_page(_: web.Request) -> web.Response:
        _refresh(coordinator)
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes(
        [
            web.get("/livez", livez),
            web.get("/readyz", readyz),
            web.get("/metrics", metrics_page),
        ]
    )
    return app


def _answer(good: bool, otherwise: str) -> web.Response:  # noqa: FBT001  (it is the answer itself)
    return web.Response(status=200 if good else 503, text="ok" if good else otherwise)


def _refresh(coordinator: Coordinator) -> None:
    """Gauges are read off the state when they are asked for, not kept up at every event."""
    now = time.monotonic()
    for name, reflector in coordinator.watches.items():
        metrics.SYNCED.labels(name).set(reflector.synced)
        metrics.BLIND.labels(name).set(reflector.blind)
        metrics.RELISTS.labels(name).set(reflector.counters.relists)
        if reflector.last_contact is not None:
            metrics.SILENCE.labels(name).set(now - reflector.last_contact)
    metrics.AVOIDED.set(coordinator.loop.state.term.refusals.nodes_avoided)
    metrics.KEPT.set(sum(view.repairs.kept.total for view in coordinator.loop.state.views.values()))
    metrics.GANGS.clear()
    metrics.WAITING.clear()
    for view in coordinator.loop.state.views.values():
        metrics.GANGS.labels(view.record.written.get("phase", "New")).inc()
        if view.waits_for_room:
            metrics.WAITING.labels(view.record.written.get("reason", "New")).inc()
    _refresh_queues(coordinator.loop.state)


def _refresh_queues(state: CoordinatorState) -> None:
    """Of the queues that have an object: what waits in them, what they use, and their quota."""
    for gauge in (metrics.QUEUE_PENDING, metrics.QUEUE_USAGE, metrics.QUEUE_QUOTA):
        gauge.clear()
    tree = state.queues.tree
    usage = usage_of(tree, state.quota.held(tree))
    for name in state.queues.objects:
        metrics.QUEUE_PENDING.labels(name).set(state.reports.census.pending[name])
        if name in tree.index:
            for resource, amount in usage.of(name, usage.used).items():
                metrics.QUEUE_USAGE.labels(name, resource).set(in_base_units(resource, amount))
            for resource, amount in usage.of(name, tree.subtree).items():
                metrics.QUEUE_QUOTA.labels(name, resource).set(in_base_units(resource, amount))
