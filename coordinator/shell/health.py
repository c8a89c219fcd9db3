"""Says whether this replica is alive and synced, and serves its metrics."""

import time

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from coordinator.shell import scrape
from coordinator.shell.app import Coordinator

STALLED = 30.0  # seconds without a step of the loop; it takes one each second when idle


def application(coordinator: Coordinator) -> web.Application:
    """The plain-HTTP endpoints: /livez, /readyz and /metrics."""

    async def livez(_: web.Request) -> web.Response:
        lag = time.monotonic() - coordinator.loop.last_step
        return _answer(lag < STALLED, f"the loop has not turned for {lag:.0f} s")

    async def readyz(_: web.Request) -> web.Response:
        waiting = [n for n, r in coordinator.reflectors.items() if not r.synced]
        fault = coordinator.definitions.fault
        return _answer(not waiting and not fault, fault or f"not synced: {', '.join(waiting)}")

    async def metrics_page(_: web.Request) -> web.Response:
        page = await scrape.page(coordinator)
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE_LATEST})

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
