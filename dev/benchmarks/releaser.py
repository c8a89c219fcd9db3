"""`python -m benchmarks.releaser KUBECONFIG NODES`: the least that can release gated pods.

It watches the pods of Ray clusters that have no node yet and sends for each gated one the release
patch, the same bytes as the coordinator's, pinned to the next node in turn. It decides nothing and
writes nothing else. The nodes must be so many and so large that each pod has room on its node.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from itertools import count

import msgspec

from benchmarks.gangs import PODS
from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.errors import ApiError
from kube.codec.pod_patches import release_patch
from kube.objects.base import ObjectMeta
from kube.objects.core import Pod
from kube.objects.names import GATE, RAY_NODE_TYPE

READY = "watching"
AT_ONCE = 16  # as many as the coordinator sends
_SELECTORS = {"labelSelector": RAY_NODE_TYPE, "fieldSelector": "spec.nodeName="}
_SILENCE = 3600.0


class _Told(msgspec.Struct, frozen=True):
    type: str
    object: Pod


class _Page(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class RoundRobin:
    """Gives gated pods to the nodes in turn."""

    def __init__(self, nodes: int) -> None:
        self._nodes = (f"node-{number % nodes}" for number in count())
        self._sent: set[tuple[str, str]] = set()

    def take(self, lines: Iterable[bytes]) -> Iterator[tuple[Pod, str]]:
        """Give every gated pod a node, once for each version of it: a refused patch is repeated."""
        for told in (decode(line, _Told) for line in lines):
            meta = told.object.metadata
            version = (meta.uid, meta.resource_version)
            gated = any(gate.name == GATE for gate in told.object.spec.scheduling_gates)
            if gated and told.type != "DELETED" and version not in self._sent:
                self._sent.add(version)
                yield told.object, next(self._nodes)


async def _run(kubeconfig: str, nodes: int) -> None:
    access = await load_access(kubeconfig)
    async with Client(access, user_agent="releaser") as client:
        jobs: asyncio.Queue[tuple[Pod, str]] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(_release(client, jobs))
            group.create_task(_follow(client, RoundRobin(nodes), jobs))


async def _follow(client: Client, nodes: RoundRobin, jobs: asyncio.Queue[tuple[Pod, str]]) -> None:
    listed = decode(await client.request("GET", PODS, params={"limit": "1"}), _Page)
    since = {"resourceVersion": listed.metadata.resource_version}
    query = {**_SELECTORS, **since, "timeoutSeconds": str(round(_SILENCE))}
    async with client.stream_watch(PODS, query, silence=_SILENCE) as batches:
        print(READY, flush=True)
        async for lines in batches:
            for job in nodes.take(lines):
                jobs.put_nowait(job)


async def _release(client: Client, jobs: asyncio.Queue[tuple[Pod, str]]) -> None:
    while True:
        pod, node = await jobs.get()
        path = f"{PODS}/{pod.metadata.name}"
        try:
            await client.json_patch(path, release_patch(pod, node))
        except ApiError as error:
            print(f"{pod.metadata.name}: {error}", flush=True)


def main(kubeconfig: str, nodes: str) -> None:
    """Release until killed."""
    asyncio.run(_run(kubeconfig, int(nodes)))


if __name__ == "__main__":
    main(*sys.argv[1:])
