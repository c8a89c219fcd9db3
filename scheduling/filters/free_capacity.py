"""Holds the free capacity of the nodes, which a cycle counts down as it admits gang after gang.

A `FreeCapacity` is a value: taking from it makes another one, so an attempt that fails leaves
nothing to undo. What follows from a room is worked out once: what holds for each node alone (how
many pods of a shape fit, whether a device is idle) is handed on to the rooms made from it, even to
those of the next cycle, and brought up to date only at the nodes that changed; what holds for the
whole (a sum, why a gang does not fit) is remembered in the room.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.room import DeviceRoom
from scheduling.filters.feasibility import feasible, is_feasible_everywhere
from scheduling.filters.node_affinity import bounded
from scheduling.filters.node_ports import left as left_of_port
from scheduling.filters.node_ports import pods_by_ports
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.filters.same_nodes import SameNodes
from scheduling.model.amounts import LIMIT, Amounts, Positions
from scheduling.model.pod import LOWEST_PRIORITY, PodShape
from scheduling.model.shape.host_ports import is_port
from scheduling.model.shape.node_restrictions import in_any_domain
from scheduling.state.bounded_cache import MIB, weight
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.port_ledger import Taken, added, differing

T = TypeVar("T")
V = TypeVar("V", bound=np.generic)
At = Positions | slice
"""Some of the nodes, by position."""

BLOCK = 8192
"""Nodes looked at together; a row of them is 64 KiB."""

KNOWN_KEPT = 256
"""Answers for all nodes that are handed on to the next cycle: 10 MB at 5,000 nodes."""

ASKED_BYTES = 8 * MIB
"""What the shapes that they are for may take; if they take more, no answer is handed on."""

CHANGES_KEPT = 256
"""Changes of a view that are followed before all is worked out anew."""

NOWHERE: Positions = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False, slots=True)
class Distribution:
    """Pods of one shape over nodes: `pods[i]` of them on the node at position `nodes[i]`."""

    nodes: Positions
    pods: Amounts


class _Known(NamedTuple):
    """What is known of each node, and how many changes it has seen.

    `size` are the bytes of its key, worked out when first needed; for most keys it never is.
    """

    of: NDArray[Any]
    seen: int
    size: int | None = None


class FreeCapacity:
    """The free amounts, what is known of each node, and which nodes changed since it was learnt.

    `ports` are the host ports that are taken, by pods of before and of the gangs admitted since.
    `grown` are the nodes that may hold more than in the room that this one was moved from.
    `devices` are those that claims may be allocated; None where no pod claims any.
    """

    def __init__(
        self,
        columns: NodeSnapshot,
        free: Amounts,
        grown: Positions = NOWHERE,
        ports: Taken | None = None,
        devices: DeviceRoom | None = None,
    ) -> None:
        self.columns = columns
        self.grown = grown
        self.ports = columns.ports if ports is None else ports
        self.devices = devices
        self._free: Amounts | _Taken = free
        self._changed: tuple[Positions, ...] = ()
        self._known: dict[Hashable, _Known] = {}
        self._asked: dict[Hashable, None] = {}
        self._remembered: dict[Hashable, object] = {}
        self._rank = 0
        self._outset: FreeCapacity | None = None

    @classmethod
    def of(cls, columns: NodeSnapshot) -> "FreeCapacity":
        """Return all the room that the nodes have."""
        return cls(columns, columns.free)

    @property
    def free(self) -> Amounts:
        """Return what is free, resources x nodes; never to be written."""
        if isinstance(self._free, _Taken):
            self._free = self._free.left()
        return self._free

    @property
    def outset(self) -> "FreeCapacity":
        """Return the room before the pods of the current gang took from it."""
        return self._outset or self

    def for_next(self) -> "FreeCapacity":
        """Return the same room as the next gang finds it."""
        if self._outset is None:
            return self
        return self._changed_to(self._free, self.ports, NOWHERE, self._rank, None)

    def left(self, resource: str) -> Amounts | None:
        """Return what is left of a resource on each node; None of one that no node has."""
        if is_port(resource):
            return left_of_port(resource, self.ports, self.columns.index)
        row = self.columns.row.get(resource)
        return None if row is None else self.free[row]

    def counts(self, shape: PodShape) -> Amounts:
        """Return how many pods of the shape fit on each node.

        The array is shared, never to be written. Of a shape that is held to a domain nothing is
        counted that was not counted without.
        """
        if shape.restrictions.topology:
            return self.remembered(("inside", shape.fitting), lambda: self._inside(shape))
        return self.per_node(shape.fitting, lambda at: self.counted(shape, at))

    def _inside(self, shape: PodShape) -> Amounts:
        anywhere = self.counts(in_any_domain(shape))
        return anywhere * bounded(shape.restrictions.topology, self.columns.traits)

    def _derived(self, derive: Callable[[At], NDArray[V]]) -> NDArray[V]:
        """Ask for all nodes, in blocks small enough for what is derived on the way to be cached."""
        nodes = self.columns.allocatable.shape[1]
        if nodes <= BLOCK:
            return derive(slice(None))
        blocks = [derive(slice(at, at + BLOCK)) for at in range(0, nodes, BLOCK)]
        return np.concatenate(blocks, axis=-1)

    def counted(self, shape: PodShape, at: At, beside: PodShape | None = None) -> Amounts:
        """Return how many pods of the shape fit on some nodes, next to one pod of `beside`."""
        taken = () if beside is None else tuple((n, min(a, LIMIT)) for n, a in beside.counted)
        fitting = pods_per_node(shape.counted, self.columns.row, self.free[:, at], taken)
        if shape.ports:
            fitting = np.minimum(fitting, self._by_ports(shape, beside)[at])
        if not is_feasible_everywhere(shape, self.columns):
            fitting *= feasible(shape, self.columns)[at]
        return fitting

    def _by_ports(self, shape: PodShape, beside: PodShape | None) -> Amounts:
        """Return where the host ports of a pod are free, next to one pod of `beside`."""
        there = beside.ports if beside else ()
        return self.remembered(
            ("ports", shape.ports, there),
            lambda: pods_by_ports(shape.ports, self.ports, self.columns.index, there),
        )

    def per_node(self, key: Hashable, derive: Callable[[At], NDArray[V]]) -> NDArray[V]:
        """Return what `derive` says of each node (the last axis), asked anew where it changed.

        What it says may depend on the node and its free amounts alone, and on nothing that the
        key does not name: it is handed on to rooms with other nodes. The array is shared.
        """
        before = self._known.get(key)
        if before is None:
            known, size = self._derived(derive), None
        else:
            known, seen, size = before
            if seen == len(self._changed):
                self._asked[key] = None
                return known
            known = self._renewed(known, self._changed[seen:], derive)
        self._known[key] = _Known(known, len(self._changed), size)
        self._asked[key] = None
        return known

    def _renewed(
        self, known: NDArray[V], changed: tuple[Positions, ...], derive: Callable[[At], NDArray[V]]
    ) -> NDArray[V]:
        if sum(map(len, changed)) >= known.shape[-1]:
            return self._derived(derive)
        at = np.concatenate(changed)
        known = known.copy()
        known[..., at] = derive(at)
        return known

    def _column(self, shape: PodShape) -> Amounts:
        """Return what one pod takes, row by row; a resource without a row fits nowhere anyway."""
        column = np.zeros(len(self.columns.resources), dtype=np.int64)
        for resource, amount in shape.requests:
            if resource in self.columns.row:
                column[self.columns.row[resource]] = min(amount, LIMIT)
        return column

    def takers(self, shape: PodShape) -> Positions:
        """Return the nodes that take at least one pod of the shape."""
        return self.remembered(
            ("takers", shape.fitting), lambda: (self.counts(shape) > 0).nonzero()[0]
        )

    def total(self, shape: PodShape) -> int:
        """Return how many pods of the shape fit in all, if nothing else comes."""
        return self.remembered(("total", shape.fitting), lambda: int(self.counts(shape).sum()))

    def without(self, shape: PodShape, distribution: Distribution) -> "FreeCapacity":
        """Return what is left when these pods have taken theirs."""
        before = self._free
        taken = before if isinstance(before, _Taken) else _Taken(before, ())
        taken = taken.and_(distribution, self._column(shape))
        ports = (
            added(self.ports, self._ports_of(shape, distribution)) if shape.ports else self.ports
        )
        return self._changed_to(taken, ports, distribution.nodes, self._rank, self.outset)

    def _ports_of(
        self, shape: PodShape, distribution: Distribution
    ) -> Iterator[tuple[str, str, int]]:
        """Yield what pods take of host ports, by resource and node."""
        for at, count in zip(distribution.nodes.tolist(), distribution.pods.tolist(), strict=True):
            for resource, amount in shape.ports:
                yield resource, self.columns.names[at], amount * count

    def for_priority(self, priority: int) -> "FreeCapacity":
        """Return the room for pods of this priority: no nominated pods of lower priority count."""
        rank = self.columns.rank(priority)
        if rank == self._rank:
            return self
        given = self.columns.nominated_below(rank) - self.columns.nominated_below(self._rank)
        columns = self.columns
        less = columns.nominated_ports_below(rank)
        more = columns.nominated_ports_below(self._rank)
        ports = added(self.ports, (*((r, node, -n) for r, node, n in less), *more))
        changed, _ = differing(self.ports, ports)
        at = np.union1d(np.flatnonzero(given.any(axis=0)), self._places(changed))
        return self._changed_to(self.free + given, ports, at, rank, None)

    def _places(self, names: Iterable[str]) -> Positions:
        """Return where nodes are; names of others are left out."""
        index = self.columns.index
        return np.array(sorted(index[name] for name in names if name in index), dtype=np.intp)

    def _changed_to(
        self,
        free: "Amounts | _Taken",
        ports: Taken,
        at: Positions,
        rank: int,
        outset: "FreeCapacity | None",
    ) -> "FreeCapacity":
        changed = FreeCapacity(self.columns, self.columns.free, self.grown, ports, self.devices)
        changed._free = free
        changed._rank = rank
        changed._outset = outset
        changed._changed = (*self._changed, at) if len(at) else self._changed
        changed._known = dict(self._known)
        changed._asked = self._asked
        return changed

    def changed_by(self, at: Positions, more: Amounts) -> "FreeCapacity":
        """Return the room with so much more (resources x some nodes, each once) that is free."""
        if not len(at):
            return self
        free = self.free.copy()
        free[:, at] += more
        return self._changed_to(free, self.ports, at, self._rank, None)

    def grown_at(self, at: Positions) -> "FreeCapacity":
        """Return the same room, in which there may be more on some nodes than a cycle ago."""
        if not len(at):
            return self
        more = self._changed_to(self._free, self.ports, NOWHERE, self._rank, None)
        more.grown = np.union1d(self.grown, at)
        return more

    def less(
        self, at: Positions, amounts: Amounts, ports: Taken, devices: DeviceRoom | None
    ) -> "FreeCapacity":
        """Return the room with so much less (resources x some nodes, each once) that is free."""
        free = self.free.copy()
        free[:, at] -= amounts
        return self._changed_to(free, ports, at, self._rank, None).with_devices(devices)

    def with_devices(self, devices: DeviceRoom | None) -> "FreeCapacity":
        """Return the same room with other devices."""
        if devices is self.devices:
            return self
        other = self._changed_to(self._free, self.ports, NOWHERE, self._rank, self._outset)
        other.devices = devices
        return other

    def touched(self, at: Positions) -> "FreeCapacity":
        """Return the room of the same columns, which are a view, now that these nodes changed.

        What was known before too many changes is worked out anew.
        """
        too_much = len(self._known) > KNOWN_KEPT or self._is_too_large(self._known)
        if len(self._changed) >= CHANGES_KEPT or too_much:
            return FreeCapacity.of(self.columns)
        return self._changed_to(self.columns.free, self.columns.ports, at, self._rank, None)

    def moved_to(self, columns: NodeSnapshot) -> "FreeCapacity":
        """Return the room that these columns leave, with what is still known of each node.

        What was not asked for since the last move is forgotten; so is all where other resources
        are counted.
        """
        if self._rank:
            return self.for_priority(LOWEST_PRIORITY).moved_to(columns)
        if columns.resources != self.columns.resources:
            return FreeCapacity(columns, columns.free, np.arange(len(columns.names)))
        same = SameNodes.of(self.columns, columns)
        was = same.carried(self.free)
        changed = np.flatnonzero(np.any(columns.free != was, axis=0))
        more = changed[np.any(columns.free[:, changed] > was[:, changed], axis=0)]
        expected = columns.nominated(), same.found(self.columns.nominated())
        moved = FreeCapacity(columns, columns.free, same.others_and(more, *expected))
        retaken, freed = map(moved._places, differing(self.ports, columns.ports))
        changed, moved.grown = np.union1d(changed, retaken), np.union1d(moved.grown, freed)
        asked = [key for key in self._asked if key in self._known][-KNOWN_KEPT:]
        asked = [] if self._is_too_large(asked) else asked
        seen = {key: self._known[key].seen for key in asked}
        oldest = min(seen.values(), default=len(self._changed))
        before = (same.found(each) for each in self._changed[oldest:])
        moved._changed = (*before, same.others_and(changed))
        moved._known = {
            key: _Known(same.carried(known.of), seen[key] - oldest, known.size)
            for key, known in ((key, self._known[key]) for key in asked)
        }
        return moved

    def _is_too_large(self, keys: Iterable[Hashable]) -> bool:
        return sum(map(self._size, keys)) > ASKED_BYTES

    def _size(self, key: Hashable) -> int:
        """Return how many bytes a key takes; it is weighed once."""
        known = self._known[key]
        if known.size is None:
            known = self._known[key] = known._replace(size=weight(key, ASKED_BYTES))
        return known.size or 0

    def remembered(self, key: Hashable, derive: Callable[[], T]) -> T:
        """Return what `derive` said for this key in this room, calling it only the first time."""
        if key not in self._remembered:
            self._remembered[key] = derive()
        return self._remembered[key]  # type: ignore[return-value] # a key names one derivation


@dataclass(frozen=True, eq=False, slots=True)
class _Taken:
    """A room's free amounts before they are needed; of most rooms they never are.

    `pods` are where they went and what each takes, row by row.
    """

    free: Amounts
    pods: tuple[tuple[Distribution, Amounts], ...]

    def and_(self, distribution: Distribution, column: Amounts) -> "_Taken":
        return _Taken(self.free, (*self.pods, (distribution, column)))

    def left(self) -> Amounts:
        left = self.free.copy()
        for distribution, column in self.pods:
            left[:, distribution.nodes] -= column[:, None] * distribution.pods
        return left
