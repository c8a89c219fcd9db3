"""Names the resource that is short for one more pod, after all that fit are placed."""

from dataclasses import dataclass

import numpy as np

from scheduling.filters.feasibility import (
    feasible_nodes,
    is_feasible_everywhere,
    is_feasible_somewhere,
)
from scheduling.filters.free_capacity import At, FreeCapacity
from scheduling.model.amounts import Amounts, exact_sum, is_device
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import is_port


@dataclass(frozen=True, slots=True)
class Shortage:
    """Of the shortest resource: what one pod needs, what is left in all and at most on one node.

    `resource` is empty where no node is feasible. Of a host port a pod needs one, and a node has
    one or none.
    """

    resource: str
    each: int
    free: int
    largest: int


NO_NODE = Shortage("", 0, 0, 0)


def shortage(shape: PodShape, room: FreeCapacity) -> Shortage:
    """Return what stops the next pod of the shape, once all that fit have been placed.

    That is the resource that is short on the most nodes, then the one that leaves room for the
    fewest pods in sum; of equal ones a device.
    """
    return room.remembered(("shortage", shape.fitting), lambda: _shortage(shape, room))


def _shortage(shape: PodShape, room: FreeCapacity) -> Shortage:
    if not is_feasible_somewhere(shape, room.columns):
        return NO_NODE
    nodes = _feasible_at(shape, room)
    fitting = room.counts(shape)[nodes]
    stopped = _stopped(shape, room, nodes, fitting)
    most = max(stopped.values())
    told = [
        _left(resource, each, room, nodes, fitting)
        for resource, each in shape.requests
        if stopped[resource] == most
    ]
    return max(told, key=lambda short: _told_rather(short, room))


def _told_rather(short: Shortage, room: FreeCapacity) -> tuple[int, bool, str]:
    is_looked_for = is_device(short.resource) or room.left(short.resource) is None
    return -(short.free // short.each), is_looked_for, short.resource


def _feasible_at(shape: PodShape, room: FreeCapacity) -> At:
    everywhere = is_feasible_everywhere(shape, room.columns)
    return slice(None) if everywhere else feasible_nodes(shape, room.columns)


def _stopped(shape: PodShape, room: FreeCapacity, nodes: At, fitting: Amounts) -> dict[str, int]:
    """Return per resource how many nodes have too little of it for one pod more."""
    with_one_more = fitting + 1
    return {
        resource: _nodes_without(resource, each * with_one_more, room, nodes)
        for resource, each in shape.requests
    }


def _nodes_without(resource: str, needed: Amounts, room: FreeCapacity, nodes: At) -> int:
    """Return how many nodes have less of a resource than is needed there."""
    free = room.left(resource)
    return len(needed) if free is None else int(np.count_nonzero(free[nodes] < needed))


def _left(resource: str, each: int, room: FreeCapacity, nodes: At, fitting: Amounts) -> Shortage:
    """Return what is left of a resource."""
    free = room.left(resource)
    if free is None:
        return Shortage(resource, each, 0, 0)
    left = free[nodes] - fitting * each
    if is_port(resource):
        left, each = (left >= each).astype(np.int64), 1
    np.maximum(left, 0, out=left)
    return Shortage(resource, each, exact_sum(left), int(left.max()))
