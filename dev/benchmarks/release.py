"""Measures how fast the executor releases pods, against a bare loop of the same patches.

2,000 gated pods, an API server, and no kube-scheduler. Both send the same bytes through the
same client with the same number at once; the loop throws the answers away.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from benchmarks.gangs import PODS
from benchmarks.measure import Outcome, Row, in_turn, ratio_within
from benchmarks.plane import plane, usual_options
from benchmarks.processes import wait_quiet
from coordinator.messages.actions import ReleasePod
from coordinator.messages.events import Event
from coordinator.messages.write_ends import PodPatchEnded
from coordinator.shell.writes.executor import Executor
from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.codec.pod_patches import release_patch
from kube.objects import names
from kube.objects.core import Pod
from scheduling.model.gang import GangKey
from testbed.api import Json
from testbed.cluster import Cluster

T = TypeVar("T")

COUNT = 2_000
AT_ONCE = 16  # the coordinator's default
AIM = 1.2
GANG = GangKey("default", "gang")
NODE = "node-0"


def measure(runs: int) -> Outcome:
    """The loop and the executor in turn, each on new pods."""
    bare = usual_options(kuberay=False, kwok=False, scheduler=False)
    with plane(0, options=bare) as on:
        loop, executor = in_turn(
            runs,
            lambda _: asyncio.run(_round(on.cluster, release_by_loop)),
            lambda _: asyncio.run(_round(on.cluster, release_by_executor)),
        )
    row = Row(f"time of {COUNT} releases", "s", tuple(executor), tuple(loop))
    rates = {
        "loop": COUNT / min(loop),
        "executor": COUNT / min(executor),
    }
    return Outcome([ratio_within(row, AIM)], {"most patches/s": rates})


async def _round(
    cluster: Cluster, release: Callable[[Client, Sequence[Pod]], Awaitable[None]]
) -> float:
    """Seconds that `release` takes for new pods."""
    access = await load_access(str(cluster.kubeconfig))
    async with Client(access, user_agent="muster-coordinator") as client:
        pods = await _gated_pods(client)
        await asyncio.to_thread(wait_quiet, cluster)
        began = time.monotonic()
        await release(client, pods)
        took = time.monotonic() - began
        await _each(pods, lambda pod: client.delete(_path(pod), grace_period_seconds=0))
    return took


async def release_by_loop(client: Client, pods: Sequence[Pod]) -> None:
    """Send the patches, so many at once, and throw the answers away."""
    await _each(pods, lambda pod: client.json_patch(_path(pod), release_patch(pod, NODE)))


async def release_by_executor(client: Client, pods: Sequence[Pod]) -> None:
    """Give the releases to an executor and wait until it reported the end of each."""
    left = {pod.metadata.uid for pod in pods}
    done = asyncio.Event()

    def feed(events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, PodPatchEnded):
                assert event.error is None, event.error
                left.discard(event.uid)
        if not left:
            done.set()

    executor = Executor(client, _Leads(), feed, identity="benchmark", concurrency=AT_ONCE)
    executor.submit([ReleasePod(GANG, pod, NODE) for pod in pods])
    await done.wait()
    await executor.close()


class _Leads:
    def valid(self) -> bool:
        """There is no other leader."""
        return True


async def _each(items: Iterable[T], call: Callable[[T], Awaitable[object]]) -> None:
    queue = iter(items)

    async def work() -> None:
        for item in queue:
            await call(item)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _gated_pods(client: Client) -> list[Pod]:
    made: list[Pod] = []

    async def create(body: bytes) -> None:
        made.append(decode(await client.create(PODS, body), Pod))

    await _each([json.dumps(gated_pod(number)).encode() for number in range(COUNT)], create)
    return made


def gated_pod(number: int) -> Json:
    """A pod with our gate and one GPU."""
    limits = {"cpu": "1", "nvidia.com/gpu": "1"}
    container = {"name": "worker", "image": "ray", "resources": {"limits": limits}}
    spec = {"schedulingGates": [{"name": names.GATE}], "containers": [container]}
    return {"metadata": {"name": f"gated-{number:04}"}, "spec": spec}


def _path(pod: Pod) -> str:
    return f"{PODS}/{pod.metadata.name}"
