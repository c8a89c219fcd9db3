"""Measures the wait for one gang: in an idle cluster, and for the room of another.

Stock and Muster take turns in blocks of samples, since switching takes seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from benchmarks.gangs import PODS, RAY_CLUSTERS, Size, ray_cluster
from benchmarks.measure import Outcome, Row, beyond_within, median_within, of_field, quantile
from benchmarks.plane import Plane, plane
from benchmarks.podwatch import PodWatch
from benchmarks.processes import wait_quiet
from testbed.api import Api

T = TypeVar("T")

SIZE = Size()
WAIT_SECONDS = 60.0
IDLE_AIM = 0.15
WAKE_AIM = 0.2
_BLOCKS = 2
REST_SECONDS = 1.0  # in which KubeRay, and Muster about waiting gangs, finish their writes


@dataclass(frozen=True)
class Wake:
    """Seconds: from the delete to the room, from there to all bound, from the delete to Running."""

    room: float
    bound: float
    running: float


def measure_idle(samples: int) -> Outcome:
    """One gang after the other in an idle cluster, create to Running."""
    with plane(8) as on:
        stock, ours = in_blocks(on, samples, _one_by_one)
    row = Row("create to Running", "s", tuple(ours), tuple(stock), paired=False)
    return Outcome([beyond_within(row, IDLE_AIM), _tail("create to Running", stock, ours)])


def measure_wake(samples: int) -> Outcome:
    """Two gangs that do not both fit: first deleted to second fully Running."""
    with plane(SIZE.workers) as on:
        stock, ours = in_blocks(on, samples, _hand_over)
    note = "stock: the head of the second runs already and its workers are Pending"
    return Outcome(wake_rows(stock, ours), notes=[note])


def wake_rows(stock: Sequence[Wake], ours: Sequence[Wake]) -> list[Row]:
    """What the samples of both sides say."""
    name = "first deleted to second Running"
    row = partial(of_field, unit="s", floor=stock, ours=ours, paired=False)
    return [
        median_within(row("running", f"{name}, p50"), WAKE_AIM),
        _tail(name, [wake.running for wake in stock], [wake.running for wake in ours]),
        row("room", "first deleted to its last pod gone"),
        row("bound", "last pod of the first gone to all of the second bound"),
    ]


def _tail(name: str, stock: Sequence[float], ours: Sequence[float]) -> Row:
    return Row(f"{name}, p90", "s", (quantile(ours, 0.9),), (quantile(stock, 0.9),))


@dataclass(frozen=True)
class Block:
    """A run of samples on one side."""

    api: Api
    watch: PodWatch
    prefix: str
    gang: bool
    samples: int

    def names(self) -> Iterator[str]:
        """A name for each sample."""
        return (f"{self.prefix}-{number:03}" for number in range(self.samples))

    def create(self, name: str) -> float:
        """Create a Ray cluster; returns the moment before."""
        manifest = ray_cluster(name, SIZE, gang=self.gang)
        body = json.dumps(manifest).encode()
        with self.api.session() as session:
            began = time.monotonic()
            session.call("POST", RAY_CLUSTERS, body)
        return began

    def delete(self, name: str) -> float:
        """Delete a Ray cluster; returns the moment before."""
        with self.api.session() as session:
            began = time.monotonic()
            session.call("DELETE", f"{RAY_CLUSTERS}/{name}")
        return began

    def wait(self, name: str, stage: str) -> float:
        """Wait until all pods of a Ray cluster have come so far; returns when the last did."""

        def done() -> bool:
            moments = [getattr(pod, stage) for pod in self.watch.of(name)]
            return len(moments) == SIZE.pods and all(moments)

        self.watch.wait(done, f"all pods of {name} to be {stage}", WAIT_SECONDS)
        return float(max(getattr(pod, stage) for pod in self.watch.of(name)))


def in_blocks(on: Plane, samples: int, run: Callable[[Block], list[T]]) -> tuple[list[T], list[T]]:
    """Run stock and Muster in turn, in blocks of samples; returns what each side found."""
    found: dict[bool, list[T]] = {False: [], True: []}
    for number in range(_BLOCKS):
        for gang in (False, True):
            on.switch(on=gang)
            wait_quiet(on.cluster)
            with PodWatch(on.cluster.api, PODS) as watch:
                prefix = f"{'muster' if gang else 'stock'}{number}"
                block = Block(on.cluster.api, watch, prefix, gang, -(-samples // _BLOCKS))
                found[gang] += run(block)
    return found[False], found[True]


def _one_by_one(block: Block) -> list[float]:
    took = []
    for name in block.names():
        began = block.create(name)
        took.append(block.wait(name, "running") - began)
        block.delete(name)
        block.wait(name, "gone")
        time.sleep(REST_SECONDS)
    return took


def _hand_over(block: Block) -> list[Wake]:
    """Each gang waits for the room of the one before it."""
    first = f"{block.prefix}-first"
    block.create(first)
    block.wait(first, "running")
    took = []
    for second in block.names():
        block.create(second)
        block.wait(second, "created")
        time.sleep(REST_SECONDS)
        took.append(_wake(block, first, second))
        first = second
    block.delete(first)
    block.wait(first, "gone")
    return took


def _wake(block: Block, first: str, second: str) -> Wake:
    began = block.delete(first)
    running = block.wait(second, "running")
    bound, room = block.wait(second, "bound"), block.wait(first, "gone")
    return Wake(room - began, bound - room, running - began)
