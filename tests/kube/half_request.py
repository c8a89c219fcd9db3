"""A caller that sends half a request and waits, for the tests of connection metrics."""

import asyncio

from aiohttp import web
from prometheus_client import CollectorRegistry

from runtime.connections import ConnectionMetrics, Limits
from runtime.http_server import Port, listening
from tests.kube.fake_api import eventually
from tests.metrics import total


async def count_half_request(
    registry: CollectorRegistry, metrics: ConnectionMetrics, program: str
) -> None:
    """Open one, see it counted as open, and then as closed for want of headers."""
    name, port = f"muster_{program}_connections", {"port": "half"}
    before = total(registry, f"{name}_closed_total", reason="headers", **port)
    at = Port("half", "127.0.0.1", 0, limits=Limits(headers=0.5))
    async with listening(web.Application(), at, metrics) as number:
        _, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(b"GET / HT")
        await eventually(lambda: total(registry, name, **port) == 1)
        await eventually(lambda: total(registry, name, **port) == 0)
        writer.close()
    assert total(registry, f"{name}_closed_total", reason="headers", **port) == before + 1
