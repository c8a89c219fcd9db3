"""`python -m benchmarks.lists`: read what the coordinator reads, and throw it away."""

from __future__ import annotations

import asyncio
import time

from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.resources import GANGS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, RAY_CLUSTERS


async def _read() -> int:
    access = await load_access(None)
    async with Client(access, timeout=60) as client:
        resources = (NODES, PODS, GANGS, RAY_CLUSTERS, NAMESPACES, PRIORITY_CLASSES)
        return sum(await asyncio.gather(*(_size(client, each.path()) for each in resources)))


async def _size(client: Client, path: str) -> int:
    return sum([len(page) async for page in client.list(path)])


def main() -> None:
    """Read, print how much it was, and stay so that this process can be measured."""
    print(f"read {asyncio.run(_read())} bytes", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
