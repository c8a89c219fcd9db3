"""Keeps nodes and what is used on them from watch events; snapshots are `NodeSnapshot`.

`NodeTable` is a ledger that one owner changes thousands of times a second: an event costs a few
dictionary and array writes, whatever the number of nodes, and a snapshot costs a copy of the
arrays. A reader that is done before the next event needs none: a `view` is the arrays
themselves.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from scheduling.model.amounts import LIMIT, Amounts
from scheduling.model.node import Node
from scheduling.model.shape.host_ports import is_port
from scheduling.state.node_snapshot import MANY, Cells, NodeAttributes, NodeSnapshot, Ports
from scheduling.state.port_ledger import PortLedger


class NodeTable:
    """The nodes and the sums used on them, kept from events by one owner.

    A node has a slot in arrays that grow by doubling; slots are handed out as nodes come and
    reused as they go, and at a look after that they are brought into the order of names, and rows
    into that of resources, so that until then a view is a part of the arrays. Sums are
    kept per node name in plain integers, which is exact whatever the order of events, and holds
    the pods of nodes that are not known (yet, or any more). A resource has a row while a node
    has it. Host ports have none: which are taken where is kept beside. What pods use of others,
    whose names can be invented, stays in the sums, and a pod that asks for it fits nowhere.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._nodes: dict[str, Node] = {}
        self._free_slots: list[int] = []
        self._rows: dict[str, int] = {}
        self._free_rows: list[int] = []
        self._offered: Counter[str] = Counter()
        self._ports = PortLedger()
        self._used: dict[str, dict[str, int]] = {}
        self._nominated: dict[int, Counter[tuple[str, str]]] = {}
        self._claimable: frozenset[str] = frozenset()
        self._allocatable = np.zeros((0, 0), dtype=np.int64)
        self._taken = np.zeros((0, 0), dtype=np.int64)
        self._left = np.zeros((0, 0), dtype=np.int64)
        self._traits: NodeAttributes | None = None
        self._view: NodeSnapshot | None = None
        self._snapshot: NodeSnapshot | None = None
        self.edition = 0
        """Counts what changed, nodes and use alike."""

    def put_node(self, node: Node) -> None:
        """Add a node, or replace the one of its name."""
        known = self._nodes.get(node.name)
        if known == node:
            return
        slot = self._slots[node.name] if known else self._new_slot(node.name)
        self._nodes[node.name] = node
        self._write(slot, node)
        self._offered.update(node.allocatable.keys())
        if known is not None:
            self._withdraw(known)
        self._traits = self._view = self._snapshot = None
        self.edition += 1

    def remove_node(self, name: str) -> None:
        """Forget a node; what is used on it stays counted for the case that it comes back."""
        known = self._nodes.pop(name, None)
        if known is not None:
            self._free_slots.append(self._slots.pop(name))
            self._withdraw(known)
            self._traits = self._view = self._snapshot = None
            self.edition += 1

    def _withdraw(self, node: Node) -> None:
        """Give up the rows of what only this node had."""
        self._offered.subtract(node.allocatable.keys())
        for resource in node.allocatable:
            if not self._offered[resource]:
                del self._offered[resource]
                self._drop_row(resource)

    def use(self, node: str, amounts: Iterable[tuple[str, int]], sign: int) -> None:
        """Add (+1) or take back (-1) amounts on a node, known or not."""
        sums = self._used.setdefault(node, {})
        slot, gone = self._slots.get(node), 0
        for resource, amount in amounts:
            total = sums.get(resource, 0) + sign * amount
            if total:
                sums[resource] = total
            else:
                gone += sums.pop(resource, None) is not None
            row = self._rows.get(resource)
            if slot is not None and row is not None:
                self._take(row, slot, total)
            if is_port(resource):
                self._ports.put(resource, node, total)
        if not sums:
            del self._used[node]
        elif gone > MANY:
            self._used[node] = dict(sums)  # a table that was large does not shrink by itself
        if slot is not None:
            self._snapshot = None
            self.edition += 1

    def nominate(
        self, node: str, amounts: Iterable[tuple[str, int]], priority: int, sign: int
    ) -> None:
        """Say (+1), or take back (-1), that amounts in use there are of a pod nominated only.

        They are in the way of pods up to its priority, and of no pod above it.
        """
        sums = self._nominated.setdefault(priority, Counter())
        for resource, amount in amounts:
            sums[node, resource] += sign * amount
            if not sums[node, resource]:
                del sums[node, resource]
        if not sums:
            del self._nominated[priority]
        self._snapshot = None

    def claim(self, resources: Iterable[str]) -> None:
        """Say of which resources nodes without any may still give some."""
        before, self._claimable = self._claimable, frozenset(resources)
        if before != self._claimable:
            self._view = self._snapshot = None

    def held(self, prefix: str) -> dict[str, dict[str, int]]:
        """Return what is used of resources whose names begin like this, by name and by node.

        Whether they have rows or not.
        """
        found: dict[str, dict[str, int]] = {}
        for node, sums in self._used.items():
            for resource, amount in sums.items():
                if resource.startswith(prefix):
                    found.setdefault(resource, {})[node] = amount
        return found

    def snapshot(self) -> NodeSnapshot:
        """Return the nodes as they are now; the same object while nothing has changed."""
        if self._snapshot is None:
            self._snapshot = self._copied()
        return self._snapshot

    def _copied(self) -> NodeSnapshot:
        now = self.view()
        below = self._nominated_below(now.row, now.index)
        return NodeSnapshot(
            *(now.traits, now.resources, now.allocatable.copy(), now.used.copy()),
            nominated_below=below,
            claimable=self._claimable,
            free=now.free.copy(),
            ports=self._ports.snapshot(),
        )

    def view(self) -> NodeSnapshot:
        """Return the nodes in the table's own arrays, which the next event changes.

        The same object while nodes and resources are the same ones. Nominated pods count
        against pods of every priority.
        """
        if self._view is None:
            self._line_up()
            if self._traits is None:
                self._traits = NodeAttributes(tuple(self._nodes[name] for name in self._slots))
            tables = (self._allocatable, self._taken, self._left)
            offered, taken, left = (self._lined_up(table) for table in tables)
            self._view = NodeSnapshot(
                *(self._traits, tuple(self._rows), offered, taken),
                claimable=self._claimable,
                free=left,
                ports=self._ports.now,
            )
        return self._view

    def _lined_up(self, table: Amounts) -> Amounts:
        """Return the part of a table that is in use, not to be written through."""
        part = table[: len(self._rows), : len(self._slots)]
        part.flags.writeable = False
        return part

    def _line_up(self) -> None:
        """Bring slots into the order of names and rows into that of resources, free ones behind."""
        names, resources = sorted(self._slots), sorted(self._rows)
        slots = np.array([self._slots[name] for name in names], dtype=np.intp)
        rows = np.array([self._rows[name] for name in resources], dtype=np.intp)
        for table in (self._allocatable, self._taken, self._left):
            table[: len(rows), : len(slots)] = table[rows[:, None], slots]
        self._slots = {name: at for at, name in enumerate(names)}
        self._rows = {name: at for at, name in enumerate(resources)}
        self._free_slots, self._free_rows = [], []

    def _nominated_below(
        self, row: Mapping[str, int], index: Mapping[str, int]
    ) -> Iterator[tuple[int, Cells, Ports]]:
        """Yield, lowest first, each priority of nominated pods, with what they use up to there."""
        sums: Counter[tuple[str, str]] = Counter()
        for priority in sorted(self._nominated):
            sums.update(self._nominated[priority])
            here = [(resource, node, n) for (node, resource), n in sums.items() if node in index]
            cells = {
                (row[resource], index[node]): self._given_back(node, resource, amount)
                for resource, node, amount in here
                if resource in row
            }
            yield priority, cells, tuple(each for each in here if is_port(each[0]))

    def _given_back(self, node: str, resource: str, amount: int) -> int:
        """Return what a column loses when an amount is no more in use there."""
        total = self._used.get(node, {}).get(resource, 0)
        return _in_column(total) - _in_column(total - amount)

    def _write(self, slot: int, node: Node) -> None:
        """Write a node's whole column, with what was used on it before it was known."""
        for resource in node.allocatable:
            if resource not in self._rows:
                self._new_row(resource)
        used = self._used.get(node.name, {})
        for resource, row in self._rows.items():
            self._allocatable[row, slot] = _in_column(node.allocatable.get(resource, 0))
            self._take(row, slot, used.get(resource, 0))

    def _take(self, row: int, slot: int, total: int) -> None:
        self._taken[row, slot] = taken = _in_column(total)
        self._left[row, slot] = self._allocatable[row, slot] - taken

    def _drop_row(self, resource: str) -> None:
        self._free_rows.append(self._rows.pop(resource))
        self._view = self._snapshot = None

    def _new_slot(self, name: str) -> int:
        slot = self._free_slots.pop() if self._free_slots else len(self._slots)
        if slot >= self._allocatable.shape[1]:
            self._grow(0, max(64, self._allocatable.shape[1]))
        self._slots[name] = slot
        return slot

    def _new_row(self, resource: str) -> int:
        """Make a row of what was used until now; it may replace the arrays by larger ones."""
        row = self._free_rows.pop() if self._free_rows else len(self._rows)
        if row >= self._allocatable.shape[0]:
            self._grow(max(8, self._allocatable.shape[0]), 0)
        self._rows[resource] = row
        for table in (self._allocatable, self._taken, self._left):
            table[row] = 0
        for name, sums in self._used.items():
            if resource in sums and name in self._slots:
                self._take(row, self._slots[name], sums[resource])
        self._view = self._snapshot = None
        return row

    def _grow(self, rows: int, slots: int) -> None:
        wider = ((0, rows), (0, slots))
        self._allocatable = np.pad(self._allocatable, wider)
        self._taken = np.pad(self._taken, wider)
        self._left = np.pad(self._left, wider)


def _in_column(amount: int) -> int:
    """Cut an amount to what a column holds; below zero only a fault of the caller can lead."""
    return min(max(amount, 0), LIMIT)


def node_snapshot_of(
    nodes: Iterable[Node],
    used: Mapping[str, Mapping[str, int]] | None = None,
) -> NodeSnapshot:
    """Return a snapshot of nodes, with what is used on them by name."""
    table = NodeTable()
    for node in nodes:
        table.put_node(node)
    for name, amounts in (used or {}).items():
        table.use(name, amounts.items(), +1)
    return table.snapshot()
