"""Measures what a gang costs that is sent to another cluster, against the same one created there.

A manager and one member run side by side, the member idle. Ray clusters are created in turn on the
manager and on the member; the clock runs from the create to the last pod that is Running there. CPU
and requests are those of both control planes and of all programs on them, without what they use
when nothing happens.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.gangs import NAMESPACE, PODS, RAY_CLUSTERS, Size, ray_cluster
from benchmarks.measure import (
    Outcome,
    Row,
    beyond_within,
    in_turn,
    of_field,
    quantile,
    ratio_within,
)
from benchmarks.plane import LEASE
from benchmarks.podwatch import PodWatch
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from testbed import fleet
from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.following import DELETED, Follower
from testbed.muster import start_dispatcher
from testbed.nodes import NodeSpec, copies
from testbed.waiting import wait_until

SIZE = Size()
QUEUE = "bench-0"
MEMBER = "east"
SLOWER = 0.5
"""Seconds that a gang may start later, in the median."""

DEARER = 1.6
MORE_REQUESTS = 16.0
WAIT_SECONDS = 60.0
IDLE_SECONDS = 20.0
_OURS = "/apis/muster.dev/v1alpha1"
_QUEUES = f"{_OURS}/gangqueues"
_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """One gang from its create until nothing of it is left."""

    running: float
    cpu: float
    requests: float


class Site:
    """A manager and one member."""

    def __init__(self, manager: Cluster, member: Cluster) -> None:
        self.manager, self.member = manager, member
        self._idle = (0.0, 0.0)

    def settle(self) -> None:
        """Learn what both use when nothing happens."""
        for each in (self.manager, self.member):
            wait_quiet(each)
        began = _Used(self)
        time.sleep(IDLE_SECONDS)
        cpu, requests = began.since()
        self._idle = (cpu / IDLE_SECONDS, requests / IDLE_SECONDS)

    def run(self, on: Cluster, side: str, number: int) -> Sample:
        """Create one Ray cluster, wait until it runs on the member, and delete it."""
        name = f"{side}-{number:03}"
        body = json.dumps(ray_cluster(name, SIZE, gang=True, queue=QUEUE)).encode()
        with PodWatch(self.member.api, PODS) as watch, Left(self.manager, self.member) as left:
            for each in (self.manager, self.member):
                wait_quiet(each)
            used, began = _Used(self), time.monotonic()
            with on.api.session() as session:
                session.call("POST", RAY_CLUSTERS, body)
            watch.wait_running(SIZE.pods, WAIT_SECONDS)
            running = max(pod.running for pod in watch.of(name)) - began
            with on.api.session() as session:
                session.call("DELETE", f"{RAY_CLUSTERS}/{name}")
            watch.wait_gone(WAIT_SECONDS)
            self._wait_nothing_left(left)
            took = time.monotonic() - began
            cpu, requests = used.since()
        return Sample(running, cpu - took * self._idle[0], requests - took * self._idle[1])

    def _wait_nothing_left(self, left: Left) -> None:
        wait_until(left.is_nothing, "nothing to be left", WAIT_SECONDS)
        for cluster in (self.manager, self.member):
            wait_quiet(cluster)


class Left(Closing):
    """What is left of gangs, by watches: requests of the benchmark itself are not to count."""

    def __init__(self, manager: Cluster, member: Cluster) -> None:
        self._uids: set[str] = set()
        paths = ((member, "gangoffers"), (member, "gangs"), (manager, "gangs"))
        self._followers = [
            Follower(cluster.api, f"{_OURS}/namespaces/{NAMESPACE}/{plural}", self._take)
            for cluster, plural in paths
        ]
        for each in self._followers:
            each.wait_synced()

    def is_nothing(self) -> bool:
        """Tell whether all that was seen is gone."""
        return not self._uids

    def _take(self, kind: str, item: Json) -> None:
        (self._uids.discard if kind == DELETED else self._uids.add)(item["metadata"]["uid"])

    def close(self) -> None:
        """End the watches."""
        for each in self._followers:
            each.close()


class _Used:
    """CPU seconds and requests of both control planes from a moment on."""

    def __init__(self, site: Site) -> None:
        self._clusters = (site.manager, site.member)
        self._requests = self._now()
        self._meters = [CpuMeter(each) for each in self._clusters]

    def since(self) -> tuple[float, float]:
        """CPU seconds of all programs, and requests other than watches."""
        cpu = sum(sum(without_driver(each.used()).values()) for each in self._meters)
        return cpu, self._now() - self._requests

    def _now(self) -> float:
        return sum(map(_requests, self._clusters))


def measure(runs: int) -> Outcome:
    """Gangs created on the member, and sent there, in turn."""
    with _standing() as site:
        site.settle()
        for cluster, side in ((site.member, "warm-local"), (site.manager, "warm-sent")):
            site.run(cluster, side, 0)
        local, sent = in_turn(
            runs,
            partial(site.run, site.member, "local"),
            partial(site.run, site.manager, "sent"),
        )
    return Outcome(list(rows(local, sent)), notes=["floor: created on the member itself"])


def rows(local: Sequence[Sample], sent: Sequence[Sample]) -> Iterator[Row]:
    """Sent against local ones."""
    name = "create to Running"
    yield beyond_within(of_field("running", f"{name}, p50", "s", local, sent), SLOWER)
    tails = [quantile([each.running for each in side], 0.9) for side in (sent, local)]
    yield Row(f"{name}, p90", "s", (tails[0],), (tails[1],))
    cpu = of_field("cpu", "CPU of all programs for a gang", "s", local, sent, paired=False)
    yield ratio_within(cpu, DEARER)
    requests = of_field("requests", "requests for a gang", "", local, sent, paired=False)
    yield beyond_within(requests, MORE_REQUESTS)


@contextmanager
def _standing() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        manager = fleet.start_manager(Path(folder) / "manager", stack)
        member = fleet.start_member(Path(folder) / MEMBER, stack)
        fleet.admit_dispatcher(member, NAMESPACE)
        manager.api.create(_QUEUES, _queue(clusters={}))
        member.api.create(_QUEUES, _queue())
        member.add_nodes(copies(NodeSpec("node", gpus=8), 8))
        kubeconfig = fleet.kubeconfig_of(member)
        fleet.join(manager, MEMBER, kubeconfig, namespaces=[NAMESPACE])
        start_dispatcher(manager, "dispatcher", LEASE)
        is_up = partial(fleet.connected, manager, MEMBER)
        wait_until(lambda: is_up().get("status") == "True", "the member", WAIT_SECONDS)
        yield Site(manager, member)


def _queue(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "GangQueue",
        "metadata": {"name": QUEUE},
        "spec": {"namespaceSelector": {}, **spec},
    }


def _requests(cluster: Cluster) -> float:
    """Requests that its API server has answered, without watches and its own."""
    with cluster.api.session() as session:
        text = session.request("GET", "/metrics")[1].decode()
    return sum(float(value) for labels, value in _REQUESTS.findall(text) if "WATCH" not in labels)
