"""The nodes at one moment (Snapshot): labels and taints by class, resources as rows of int64.

`NodeSnapshot` is a value, never changed after it is made, nodes sorted by name, resources as rows.
What nodes are (`NodeAttributes`: labels, taints) and how much they hold change at different rates,
so the traits and all that was derived from them are shared by snapshots until a node changes.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.constraints import NODE_NAME
from scheduling.model.node import Node, Taint
from scheduling.state.bounded_cache import MIB, BoundedCache
from scheduling.state.port_ledger import NOTHING, Taken

Cells = Mapping[tuple[int, int], int]
"""Amounts at some rows and nodes of columns."""

Ports = tuple[tuple[str, str, int], ...]
"""Amounts of host ports at some nodes, by resource and name of the node."""

T = TypeVar("T")

MANY = 64
"""More resources than pods have, unless they are invented."""


MASKS_BYTES = LABELS_BYTES = 8 * MIB
"""What masks, and columns of labels, may take per set of nodes, with the constraints that they
answer: so much, and `NODE_BYTES` for each node. Gangs of one cluster share a few dozen."""

NODE_BYTES = 4096


class NodeAttributes:
    """What nodes are besides amounts, and what was derived from it (see `remembered`).

    Two `NodeAttributes` never share a cache; a cached array is never written again.
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


class NodeSnapshot:
    """The nodes at one moment; nothing in it is ever written again.

    `allocatable`, `used` and `free` are int64 of shape (resources, nodes), one contiguous row
    per resource. `free` is negative where a node is overcommitted. Host ports have no rows: `ports`
    says which are taken where.
    """

    def __init__(
        self,
        traits: NodeAttributes,
        resources: tuple[str, ...],
        allocatable: Amounts,
        used: Amounts,
        nominated_below: Iterable[tuple[int, Cells, Ports]] = (),
        claimable: frozenset[str] = frozenset(),
        free: Amounts | None = None,
        ports: Taken = NOTHING,
    ) -> None:
        """Take the arrays as they are; `nominated_below` goes up by priority.

        `claimable` are resources that nodes without any may still give, through classes of
        devices; how much of them is not known here. `free` is given where it is known.
        """
        self.traits = traits
        self.resources = resources
        self.row: Mapping[str, int] = {name: at for at, name in enumerate(resources)}
        self.allocatable = allocatable
        self.used = used
        self.free: Amounts = allocatable - used if free is None else free
        self._nominated_below = tuple(nominated_below)
        self.claimable = claimable
        self.ports = ports

    def rank(self, priority: int) -> int:
        """Return how many priorities of nominated pods are below a priority; mostly none."""
        return bisect_left(self._nominated_below, priority, key=lambda sort: sort[0])

    def nominated_below(self, rank: int) -> Amounts:
        """Return what only nominated pods of lower priority use, seen from this rank."""
        given = np.zeros_like(self.used)
        if rank:
            cells = self._nominated_below[rank - 1][1]
            rows, nodes = np.array(list(cells), dtype=np.intp).reshape(-1, 2).T
            given[rows, nodes] = np.array(list(cells.values()), dtype=np.int64)
        return given

    def nominated_ports_below(self, rank: int) -> Ports:
        """Return the ports that only nominated pods of lower priority take."""
        return self._nominated_below[rank - 1][2] if rank else ()

    def nominated(self) -> Positions:
        """Return the nodes with nominated pods whose room higher priorities may take."""
        nodes = {node for _, cells, _ in self._nominated_below for _, node in cells}
        nodes |= {self.index[node] for _, _, ports in self._nominated_below for _, node, _ in ports}
        return np.array(sorted(nodes), dtype=np.intp)

    def with_rows(self, rows: Mapping[str, tuple[Amounts, Amounts]]) -> "NodeSnapshot":
        """Return the same nodes with more resources: name -> what there is, what is taken."""
        names = tuple(sorted(rows))
        allocatable, used = (np.stack([rows[name][side] for name in names]) for side in (0, 1))
        return NodeSnapshot(
            self.traits,
            (*self.resources, *names),
            np.vstack((self.allocatable, allocatable)),
            np.vstack((self.used, used)),
            self._nominated_below,
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
