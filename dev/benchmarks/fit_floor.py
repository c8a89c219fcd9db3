"""`python -m benchmarks.fit_floor`: read all nodes and pods, and throw them away."""

from __future__ import annotations

import asyncio

from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.resources import NODES, PODS

PAGE = 2500


async def _read() -> int:
    async with Client(await load_access(None)) as client:
        return sum(await asyncio.gather(_size(client, NODES.path()), _size(client, PODS.path())))


async def _size(client: Client, path: str) -> int:
    return sum([len(page) async for page in client.list(path, limit=PAGE)])


if __name__ == "__main__":
    print(f"read {asyncio.run(_read())} bytes")
