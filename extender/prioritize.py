"""Scores nodes so that whole nodes stay free for gangs (extender verb `prioritize`).

The score is the packing score of the core, the same by which the coordinator fills nodes: 10 for
the best node alone, the others by rank down to 0, ties in the order of names. Reserved room counts
as taken. Unknown nodes get 0.

A pod that asks for no device is kept off nodes with idle devices; all other nodes score alike, so
kube-scheduler spreads the copies of a service among them as before.

Host ports are left out: kube-scheduler has judged them, and a pod may have thousands.
"""

import numpy as np

from extender.snapshot import Snapshot
from extender.wire.node_lists import NodeList
from kube.codec.observed_pod import UNREADABLE
from scheduling.model.amounts import Amounts, Mask, Positions, Requests, is_device, sorted_requests
from scheduling.model.constraints import Toleration
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import is_port
from scheduling.scoring.node_scores import POINTS, points
from scheduling.state.bounded_cache import MIB, BoundedCache
from scheduling.state.node_snapshot import NodeSnapshot

ANYWHERE = (Toleration("", "Exists", "", ""),)

_SHAPES: BoundedCache[Requests, PodShape] = BoundedCache(MIB)


def scores(requests: Requests, nodes: NodeList, snapshot: Snapshot) -> list[int]:
    """Return 0 to 10 for each node, from the pod's requests alone.

    kube-scheduler's own plugins have filtered the nodes by everything else before.
    """
    at = nodes.at(snapshot.bound.traits)
    by_place = np.zeros(len(snapshot.guarded.names) + 1, dtype=np.int64)  # the last for unknown
    if requests != UNREADABLE:
        known = _places(at, len(by_place) - 1)
        by_place[known] = _points(requests, known, snapshot)
    found: list[int] = by_place[at].tolist()
    return found


def _places(at: Positions, nodes: int) -> Positions:
    """The same positions in order of name, each once and without the unknown."""
    listed = np.zeros(nodes + 1, dtype=np.bool_)
    listed[at] = True
    return np.flatnonzero(listed[:-1])


def _points(requests: Requests, known: Positions, snapshot: Snapshot) -> Amounts:
    counted = tuple(each for each in requests if not is_port(each[0]))
    shape = _SHAPES.remembered(counted, lambda: _shape(counted))
    if not any(is_device(resource) for resource, _ in shape.requests):
        return np.where(_has_idle_devices(snapshot.guarded)[known], 0, POINTS)
    return points(shape, snapshot.room, known)


def _shape(requests: Requests) -> PodShape:
    return PodShape(sorted_requests(dict(requests)), tolerations=ANYWHERE)


def _has_idle_devices(columns: NodeSnapshot) -> Mask:
    rows = [at for resource, at in columns.row.items() if is_device(resource)]
    idle = np.zeros(len(columns.names), dtype=np.bool_)
    for row in rows:
        idle |= columns.free[row] > 0
    return idle
