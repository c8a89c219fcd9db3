"""Measures what nominations cost a burst, and what kube-scheduler places beside them.

For the second, 1,000 nodes have one gated pod nominated to them, as while the releases of large
gangs last, and kube-scheduler filters each such node twice. kube-scheduler is stopped in its tracks
while the pods to be placed are created, so that it never waits for them; the same without
nominations takes turns, with the same gated pods.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks import burst
from benchmarks.measure import Outcome, Row, all_in_turn, means
from benchmarks.processes import CpuMeter, without_driver
from benchmarks.sync import create_all
from benchmarks.throughput import FREE, PINNED, Run, bare, node_name, pod, rate
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.following import Follower
from testbed.waiting import wait_until

NODES = NOMINATIONS = 1_000
LARGE = 5_000
PODS = 600
"""Of each kind: pinned ones, and others."""
NOMINATED, NOT = "nominated", "not nominated"
_PODS = "/api/v1/namespaces/default/pods"
_GATE = {"name": "bench.muster.dev/hold"}
_CONNECTIONS = 4
_WAIT_SECONDS = 120.0
_numbers = itertools.count(1)


def measure(runs: int) -> Outcome:
    """Bursts with nominations and without, then what kube-scheduler places, in turn."""
    bursts = burst.measure_nominations(runs)
    placing = _measure(NODES, runs)
    return Outcome(
        [*bursts.rows, *placing.rows],
        bursts.tables | placing.tables,
        [*bursts.notes, *placing.notes],
    )


def measure_large(runs: int) -> Outcome:
    """What kube-scheduler places on 5,000 nodes, with nominations to a fifth and without."""
    return _measure(LARGE, runs)


def _measure(nodes: int, runs: int) -> Outcome:
    found = placed(nodes, PODS, runs)
    gated = f"{nodes} nodes, of which {NOMINATIONS} have a gated pod"
    tables = {
        f"CPU s, {kind}": means([dict(run.cpu) for run in done]) for kind, done in found.items()
    }
    return Outcome(list(rows(found)), tables, [f"{gated}; {PODS} pinned pods, then {PODS} others"])


def rows(found: Mapping[str, Sequence[Run]]) -> list[Row]:
    """With nominations against without, for both kinds of pods."""

    def values(kind: str, pods: str) -> tuple[float, ...]:
        return tuple(run.rate[pods] for run in found[kind])

    return [
        Row(f"{pods} pods, floor {NOT}", "pods/s", values(NOMINATED, pods), values(NOT, pods))
        for pods in (PINNED, FREE)
    ]


def placed(nodes: int, pods: int, runs: int) -> dict[str, list[Run]]:
    """What kube-scheduler places in so many runs of each kind."""
    with bare(nodes) as cluster:
        plot = Plot(cluster, nodes, pods)
        kinds = (NOMINATED, NOT)
        turns = [lambda _, kind=kind: plot.run(kind) for kind in kinds]
        return dict(zip(kinds, all_in_turn(runs, turns), strict=True))


@dataclass
class Plot:
    """A cluster without a scheduler, and how many pods of each kind are placed in a run."""

    cluster: Cluster
    nodes: int
    pods: int
    bound: dict[str, float] = field(default_factory=dict)
    """When each pod was bound, by name."""

    def run(self, kind: str) -> Run:
        """Place all pods once, and clear up."""
        number = next(_numbers)
        gated = [f"gated-{number}-{at}" for at in range(NOMINATIONS)]
        create_all(self.cluster.api, _PODS, [_gated(name) for name in gated])
        with Follower(self.cluster.api, _PODS, self._note) as follower:
            follower.wait_synced()
            self.cluster.start_scheduler()
            scheduler = self.cluster.process(SCHEDULER)
            scheduler.pause()
            if kind == NOMINATED:
                self._nominate(gated)
            create_all(self.cluster.api, _PODS, list(self._to_place(number)))
            meter = CpuMeter(self.cluster)
            scheduler.resume()
            found = self._scheduled(meter)
        scheduler.kill()
        self._clear()
        return found

    def _scheduled(self, meter: CpuMeter) -> Run:
        wait_until(lambda: len(self.bound) == 2 * self.pods, "all to be bound", _WAIT_SECONDS)
        times = {
            kind: [at for name, at in self.bound.items() if name.startswith(f"{kind}-")]
            for kind in (PINNED, FREE)
        }
        return Run({kind: rate(each) for kind, each in times.items()}, without_driver(meter.used()))

    def _nominate(self, names: Sequence[str]) -> None:
        """Nominate each pod to a node of its own."""

        def write(start: int) -> None:
            with self.cluster.api.session() as session:
                for at in range(start, len(names), _CONNECTIONS):
                    change = {"status": {"nominatedNodeName": node_name(at)}}
                    path = f"{_PODS}/{names[at]}/status"
                    body = json.dumps(change).encode()
                    session.call("PATCH", path, body, "application/merge-patch+json")

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            for done in [pool.submit(write, start) for start in range(_CONNECTIONS)]:
                done.result()

    def _to_place(self, number: int) -> list[Json]:
        pinned = [
            pod(f"{PINNED}-{number}-{at}", node_name(at % self.nodes)) for at in range(self.pods)
        ]
        return [*pinned, *(pod(f"{FREE}-{number}-{at}") for at in range(self.pods))]

    def _note(self, kind: str, item: Json) -> None:
        if kind != "DELETED" and item["spec"].get("nodeName"):
            self.bound.setdefault(item["metadata"]["name"], time.monotonic())

    def _clear(self) -> None:
        with self.cluster.api.session() as session:
            session.call("DELETE", f"{_PODS}?gracePeriodSeconds=0")
        wait_until(lambda: not self.cluster.api.get(f"{_PODS}?limit=1")["items"], "no pods")
        self.bound.clear()


def _gated(name: str) -> Json:
    made = pod(name)
    made["spec"] |= {"schedulingGates": [_GATE], "priorityClassName": "first"}
    return made
