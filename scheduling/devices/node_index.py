"""Keeps the devices of each node, and which nodes are alike, from one moment to the next."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.pools import PoolKey, SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.devices.resource_slice import DeviceID, ResourceSlice
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

Kinds = tuple[Claims, ...]
"""Claims of pods, each once."""

KINDS_KEPT = 16
"""Kinds of pods for which it is remembered which nodes are alike."""

Pending = tuple[tuple[Claims, int], ...]
"""Pods on their way to a node, by their claims."""


@dataclass(frozen=True, eq=False)
class DeviceFacts:
    """What is known of devices at one moment.

    `taken` are the devices that claims have for themselves. `pending` are, by node, the pods that
    are to come there, of all gangs, whose claims are not allocated. `edition` is another number
    whenever slices, claims or classes changed. `resources` are the extended ones that classes give,
    as far as it is known which class does.
    """

    slices: Collection[ResourceSlice]
    taken: Collection[TakenDevice]
    rules: Rules
    edition: int
    pending: Mapping[str, Pending] = field(default_factory=dict)
    resources: Collection[str] = ()


class _Known(NamedTuple):
    """The devices of a node, and the pools that they are of."""

    node: Node
    pools: frozenset[PoolKey]
    devices: NodeDevices


class _Stale(NamedTuple):
    """Nodes whose devices may be others, and those of whose devices others are in use."""

    changed: set[str]
    retaken: set[str]


@dataclass(slots=True)
class _Alike:
    """Which nodes make one pattern for some kinds of pods: by name the number of the pattern.

    `row` has the numbers of all `nodes` of one moment, -1 where none is known.
    """

    numbers: dict[object, int] = field(default_factory=dict)
    of: dict[str, tuple[Node, int]] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    row: Amounts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def without(self, names: Collection[str]) -> "_Alike":
        return _Alike(self.numbers, {n: each for n, each in self.of.items() if n not in names})

    def over(self, nodes: tuple[Node, ...]) -> Amounts:
        """Return what is known of these nodes; to be written where more is found."""
        if self.nodes is not nodes:
            found = (self.of.get(node.name) for node in nodes)
            numbers = [
                known[1] if known is not None and known[0] is node else -1
                for node, known in zip(nodes, found, strict=True)
            ]
            self.nodes, self.row = nodes, np.array(numbers, dtype=np.int64)
        return self.row


Taken = Mapping[PoolKey, frozenset[TakenDevice]]

NO_NUMBERS: Final[tuple[tuple[Node, ...], Amounts]] = (), np.zeros(0, dtype=np.int64)


class NodeDevicesIndex:
    """The devices of each node, worked out when first asked for."""

    def __init__(self, facts: DeviceFacts, slices: SliceIndex | None = None) -> None:
        """Take the facts, and their slices in order where these are known from before."""
        self.rules = facts.rules
        self.facts = facts
        self.slices = slices or SliceIndex(facts.slices)
        self.taken: Taken = _by_pool(facts.taken)
        self.found: dict[str, _Known] = {}
        self.patterns: dict[Kinds, _Alike] = {}
        self.numbers = NO_NUMBERS
        self.given_back: tuple[NodeDevicesIndex, Taken] | None = None
        self.looks = 0  # nodes that some pods were looked at for, ever

    def renewed(self, facts: DeviceFacts) -> "NodeDevicesIndex":
        """Return the index of later facts, with what is known of nodes that did not change."""
        if facts.edition == self.facts.edition and facts.rules == self.rules:
            return self
        same = _are_same(facts.slices, self.facts.slices)
        later = NodeDevicesIndex(facts, self.slices if same else None)
        later.looks = self.looks
        if facts.rules == self.rules:
            later.rules = self.rules  # patterns are remembered by the very object
        stale = self._stale(later, () if same else _changed(self.facts, facts))
        if stale is not None:
            later.found = {
                name: later.retaken(each) if name in stale.retaken else each
                for name, each in self.found.items()
                if name not in stale.changed
            }
            if later.rules is self.rules:
                both = stale.changed | stale.retaken
                later.patterns = {
                    kinds: each.without(both) for kinds, each in self.patterns.items()
                }
        return later

    def without_taken(self, devices: frozenset[TakenDevice]) -> "NodeDevicesIndex":
        """Return the index of the same facts once claims give these devices back."""
        later = copy(self)
        later.__dict__.pop("_number_taken", None)
        none = frozenset[TakenDevice]()
        freed = {k: ids & self.taken.get(k, none) for k, ids in _by_pool(devices).items()}
        left = {key: self.taken.get(key, none) - ids for key, ids in freed.items()}
        later.taken = {**self.taken, **left}
        reached = self._reaching(freed.keys())
        later.found = {**self.found, **{n: later.retaken(self.found[n]) for n in reached}}
        later.patterns = {kinds: each.without(reached) for kinds, each in self.patterns.items()}
        later.numbers, later.given_back = NO_NUMBERS, (self, freed)
        return later

    def retaken(self, known: _Known) -> _Known:
        """Return what is known of a node of whose devices others are taken by now."""
        return known._replace(devices=known.devices.with_in_use(self._taken_of(known.pools)))

    def _taken_of(self, keys: Iterable[PoolKey]) -> frozenset[TakenDevice]:
        return frozenset(chain.from_iterable(self.taken.get(key, ()) for key in keys))

    def _stale(self, later: "NodeDevicesIndex", slices: Collection[ResourceSlice]) -> _Stale | None:
        """Return the nodes that may be otherwise later; None where that may be all.

        `slices` are those that are not there both times, as they were and as they are.
        """
        if any(each.access is None or not each.access.node_name for each in slices):
            return None
        if self.slices.broken_counters != later.slices.broken_counters:
            return None
        pools = {PoolKey(each.driver, each.pool) for each in slices}
        taken = {
            key
            for key in self.taken.keys() | later.taken.keys()
            if self.taken.get(key) != later.taken.get(key)
        }
        named = {each.access.node_name for each in slices if each.access}
        return _Stale(named | self._reaching(pools), self._reaching(taken))

    def _reaching(self, pools: Collection[PoolKey]) -> set[str]:
        found = self.found.items() if pools else ()
        return {name for name, each in found if not each.pools.isdisjoint(pools)}

    def numbers_on(self, nodes: tuple[Node, ...], index: Mapping[str, int]) -> Amounts:
        """Return how many devices each node reaches that no claim has: no fewer than there are.

        `index` says where a node stands. The array is shared, never to be written.
        """
        if self.numbers[0] is not nodes:
            self.numbers = nodes, self._left_on(nodes, index)
        return self.numbers[1]

    def _left_on(self, nodes: tuple[Node, ...], index: Mapping[str, int]) -> Amounts:
        if self.given_back is None:
            return _less(self.slices.numbers_on(nodes), self._number_taken, index)
        before, devices = self.given_back
        more = {name: -number for name, number in self._number_of(devices).items()}
        return _less(before.numbers_on(nodes, index), more, index)

    @cached_property
    def _number_taken(self) -> Mapping[str, int]:
        return self._number_of(self.taken)

    def _number_of(self, devices: Taken) -> Mapping[str, int]:
        """Return how many of these devices are of slices that name a node, by that node."""
        found: Counter[str] = Counter()
        for key, taken in devices.items():
            for each in self.slices.of_pool(key):
                if each.access is not None and each.access.node_name:
                    ids = {DeviceID(*key, device.name) for device in each.devices}
                    found[each.access.node_name] += len(ids & taken)
        return found

    def of(self, node: Node) -> NodeDevices:
        """Return the devices that a node reaches."""
        known = self.found.get(node.name)
        if known is None or (known.node is not node and known.node != node):
            known = self.found[node.name] = self._worked_out(node)
        return known.devices

    def _worked_out(self, node: Node) -> _Known:
        reaching = self.slices.may_reach(node.name)
        keys = frozenset(PoolKey(each.driver, each.pool) for each in reaching)
        pools = gather_pools(node, self.slices, self.rules.features)
        return _Known(node, keys, NodeDevices.of(pools, self._taken_of(keys)))

    def alike(
        self, kinds: Kinds, nodes: tuple[Node, ...], at: Positions, steps: StepBudget
    ) -> Amounts:
        """Return a number for each node that is asked for, equal where pods find the same devices.

        A node that was not looked at before costs steps for each of its devices.
        """
        if kinds not in self.patterns:
            while len(self.patterns) >= KINDS_KEPT:
                del self.patterns[next(iter(self.patterns))]
            self.patterns[kinds] = _Alike()
        known = self.patterns[kinds]
        row = known.over(nodes)
        for each in at[row[at] < 0].tolist():
            row[each] = self._number(known, kinds, nodes[each], steps)
        return row[at]

    def _number(self, known: _Alike, kinds: Kinds, node: Node, steps: StepBudget) -> int:
        pattern = self.of(node).pattern(kinds, self.rules, steps)
        number = known.numbers.setdefault(pattern, len(known.numbers))
        known.of[node.name] = node, number
        self.looks += 1
        return number


def _less(numbers: Amounts, taken: Mapping[str, int], index: Mapping[str, int]) -> Amounts:
    found = numbers.copy()
    for name, number in taken.items():
        if name in index:
            found[index[name]] -= number
    return found


def _changed(before: DeviceFacts, after: DeviceFacts) -> list[ResourceSlice]:
    old, new = ({each.name: each for each in facts.slices} for facts in (before, after))
    names = [name for name in old.keys() | new.keys() if old.get(name) is not new.get(name)]
    return [each for of in (old, new) for name in names if (each := of.get(name))]


def _are_same(these: Collection[ResourceSlice], others: Collection[ResourceSlice]) -> bool:
    pairs = zip(these, others, strict=False)
    return len(these) == len(others) and all(one is other for one, other in pairs)


def _by_pool(taken: Iterable[TakenDevice]) -> dict[PoolKey, frozenset[TakenDevice]]:
    found: dict[PoolKey, set[TakenDevice]] = {}
    for device in taken:
        found.setdefault(PoolKey(device.driver, device.pool), set()).add(device)
    return {key: frozenset(devices) for key, devices in found.items()}
