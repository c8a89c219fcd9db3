"""Measures what a gang that runs waits for: the replacement of a lost worker, and a hundred more.

Stock and Muster take turns in blocks. A worker is deleted, and the clock runs from the moment its
replacement is seen until that is bound: what comes before is KubeRay's own. Then the RayCluster
gets a hundred replicas more, and the clock runs from the patch to the last bind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.gangs import PODS, RAY_CLUSTERS, Size, ray_cluster
from benchmarks.latency import Block, in_blocks
from benchmarks.measure import Outcome, Row, beyond_within, quantile, ratio_within
from benchmarks.plane import plane
from benchmarks.podwatch import Seen

SIZE = Size(workers=7, gpus=1, cpus=1)
MORE = 100
NODES = 16
WAIT_SECONDS = 120.0
LOST_AIM = 0.15
"""Seconds that the replacement of a lost worker may take longer than without gates."""

GROWTH_AIM = 1.25
_REPLICAS = "/spec/workerGroupSpecs/0/replicas"
_JSON_PATCH = "application/json-patch+json"


class Sample(NamedTuple):
    """Seconds: from the replacement's creation to its bind, and from the patch to the last bind."""

    replaced: float
    grown: float


class Life:
    """One RayCluster of a block."""

    def __init__(self, block: Block, name: str) -> None:
        self._api, self._watch, self._gang = block.api, block.watch, block.gang
        self._name = name

    def run(self) -> Sample:
        """Let it start, lose a worker, grow, and go."""
        with self._api.session() as session:
            body = ray_cluster(self._name, SIZE, gang=self._gang)
            body["spec"]["workerGroupSpecs"][0]["maxReplicas"] = SIZE.workers + MORE
            session.call("POST", RAY_CLUSTERS, json.dumps(body).encode())
            self._wait(SIZE.pods)
            replaced = self._replaced()
            grown = self._grown()
            session.call("DELETE", f"{RAY_CLUSTERS}/{self._name}")
        self._watch.wait_gone(WAIT_SECONDS)
        self._watch.forget()
        return Sample(replaced, grown)

    def _replaced(self) -> float:
        before = {name for name, _ in self._pods()}
        lost = next(name for name in sorted(before) if "worker" in name)
        with self._api.session() as session:
            session.call("DELETE", f"{PODS}/{lost}?gracePeriodSeconds=0")
        self._watch.wait(lambda: bool(self._watch.pods[lost].gone), f"{lost} to go", WAIT_SECONDS)
        self._wait(SIZE.pods)
        (made,) = [seen for name, seen in self._pods() if name not in before]
        return made.bound - made.created

    def _grown(self) -> float:
        patch = [{"op": "replace", "path": _REPLICAS, "value": SIZE.workers + MORE}]
        with self._api.session() as session:
            began = time.monotonic()
            path = f"{RAY_CLUSTERS}/{self._name}"
            session.call("PATCH", path, json.dumps(patch).encode(), _JSON_PATCH)
        self._wait(SIZE.pods + MORE)
        return max(seen.bound for _, seen in self._pods()) - began

    def _pods(self) -> list[tuple[str, Seen]]:
        found = self._watch.pods.items()
        return [(name, seen) for name, seen in found if seen.group == self._name and not seen.gone]

    def _wait(self, pods: int) -> None:
        def done() -> bool:
            found = self._pods()
            return len(found) == pods and all(seen.running for _, seen in found)

        self._watch.wait(done, f"{pods} pods of {self._name} to run", WAIT_SECONDS)


def measure(samples: int) -> Outcome:
    """One RayCluster after the other, in blocks of stock and Muster."""
    with plane(NODES) as on:
        stock, ours = in_blocks(on, samples, _lives)
    return Outcome(list(rows(stock, ours)), notes=["floor: the same without gates"])


def _lives(block: Block) -> list[Sample]:
    return [Life(block, name).run() for name in block.names()]


def rows(stock: Sequence[Sample], ours: Sequence[Sample]) -> Iterator[Row]:
    """What the samples of both sides say."""

    def row(name: str, at: int) -> Row:
        mine, floor = (tuple(sample[at] for sample in side) for side in (ours, stock))
        return Row(name, "s", mine, floor, paired=False)

    replaced = row("lost worker: replacement created to bound", 0)
    yield beyond_within(replaced, LOST_AIM)
    tails = (quantile(replaced.ours, 0.9),), (quantile(replaced.floor, 0.9),)
    yield Row("the same, p90", "s", *tails)
    yield ratio_within(row(f"{MORE} replicas more: patch to last bind", 1), GROWTH_AIM)
