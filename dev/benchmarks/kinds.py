"""The ways in which the pods of a run are gated and released.

All ways take turns on one control plane. Under all but Muster and stock the pods are released by
the program that decides nothing (`benchmarks.releaser`), so that what is left is the price of gates
and of one patch for each pod.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from benchmarks.gangs import queue_name
from benchmarks.plane import DEFAULT_GUARD, Plane
from benchmarks.policies import ALL, ALL_TRACKED, LABELLED, Policy, enforced
from benchmarks.releaser import READY
from coordinator.gang.nominations import Guard
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.muster import ROOT
from testbed.nodes import GPU
from testbed.waiting import wait_until


@dataclass(frozen=True)
class Kind:
    """One way: its name, what sets it up, the label of its Ray clusters, and how many queues."""

    name: str
    at_work: Callable[[Plane], AbstractContextManager[None]]
    labelled: bool = True
    queues: int = 0

    @property
    def prefix(self) -> str:
        """What the names of its Ray clusters begin with."""
        return self.name.lower().replace(" ", "-").replace(",", "")


@contextlib.contextmanager
def _stock(on: Plane) -> Iterator[None]:
    on.switch(on=False)
    yield


@contextlib.contextmanager
def _muster(on: Plane, guard: Guard = DEFAULT_GUARD, *, policies: bool = True) -> Iterator[None]:
    on.switch(on=True)
    on.enforce(on=policies)
    on.track_field_owners(on=False)
    on.lead(on=True)
    on.guard(guard)
    yield


@contextlib.contextmanager
def _queued(on: Plane) -> Iterator[None]:
    """Have Muster at work with queues that share all nodes, each with a tenth of the quota."""
    with _muster(on):
        nodes = len(on.cluster.api.get("/api/v1/nodes")["items"])
        for body in _queues(nodes):
            on.cluster.api.create(_GANG_QUEUES, body)
        wait_until(lambda: _active(on) == QUEUED_IN + 1, "the queues to be active")
        try:
            yield
        finally:
            with on.cluster.api.session() as session:
                session.call("DELETE", _GANG_QUEUES)
            wait_until(lambda: not on.cluster.api.get(_GANG_QUEUES)["items"], "no queues")


def _queues(nodes: int) -> Iterator[Json]:
    # A policy keeps queues with children or gangs, and all of these go in one call.
    allowed = {"annotations": {"muster.dev/allow-deletion": "true"}}
    yield {**_QUEUE, "metadata": {"name": "bench", **allowed}, "spec": {}}
    share = {GPU: str(nodes * 8 // QUEUED_IN), "cpu": str(nodes * 96 // QUEUED_IN)}
    for at in range(QUEUED_IN):
        spec = {"parent": "bench", "quota": share, "namespaceSelector": {}}
        yield {**_QUEUE, "metadata": {"name": queue_name(at), **allowed}, "spec": spec}


def _active(on: Plane) -> int:
    queues = on.cluster.api.get(_GANG_QUEUES)["items"]
    told = [each.get("status", {}).get("conditions", []) for each in queues]
    return sum(any(each["status"] == "True" for each in conditions) for conditions in told)


@contextlib.contextmanager
def _policy(policy: Policy, on: Plane) -> Iterator[None]:
    on.switch(on=False)
    with enforced(on.cluster, policy), _released(on.cluster):
        yield


@contextlib.contextmanager
def _webhook(on: Plane, *, owners: bool) -> Iterator[None]:
    on.switch(on=True)
    on.lead(on=False)
    on.track_field_owners(on=owners)
    with _released(on.cluster):
        yield


@contextlib.contextmanager
def _released(cluster: Cluster) -> Iterator[None]:
    """Have the program at work that releases and decides nothing."""
    nodes = len(cluster.api.get("/api/v1/nodes")["items"])
    argv = [sys.executable, "-m", "benchmarks.releaser", str(cluster.kubeconfig), str(nodes)]
    (cluster.logs / "releaser.log").unlink(missing_ok=True)  # an earlier one says ready, too
    program = cluster.spawn("releaser", argv, {"PYTHONPATH": str(ROOT)})
    wait_until(lambda: READY in program.log.read_text(), "the releaser to watch")
    try:
        yield
        program.expect_running()
    finally:
        program.stop()


QUEUED_IN = 10
_GANG_QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"
_QUEUE = {"apiVersion": "muster.dev/v1alpha1", "kind": "GangQueue"}

STOCK = Kind("stock", _stock, labelled=False)
MUSTER = Kind("Muster", _muster)
NOMINATING = Kind("Muster, nominating", partial(_muster, guard=Guard.NOMINATION))
UNGUARDED = Kind("Muster, no guard", partial(_muster, guard=Guard.NONE))
UNPOLICED = Kind("Muster, no policies", partial(_muster, policies=False))
QUEUED = Kind("Muster, with queues", _queued, queues=QUEUED_IN)
FLOOR = Kind("floor", partial(_policy, ALL))
POLICY_TRACKED = Kind("policy, owners tracked", partial(_policy, ALL_TRACKED))
POLICY_LABELLED = Kind("policy by owner", partial(_policy, LABELLED))
WEBHOOK = Kind("webhook", partial(_webhook, owners=False))
WEBHOOK_TRACKED = Kind("webhook, owners tracked", partial(_webhook, owners=True))
