"""What is short for one more pod of a shape, after all have been placed that fit?"""

from dataclasses import dataclass

import numpy as np

from scheduling.counting import exact_sum
from scheduling.exclusive import is_exclusive
from scheduling.feasibility import feasible
from scheduling.model import PodShape
from scheduling.packing import is_device
from scheduling.room import At, Room


@dataclass(frozen=True, slots=True)
class Shortage:
    """Of the shortest resource: what one pod needs, what is left in all and at most on one node.

    `resource` is empty where no node is feasible; `offered` says whether any feasible node has
    any of it, taken or not. Of a port or disk a pod needs one, and a node has it or not.
    """

    resource: str
    each: int
    free: int
    largest: int
    offered: bool


NO_NODE = Shortage("", 0, 0, 0, offered=False)


def shortage(shape: PodShape, room: Room) -> Shortage:
    """Return what stops the next pod of the shape, once all that fit have been placed."""
    return room.remembered(("shortage", shape), lambda: _shortage(shape, room))


def _shortage(shape: PodShape, room: Room) -> Shortage:
    mask = feasible(shape, room.columns)
    if not mask.any():
        return NO_NODE
    nodes = slice(None) if mask.all() else np.flatnonzero(mask)
    candidates = [_left(resource, shape, room, nodes) for resource, _ in shape.requests]
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _left(
    resource: str, shape: PodShape, room: Room, nodes: At
) -> tuple[tuple[int, int, bool, str], Shortage]:
    """Return what is left of one resource, and how well it explains that no more pods fit.

    The best explanation stops the most nodes, then leaves room for the fewest pods in sum; of
    equal ones a device is the one people look for.
    """
    each = dict(shape.requests)[resource]
    fitting = room.counts(shape)[nodes]
    row = room.columns.row.get(resource)
    if row is None:
        return (len(fitting), 0, True, resource), Shortage(resource, each, 0, 0, offered=False)
    left = room.free[row, nodes] - fitting * each
    if is_exclusive(resource):
        left, each = (left >= each).astype(np.int64), 1
    np.maximum(left, 0, out=left)
    free = exact_sum(left)
    rank = int(np.count_nonzero(left < each)), -(free // each), is_device(resource), resource
    offered = bool(room.columns.allocatable[row, nodes].any())
    return rank, Shortage(resource, each, free, int(left.max()), offered)
