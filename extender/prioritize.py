"""Which of the nodes that are left should the pod take, so that whole nodes stay free for gangs?

The answer is the packing score of the core, the same by which the coordinator fills nodes: 10 for
the best node alone, the others by rank down to 0, ties in the order of names. Reserved room counts
as taken. Nodes that are not known get nothing.

A pod that asks for no device is kept off idle devices, and no more is said about it: among the
other nodes the scheduler spreads the copies of a service as it always did.
"""

import numpy as np

from extender.lists import NodeList
from extender.snapshot import Snapshot
from scheduling.columns import Columns, Mask
from scheduling.model import PodShape
from scheduling.packing import POINTS, is_device, points


def scores(shape: PodShape, nodes: NodeList, snapshot: Snapshot) -> list[int]:
    """Return 0 to 10 for each node."""
    at = nodes.at(snapshot.bound.traits)
    by_place = np.zeros(len(snapshot.guarded.names) + 1, dtype=np.int64)  # the last for unknown
    by_place[at] = 1
    known = np.flatnonzero(by_place[:-1])
    by_place[:] = 0
    if any(is_device(resource) for resource, _ in shape.requests):
        by_place[known] = points(shape, snapshot.room, known)
    else:
        by_place[known] = np.where(_has_idle_devices(snapshot.guarded)[known], 0, POINTS)
    found: list[int] = by_place[at].tolist()
    return found


def _has_idle_devices(columns: Columns) -> Mask:
    rows = [at for resource, at in columns.row.items() if is_device(resource)]
    idle = np.zeros(len(columns.names), dtype=np.bool_)
    for row in rows:
        idle |= columns.free[row] > 0
    return idle
