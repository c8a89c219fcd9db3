"""Adds up what parts of running gangs give back when they end: room on nodes, and quota."""

from collections.abc import Collection, Mapping
from itertools import chain

import numpy as np

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions
from scheduling.model.preemption import GangPart
from scheduling.preemption.coverage import held_by
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.state.node_snapshot import NodeSnapshot


class Freed:
    """The parts as arrays: a cell for each part and node, and a row of quota for each part.

    Parts have numbers. What is on nodes that are gone gives back quota alone.
    """

    def __init__(self, parts: Mapping[int, GangPart], nodes: NodeSnapshot, tree: QuotaTree) -> None:
        self._count = 1 + max(parts, default=-1)
        self._devices = {of: part.devices for of, part in parts.items() if part.devices}
        self._asked: Collection[int] | None = None
        self._found: Mask = np.zeros(0, dtype=np.bool_)
        cells = [
            (of, nodes.index[node], requests)
            for of, part in parts.items()
            for node, requests in part.room
            if node in nodes.index
        ]
        self._of: Positions = np.array([of for of, _, _ in cells], dtype=np.intp)
        self._at: Positions = np.array([at for _, at, _ in cells], dtype=np.intp)
        self._amounts = np.zeros((len(cells), len(nodes.row)), dtype=np.int64)
        for number, (_, _, requests) in enumerate(cells):
            for resource, amount in requests:
                if resource in nodes.row:
                    self._amounts[number, nodes.row[resource]] += min(amount, LIMIT)
        rows = [(of, part) for of, part in parts.items() if part.queue in tree.index]
        self._quota_of: Positions = np.array([of for of, _ in rows], dtype=np.intp)
        self._queue: Positions = np.array([tree.index[p.queue] for _, p in rows], dtype=np.intp)
        self._quota = np.zeros((len(rows), len(tree.resources)), dtype=np.int64)
        for number, (_, part) in enumerate(rows):
            self._quota[number] = held_by(part, tree)

    def room(self, parts: Collection[int], room: FreeCapacity) -> FreeCapacity:
        """Return the room once these parts have ended."""
        cells = self._mask(parts)[self._of]
        at, place = np.unique(self._at[cells], return_inverse=True)
        more = np.zeros((len(at), self._amounts.shape[1]), dtype=np.int64)
        np.add.at(more, place.reshape(-1), self._amounts[cells])
        return self._with_devices(parts, room.changed_by(at, more.T))

    def _with_devices(self, parts: Collection[int], room: FreeCapacity) -> FreeCapacity:
        """Return the room with the devices that these parts give back with their claims."""
        if room.devices is None or not self._devices:
            return room
        freed = frozenset(chain.from_iterable(self._devices.get(each, ()) for each in parts))
        return room.with_devices(room.devices.without_taken(freed)) if freed else room

    def held(self, parts: Collection[int], held: Amounts) -> Amounts:
        """Return what the queues hold (queues x resources) once these parts have ended."""
        rows = self._mask(parts)[self._quota_of]
        left = held.copy()
        np.subtract.at(left, self._queue[rows], self._quota[rows])
        return left

    def total(self, parts: Collection[int]) -> Amounts:
        """Return what these parts give back on all nodes together, by resource."""
        found: Amounts = self._amounts[self._mask(parts)[self._of]].sum(axis=0)
        return found

    def _mask(self, parts: Collection[int]) -> Mask:
        """Return which parts are meant; of the same set it is known from the last time."""
        if parts is not self._asked:
            self._asked, self._found = parts, np.zeros(self._count, dtype=np.bool_)
            self._found[list(parts)] = True
        return self._found
