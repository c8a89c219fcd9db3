"""NodePorts: on which nodes the host ports of a pod are free."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scheduling.model.amounts import Requests
from scheduling.model.shape.host_ports import offered
from scheduling.state.port_ledger import NOTHING_ON, Taken


def left(resource: str, taken: Taken, index: Mapping[str, int]) -> NDArray[np.int64]:
    """Return how much of a port is left on each node; `index` says where each has its place."""
    free = np.full(len(index), offered(resource), dtype=np.int64)
    there = taken.get(resource, NOTHING_ON)
    on = [(index[node], amount) for node, amount in there.items() if node in index]
    if on:
        at, amounts = np.array(on, dtype=np.int64).T
        free[at] -= amounts
    return free


def pods_by_ports(
    asked: Requests, taken: Taken, index: Mapping[str, int], beside: Requests = ()
) -> NDArray[np.int64]:
    """Return how many pods with these ports each node takes: one where all are free, else none.

    Only nodes that have one of the ports are looked at. `beside` is what another pod has taken
    before on each node.
    """
    before = dict(beside)
    fitting = np.ones(len(index), dtype=np.int64)
    for resource, amount in asked:
        spare = offered(resource) - before.get(resource, 0) - amount
        if spare < 0:
            fitting[:] = 0
        there = taken.get(resource, NOTHING_ON)
        full = [index[node] for node, used in there.items() if used > spare and node in index]
        fitting[full] = 0
    return fitting
