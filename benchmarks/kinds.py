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

from benchmarks.plane import Plane
from benchmarks.policies import ALL, ALL_TRACKED, LABELLED, Policy, enforced
from benchmarks.releaser import READY
from testbed.cluster import Cluster
from testbed.muster import ROOT
from testbed.waiting import wait_until


@dataclass(frozen=True)
class Kind:
    """One way: its name, what sets it up, and whether its Ray clusters are labelled."""

    name: str
    at_work: Callable[[Plane], AbstractContextManager[None]]
    labelled: bool = True

    @property
    def prefix(self) -> str:
        """What the names of its Ray clusters begin with."""
        return self.name.lower().replace(" ", "-").replace(",", "")


@contextlib.contextmanager
def _stock(on: Plane) -> Iterator[None]:
    on.switch(on=False)
    yield


@contextlib.contextmanager
def _muster(on: Plane) -> Iterator[None]:
    on.switch(on=True)
    on.track_field_owners(on=False)
    on.lead(on=True)
    yield


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


STOCK = Kind("stock", _stock, labelled=False)
MUSTER = Kind("Muster", _muster)
FLOOR = Kind("floor", partial(_policy, ALL))
POLICY_TRACKED = Kind("policy, owners tracked", partial(_policy, ALL_TRACKED))
POLICY_LABELLED = Kind("policy by owner", partial(_policy, LABELLED))
WEBHOOK = Kind("webhook", partial(_webhook, owners=False))
WEBHOOK_TRACKED = Kind("webhook, owners tracked", partial(_webhook, owners=True))
