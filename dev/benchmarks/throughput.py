"""Measures the pods a second that kube-scheduler places with the extender and without.

Half of the pods are pinned to a node each, as released pods of gangs are, and come first by their
priority; the others may go anywhere. They wait before kube-scheduler starts, so that it never
waits for them. Three kinds take turns: no extender, one that keeps the same watches and does
nothing (`does_nothing.py`), and ours; the last two meet a tenth of the nodes reserved.
Nodes are objects without kubelets, so all that shares the machine is the API server, etcd,
kube-scheduler, the extender and the driver. The controller manager and kwok are left out.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import Outcome, Row, means, ratio_from
from benchmarks.processes import CpuMeter, without_driver
from benchmarks.sync import create_all
from kube.objects import names
from testbed.api import Api, Json
from testbed.cluster import Cluster, prepare
from testbed.components import SCHEDULER
from testbed.following import Follower
from testbed.muster import Extender, start_extender, with_muster
from testbed.nodes import GPU, NodeSpec, node_object
from testbed.options import Options
from testbed.waiting import wait_until

RATIO_AIM = 0.95
PODS = {1_000: 600, 5_000: 250}
"""Of each kind, by the number of nodes: some seconds of work."""
NONE, NOTHING, OURS = "no extender", "does nothing", "Muster"
PINNED, FREE = "pinned", "unpinned"
_PODS = "/api/v1/namespaces/default/pods"
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_WAIT_SECONDS = 120.0
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Run:
    """Pods a second of each kind, and CPU seconds of each program."""

    rate: Mapping[str, float]
    cpu: Mapping[str, float]


def rate(times: Sequence[float]) -> float:
    """Events a second between the first and the last of them; there must be two."""
    return (len(times) - 1) / (max(times) - min(times))


def measure_small(runs: int) -> Outcome:
    """With 1,000 nodes."""
    return _measure(1_000, runs)


def measure_large(runs: int) -> Outcome:
    """With 5,000 nodes."""
    return _measure(5_000, runs)


def _measure(nodes: int, runs: int) -> Outcome:
    found: dict[str, list[Run]] = {NONE: [], NOTHING: [], OURS: []}
    with stage(nodes) as plot:
        for _ in range(runs):
            for kind, done in found.items():
                done.append(plot.run(kind))
    pods = PODS[nodes]
    note = f"{nodes} nodes, {nodes // 10} of them reserved; {pods} pinned pods, then {pods} others"
    tables = {
        f"CPU s, {kind}": means([dict(run.cpu) for run in done]) for kind, done in found.items()
    }
    return Outcome(rows(found), tables, [note])


def rows(found: Mapping[str, Sequence[Run]]) -> list[Row]:
    """Ours against both others, for both kinds of pods."""

    def values(kind: str, pods: str) -> tuple[float, ...]:
        return tuple(run.rate[pods] for run in found[kind])

    return [
        row
        for pods in (PINNED, FREE)
        for row in (
            ratio_from(
                Row(
                    f"{pods} pods, floor {NOTHING}",
                    "pods/s",
                    values(OURS, pods),
                    values(NOTHING, pods),
                ),
                RATIO_AIM,
            ),
            Row(f"{pods} pods, floor {NONE}", "pods/s", values(OURS, pods), values(NONE, pods)),
        )
    ]


# ---- the cluster


@dataclass
class Plot:
    """A cluster without a scheduler, and both extenders, of which none runs between runs."""

    cluster: Cluster
    nodes: int
    extenders: Mapping[str, Extender]
    bound: dict[str, float] = field(default_factory=dict)
    """When each pod was bound, by name."""

    def run(self, kind: str) -> Run:
        """Place all pods once, and clear up."""
        extender = self.extenders.get(kind)
        if extender is not None:
            extender.process.restart()
            extender.wait_ready()
        created = self._create_pods()
        with Follower(self.cluster.api, _PODS, self._note) as follower:
            follower.wait_synced()
            found = self._scheduled(extender, created)
        self.cluster.process(SCHEDULER).kill()
        if extender is not None:
            extender.process.stop()
        self._clear()
        return found

    def _scheduled(self, extender: Extender | None, created: int) -> Run:
        self.cluster.start_scheduler(self._configuration(extender))
        meter = CpuMeter(self.cluster)
        wait_until(lambda: len(self.bound) == created, "all pods to be bound", _WAIT_SECONDS)
        times = {
            kind: [at for name, at in self.bound.items() if name.startswith(f"{kind}-")]
            for kind in (PINNED, FREE)
        }
        return Run({kind: rate(each) for kind, each in times.items()}, without_driver(meter.used()))

    def _configuration(self, extender: Extender | None) -> Mapping[str, Any]:
        """The same for all but for the extender."""
        one = extender or self.extenders[OURS]
        whole = one.scheduler_config()
        return whole if extender else {k: v for k, v in whole.items() if k != "extenders"}

    def _note(self, kind: str, item: Json) -> None:
        if kind != "DELETED" and item["spec"].get("nodeName"):
            self.bound.setdefault(item["metadata"]["name"], time.monotonic())

    def _create_pods(self) -> int:
        batch, count = next(_numbers), PODS[self.nodes]
        usable = range(self.nodes // 10, self.nodes)
        pinned = [
            pod(f"{PINNED}-{batch}-{i}", node_name(usable[i % len(usable)])) for i in range(count)
        ]
        create_all(
            self.cluster.api, _PODS, [*pinned, *(pod(f"{FREE}-{batch}-{i}") for i in range(count))]
        )
        return 2 * count

    def _clear(self) -> None:
        with self.cluster.api.session() as session:
            session.call("DELETE", f"{_PODS}?gracePeriodSeconds=0")
        wait_until(lambda: not self.cluster.api.get(f"{_PODS}?limit=1")["items"], "no pods")
        self.bound.clear()


def pod(name: str, node: str = "") -> Json:
    """A pod with a GPU; pinned as a release pins it where a node is given."""
    amounts = {"cpu": "1", "memory": "1Gi", GPU: "1"}
    container = {
        "name": "c",
        "image": "x",
        "resources": {"requests": amounts, "limits": {GPU: "1"}},
    }
    spec: Json = {"containers": [container]}
    if node:
        pin = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec |= {"affinity": {"nodeAffinity": required}, "priorityClassName": "first"}
    return {"metadata": {"name": name}, "spec": spec}


def node_name(number: int) -> str:
    """The name of a node."""
    return f"gpu-node-{number:05}"


@contextmanager
def stage(nodes: int) -> Iterator[Plot]:
    """Nodes, of which the first tenth is reserved, and both extenders, stopped."""
    with bare(nodes) as cluster:
        _reserve(cluster.api, [node_name(i) for i in range(nodes // 10)])
        modules = {NOTHING: "benchmarks.does_nothing", OURS: "extender"}
        extenders = {
            kind: start_extender(cluster, name=module.rpartition(".")[2], module=module)
            for kind, module in modules.items()
        }
        for each in extenders.values():
            each.process.stop()
        yield Plot(cluster, nodes, extenders)


@contextmanager
def bare(nodes: int) -> Iterator[Cluster]:
    """Nodes, and nothing that schedules or runs pods."""
    programs, seed = prepare(lambda line: print(line, file=sys.stderr))
    # Only the controller manager takes off the taint that this plugin puts on new nodes.
    untainted = ("--disable-admission-plugins=TaintNodesByCondition",)
    chosen = Options(kuberay=False, kwok=False, scheduler=False, apiserver_args=untainted)
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        cluster = Cluster(Path(folder) / "cluster", with_muster(chosen), programs, seed)
        with cluster:
            cluster.directory.mkdir()
            cluster.start_api_server()
            cluster.create_crds(*cluster.options.crds)
            _fill(cluster.api, nodes)
            yield cluster


def _fill(api: Api, nodes: int) -> None:
    account = {"metadata": {"name": "default"}}  # without it admission refuses pods
    api.create("/api/v1/namespaces/default/serviceaccounts", account)
    api.create(_PRIORITIES, {"metadata": {"name": "first"}, "value": 1000})
    now = dt.datetime.now(dt.UTC)
    specs = (NodeSpec(node_name(i), cpus=96, memory="768Gi", gpus=8) for i in range(nodes))
    create_all(api, "/api/v1/nodes", [node_object(spec, now) for spec in specs])


def _reserve(api: Api, nodes: Sequence[str]) -> None:
    """One gang that was promised these nodes whole, and of which no pod has come."""
    gangs = f"/apis/{names.API_VERSION}/namespaces/default/gangs"
    owner = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCluster", "name": "g", "uid": "u"}
    sets = [{"name": "workers", "count": len(nodes), "minimum": len(nodes)}]
    made = {
        "apiVersion": names.API_VERSION,
        "kind": "Gang",
        "metadata": {"name": "g", "ownerReferences": [owner]},
        "spec": {"queue": "default", "rayClusterUid": "u", "podSets": sets},
    }
    placed = {
        "shape": "abc",
        "requests": {"cpu": "4", "memory": "16Gi", GPU: "8", "pods": "1"},
        "nodes": dict.fromkeys(nodes, 1),
    }
    podsets = [{"name": "workers", "assignments": [placed]}]
    status = {**made, "status": {"placement": {"epoch": 1, "podSets": podsets}}}
    api.create(gangs, made)
    api.apply(f"{gangs}/g/status", json.dumps(status).encode())
