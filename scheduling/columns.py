"""Which nodes are there, and how much of each is taken?

`Columns` is the answer at one moment: a value, never changed after it is made, nodes sorted by
name, resources as rows. `NodeTable` is the ledger it is drawn from: the coordinator's cache owns
it and changes single entries thousands of times a second; an event costs a few dictionary and
array writes, whatever the number of nodes, and drawing a snapshot costs a copy of the arrays. Who
looks and is done before the next event needs none: a `view` is the arrays themselves.

What nodes are (`Traits`: labels, taints) and how much they hold change at different rates, so
the traits and all that was derived from them are shared by snapshots until a node changes.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduling.bounded import MIB, BoundedCache
from scheduling.model import NODE_NAME, Node, Taint
from scheduling.ports import NOTHING, PortLedger, Taken, is_port

Amounts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]
Cells = Mapping[tuple[int, int], int]
"""Amounts at some rows and nodes of columns."""

Ports = tuple[tuple[str, str, int], ...]
"""Amounts of host ports at some nodes, by resource and name of the node."""

T = TypeVar("T")

MANY = 64
"""More resources than pods have, unless somebody invents them."""

LIMIT = 2**52
"""Amounts are cut off here in the columns (4 Pi), so that a thousand add up in 64 bits."""

MASKS_BYTES = LABELS_BYTES = 8 * MIB
"""What masks, and columns of labels, may take per set of nodes, with the constraints that they
answer: so much, and `NODE_BYTES` for each node. Gangs of one cluster share a few dozen."""

NODE_BYTES = 4096


class Traits:
    """What nodes are besides amounts, and what was derived from it (see `remembered`).

    Two `Traits` never share a cache; a cached array is never written again.
    """

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.names = tuple(node.name for node in nodes)
        self.index: Mapping[str, int] = {name: at for at, name in enumerate(self.names)}
        more = NODE_BYTES * len(nodes)
        self._labels: BoundedCache[str, LabelColumn] = BoundedCache(LABELS_BYTES + more)
        self._remembered: BoundedCache[Hashable, Any] = BoundedCache(MASKS_BYTES + more)

    @cached_property
    def taints(self) -> "TaintClasses":
        """Return the nodes by their taints and cordon; a cluster knows only a few such classes."""
        codes: dict[tuple[bool, tuple[Taint, ...]], int] = {}
        of = [codes.setdefault((n.unschedulable, n.taints), len(codes)) for n in self.nodes]
        return TaintClasses(tuple(codes), np.array(of, dtype=np.intp))

    def label(self, key: str) -> "LabelColumn":
        """Return the values of one label over all nodes."""
        return self._labels.remembered(key, lambda: LabelColumn.of_nodes(key, self.nodes))

    def remembered(self, key: Hashable, derive: Callable[[], T]) -> T:
        """Return what `derive` said for this key, calling it only the first time."""
        found: T = self._remembered.remembered(key, derive)  # a key names one derivation
        return found


@dataclass(frozen=True, slots=True)
class TaintClasses:
    """`of[i]` is the class of node i; a class is its cordon and its taints."""

    classes: tuple[tuple[bool, tuple[Taint, ...]], ...]
    of: Positions

    def where(self, holds: Callable[[bool, tuple[Taint, ...]], bool]) -> Mask:
        """Return the nodes whose class satisfies `holds`, asked once per class."""
        verdicts = [holds(cordoned, taints) for cordoned, taints in self.classes]
        return np.array(verdicts, dtype=np.bool_)[self.of]


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One label over all nodes: `values[of[i]]` is node i's value; None where it has none.

    `codes` says where a value stands in `values`.
    """

    values: tuple[str | None, ...]
    of: Positions
    codes: Mapping[str | None, int]

    @classmethod
    def of_nodes(cls, key: str, nodes: tuple[Node, ...]) -> "LabelColumn":
        """Code the values of the label, or the names, in the order they are met."""
        codes: dict[str | None, int] = {}
        values = (node.name if key == NODE_NAME else node.labels.get(key) for node in nodes)
        of = [codes.setdefault(value, len(codes)) for value in values]
        return cls(tuple(codes), np.array(of, dtype=np.intp), codes)

    def among(self, values: Iterable[str]) -> Mask:
        """Return the nodes that have one of these values."""
        wanted = np.zeros(len(self.values), dtype=np.bool_)
        wanted[[self.codes[value] for value in values if value in self.codes]] = True
        return wanted[self.of]

    def where(self, holds: Callable[[str | None], bool]) -> Mask:
        """Return the nodes whose value satisfies `holds`, asked once per distinct value."""
        return np.array([holds(value) for value in self.values], dtype=np.bool_)[self.of]


class Columns:
    """The nodes at one moment; nothing in it is ever written again.

    `allocatable`, `used` and `free` are int64 of shape (resources, nodes), one contiguous row
    per resource. `free` is negative where a node is overcommitted. Host ports have no rows: `ports`
    says which are taken where.
    """

    def __init__(
        self,
        traits: Traits,
        resources: tuple[str, ...],
        allocatable: Amounts,
        used: Amounts,
        ceded: Iterable[tuple[int, Cells, Ports]] = (),
        claimable: frozenset[str] = frozenset(),
        free: Amounts | None = None,
        ports: Taken = NOTHING,
    ) -> None:
        """Take the arrays as they are; `ceded` goes up by priority, see `ceded`.

        `claimable` are resources that nodes without any may still give, through classes of
        devices; how much of them is not known here. `free` is given by who knows it.
        """
        self.traits = traits
        self.resources = resources
        self.row: Mapping[str, int] = {name: at for at, name in enumerate(resources)}
        self.allocatable = allocatable
        self.used = used
        self.free: Amounts = allocatable - used if free is None else free
        self._ceded = tuple(ceded)
        self.claimable = claimable
        self.ports = ports

    def rank(self, priority: int) -> int:
        """Return how many sorts of nominations there are below a priority; mostly none."""
        return bisect_left(self._ceded, priority, key=lambda sort: sort[0])

    def ceded(self, rank: int) -> Amounts:
        """Return what is used only by nominations that pods of this rank pass over."""
        given = np.zeros_like(self.used)
        if rank:
            cells = self._ceded[rank - 1][1]
            rows, nodes = np.array(list(cells), dtype=np.intp).reshape(-1, 2).T
            given[rows, nodes] = np.array(list(cells.values()), dtype=np.int64)
        return given

    def ceded_ports(self, rank: int) -> Ports:
        """Return the ports that only nominations take which pods of this rank pass over."""
        return self._ceded[rank - 1][2] if rank else ()

    def nominated(self) -> Positions:
        """Return the nodes with room that some pods pass over a nomination for."""
        nodes = {node for _, cells, _ in self._ceded for _, node in cells}
        nodes |= {self.index[node] for _, _, ports in self._ceded for _, node, _ in ports}
        return np.array(sorted(nodes), dtype=np.intp)

    @classmethod
    def of(
        cls,
        nodes: Iterable[Node],
        used: Mapping[str, Mapping[str, int]] | None = None,
    ) -> "Columns":
        """Draw up nodes with what is used on them by name."""
        table = NodeTable()
        for node in nodes:
            table.put_node(node)
        for name, amounts in (used or {}).items():
            table.use(name, amounts.items(), +1)
        return table.snapshot()

    def with_rows(self, rows: Mapping[str, tuple[Amounts, Amounts]]) -> "Columns":
        """Return the same nodes with more resources: name -> what there is, what is taken."""
        names = tuple(sorted(rows))
        allocatable, used = (np.stack([rows[name][side] for name in names]) for side in (0, 1))
        return Columns(
            self.traits,
            (*self.resources, *names),
            np.vstack((self.allocatable, allocatable)),
            np.vstack((self.used, used)),
            self._ceded,
            self.claimable,
            ports=self.ports,
        )

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes, sorted by name."""
        return self.traits.nodes

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the nodes, sorted."""
        return self.traits.names

    @property
    def index(self) -> Mapping[str, int]:
        """Return the position of each node by its name."""
        return self.traits.index


class NodeTable:
    """The nodes and the sums used on them, kept from events by one owner.

    A node has a slot in arrays that grow by doubling; slots are handed out as nodes come and
    reused as they go, and at a look after that they are brought into the order of names, and rows
    into that of resources, so that until then a view is a part of the arrays. Sums are
    kept per node name in plain integers, which is exact whatever the order of events, and holds
    the pods of nodes that are not known (yet, or any more). A resource has a row while a node
    has it. Host ports have none: which are taken where is kept beside. What pods use of others,
    whose names anybody can invent, stays in the sums, and a pod that asks for it fits nowhere.
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
        self._traits: Traits | None = None
        self._view: Columns | None = None
        self._snapshot: Columns | None = None

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

    def remove_node(self, name: str) -> None:
        """Forget a node; what is used on it stays counted for the case that it comes back."""
        known = self._nodes.pop(name, None)
        if known is not None:
            self._free_slots.append(self._slots.pop(name))
            self._withdraw(known)
            self._traits = self._view = self._snapshot = None

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

    def snapshot(self) -> Columns:
        """Return the nodes as they are now; the same object while nothing has changed."""
        if self._snapshot is None:
            self._snapshot = self._drawn()
        return self._snapshot

    def _drawn(self) -> Columns:
        now = self.view()
        ceded = self._ceded(now.row, now.index)
        return Columns(
            *(now.traits, now.resources, now.allocatable.copy(), now.used.copy()),
            ceded=ceded,
            claimable=self._claimable,
            free=now.free.copy(),
            ports=self._ports.snapshot(),
        )

    def view(self) -> Columns:
        """Return the nodes in the table's own arrays, which the next event changes.

        The same object while nodes and resources are the same ones. Nominations that were told
        count against everybody.
        """
        if self._view is None:
            self._line_up()
            if self._traits is None:
                self._traits = Traits(tuple(self._nodes[name] for name in self._slots))
            tables = (self._allocatable, self._taken, self._left)
            offered, taken, left = (self._lined_up(table) for table in tables)
            self._view = Columns(
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

    def _ceded(
        self, row: Mapping[str, int], index: Mapping[str, int]
    ) -> Iterator[tuple[int, Cells, Ports]]:
        """Yield, lowest first, each priority of nominations and what they cede up to there."""
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
