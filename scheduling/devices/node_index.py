"""Caches each node's devices, and which nodes are alike, from one cycle to the next."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from operator import is_
from typing import NamedTuple

import numpy as np

from scheduling.devices.node_devices import LOOK, NodeDevices
from scheduling.devices.node_sketch import in_use_on, outline_of, texts_of
from scheduling.devices.pools import PoolKey, SliceIndex, Taken, by_pool, gather_pools
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.amounts import MOST, Amounts, Positions
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.devices.resource_slice import DeviceID, ResourceSlice
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

Kinds = tuple[Claims, ...]
"""Claims of pods, each once."""

KINDS_KEPT = 16
"""Kinds of pods for which it is remembered which nodes are alike."""

TEXTS_AT_ONCE = 8
"""Selectors whose reading of a device is no step more than looking at it."""

PATTERNS_KEPT, SKETCHES_KEPT = 4_096, 50_000
"""Patterns of nodes for all kinds of pods together; sketches for one kind."""

Pending = tuple[tuple[Claims, int], ...]
"""Pods on their way to a node, by their claims."""

NONE: frozenset[TakenDevice] = frozenset()


@dataclass(frozen=True, eq=False)
class DeviceFacts:
    """What is known of devices at one moment.

    `taken` are the devices that claims have for themselves. `pending` are, by node, the pods that
    are to come there, of all gangs, whose claims are not allocated. `edition` is another number
    whenever slices, claims or classes changed. `resources` are the extended ones that classes give,
    as far as it is known which class does.
    """

    slices: Collection[ResourceSlice]
    taken: Taken
    rules: Rules
    edition: int
    pending: Mapping[str, Pending] = field(default_factory=dict)
    resources: Collection[str] = ()


class _Known(NamedTuple):
    """The devices of a node, the pools that they are of, and what was taken of these."""

    node: Node
    pools: tuple[PoolKey, ...]
    taken: frozenset[TakenDevice]
    devices: NodeDevices


@dataclass(slots=True)
class _Alike:
    """Which nodes make one pattern for some kinds of pods, by number.

    `row` has the number of each node, `outline` that of its outline, -1 where none is known. `most`
    is by claims and number how many pods with these a node has devices for at most.
    """

    row: Amounts
    outline: Amounts
    outlines: dict[object, int] = field(default_factory=dict)
    numbers: dict[object, int] = field(default_factory=dict)
    sketches: dict[object, int] = field(default_factory=dict)
    most: dict[Claims, dict[int, int]] = field(default_factory=dict)

    def without(self, at: Positions, changed: Positions) -> "_Alike":
        """Return what is known where other nodes may be different; of some the slices changed."""
        row, outline = self.row.copy(), self.outline.copy()
        row[at], outline[changed] = -1, -1
        if len(self.sketches) >= SKETCHES_KEPT:
            return _Alike(row, np.full_like(outline, -1), {}, self.numbers, {}, self.most)
        return _Alike(row, outline, self.outlines, self.numbers, self.sketches, self.most)


class NodeDevicesIndex:
    """The devices of each node, worked out when first asked for.

    What is known by node is in rows over the `nodes` that were asked for last.
    """

    def __init__(self, facts: DeviceFacts, slices: SliceIndex | None = None) -> None:
        """Take the facts, and their slices in order where these are known from before."""
        self.rules = facts.rules
        self.facts = facts
        self.slices = slices or SliceIndex(facts.slices)
        self.taken = facts.taken
        self.found: dict[str, _Known] = {}
        self.nodes: tuple[Node, ...] = ()
        self.index: Mapping[str, int] = {}
        self.patterns: dict[Kinds, _Alike] = {}
        self.examples: list[NodeDevices] = []
        self.left: Amounts | None = None
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
        slices = () if same else _changed(self.facts, facts)
        named = all(each.access and each.access.node_name for each in slices)
        broken = self.slices.broken_counters, later.slices.broken_counters
        if named and broken[0] == broken[1] and facts.rules.features == self.rules.features:
            later.take_over(self, slices)
        return later

    def without_taken(self, devices: frozenset[TakenDevice]) -> "NodeDevicesIndex":
        """Return the index of the same facts once claims give these devices back."""
        later, freed = copy(self), by_pool(devices)
        left = {key: ids - freed[key] for key, ids in self.taken.items() if key in freed}
        later.taken = {**self.taken, **left}
        later.take_over(self, ())
        return later

    def take_over(self, before: "NodeDevicesIndex", slices: Collection[ResourceSlice]) -> None:
        """Take over what is known of nodes, but of those with other slices, or devices taken.

        `slices` are those that are not there both times, as they were and as they are.
        """
        retaken = _differing(before.taken, self.taken)
        pools = {PoolKey(each.driver, each.pool) for each in slices}
        changed = before.reaching(pools) | self.reaching(pools)
        self.found = {**before.found}
        for name in changed & self.found.keys():
            del self.found[name]
        self.nodes, self.index = before.nodes, before.index
        at, changed_at = self._at(changed | self.reaching(retaken)), self._at(changed)
        self.patterns, self.examples = {}, []
        if self.rules is before.rules and len(before.examples) < PATTERNS_KEPT:
            self.examples = before.examples
            known = before.patterns.items()
            self.patterns = {kinds: each.without(at, changed_at) for kinds, each in known}
        if before.left is not None and not slices:
            given_back = {key: before.taken.get(key, NONE) for key in retaken}
            taken = {key: self.taken.get(key, NONE) for key in retaken}
            self.left = before.left + self._row(given_back) - self._row(taken)

    def reaching(self, pools: Iterable[PoolKey]) -> set[str]:
        """Return the nodes that slices of some pools name; all where one names none."""
        slices = (each for key in pools for each in self.slices.of_pool(key))
        named = {each.access.node_name if each.access else "" for each in slices}
        return named if "" not in named else {*self.index, *self.found}

    def _at(self, names: Iterable[str]) -> Positions:
        return np.array([self.index[each] for each in names if each in self.index], dtype=np.intp)

    def _stand_over(self, nodes: tuple[Node, ...]) -> None:
        """Keep the rows over these nodes."""
        if self.nodes is nodes:
            return
        where = {id(node): at for at, node in enumerate(self.nodes)}
        was = np.array([where.get(id(node), -1) for node in nodes], dtype=np.intp)
        for each in self.patterns.values():
            each.row, each.outline = (np.append(of, -1)[was] for of in (each.row, each.outline))
        self.nodes, self.left = nodes, None
        self.index = {node.name: at for at, node in enumerate(nodes)}

    def numbers_on(self, nodes: tuple[Node, ...]) -> Amounts:
        """Return how many devices each node reaches that no claim has: no fewer than there are.

        The array is shared, never to be written.
        """
        self._stand_over(nodes)
        if self.left is None:
            self.left = self.slices.numbers_on(nodes) - self._row(self.taken)
        return self.left

    def _row(self, devices: Taken) -> Amounts:
        """Return by node how many of these devices are of slices that name it."""
        found: Counter[str] = Counter()
        for key, taken in devices.items():
            for each in self.slices.of_pool(key) if taken else ():
                if each.access is not None and each.access.node_name in self.index:
                    ids = {DeviceID(*key, device.name) for device in each.devices}
                    found[each.access.node_name] += len(ids & taken)
        row = np.zeros(len(self.nodes), dtype=np.int64)
        row[self._at(found)] = list(found.values())
        return row

    def of(self, node: Node) -> NodeDevices:
        """Return the devices that a node reaches."""
        known = self.found.get(node.name)
        if known is None or (known.node is not node and known.node != node):
            reaching = self.slices.may_reach(node.name)
            keys = tuple(dict.fromkeys(PoolKey(each.driver, each.pool) for each in reaching))
            pools = gather_pools(node, self.slices, self.rules.features)
            known = self.found[node.name] = _Known(node, keys, NONE, NodeDevices.of(pools, NONE))
        taken = NONE.union(*(self.taken.get(key, NONE) for key in known.pools))
        if taken != known.taken:
            devices = known.devices.with_in_use(taken)
            known = self.found[node.name] = known._replace(taken=taken, devices=devices)
        return known.devices

    def alike(
        self, kinds: Kinds, nodes: tuple[Node, ...], at: Positions, steps: StepBudget
    ) -> Amounts:
        """Return a number for each node that is asked for, equal where pods find the same devices.

        The number says which of the examples has them, too.
        A node that was not looked at before costs steps for each of its devices.
        """
        self._stand_over(nodes)
        if kinds not in self.patterns:
            while len(self.patterns) >= KINDS_KEPT:
                del self.patterns[next(iter(self.patterns))]
            unknown = np.full(len(nodes), -1, dtype=np.int64)
            self.patterns[kinds] = _Alike(unknown, unknown.copy())
        known = self.patterns[kinds]
        texts = texts_of(kinds, self.rules)
        for each in at[known.row[at] < 0].tolist():
            self._spend_on_texts(texts or (), nodes[each], steps)
            sketch = None if texts is None else self._sketch(known, each, texts)
            if sketch in known.sketches:
                steps.spend(LOOK * self.slices.number_of_devices(nodes[each].name))
                known.row[each] = known.sketches[sketch]
            else:
                known.row[each] = self._number(known, kinds, nodes[each], sketch, steps)
            self.looks += 1
        return known.row[at]

    def _spend_on_texts(self, texts: Sequence[str], node: Node, steps: StepBudget) -> None:
        """Spend steps for what many selectors read of the devices of a node."""
        many = len(texts) // TEXTS_AT_ONCE
        steps.spend(many and many * self.slices.number_of_devices(node.name))

    def most_on(self, kinds: Kinds, claims: Claims, nodes: tuple[Node, ...]) -> Amounts:
        """Return for how many pods with these claims, of these kinds, nodes have devices at most.

        Where a node was not looked at, for pods of these kinds, that is any number.
        """
        self._stand_over(nodes)
        known = self.patterns.get(kinds)
        if known is None:
            return np.full(len(nodes), MOST, dtype=np.int64)
        most = known.most.setdefault(claims, {-1: MOST})
        for number in known.numbers.values() if len(most) <= len(known.numbers) else ():
            if number not in most:
                most[number] = self.examples[number].most(claims, self.rules)
        return _looked_up(most, known.row)

    def _sketch(self, known: _Alike, at: int, texts: tuple[str, ...]) -> Hashable:
        """Return the sketch of a node; None where it is to be looked at."""
        name = self.nodes[at].name
        if known.outline[at] < 0:
            outline = outline_of(name, texts, self.rules.selectors, self.slices)
            if outline is None:
                return None
            known.outline[at] = known.outlines.setdefault(outline, len(known.outlines))
        return int(known.outline[at]), in_use_on(name, self.slices, self.taken)

    def _number(
        self, known: _Alike, kinds: Kinds, node: Node, sketch: Hashable, steps: StepBudget
    ) -> int:
        devices = self.of(node)
        pattern = devices.pattern(kinds, self.rules, steps)
        number = known.numbers.setdefault(pattern, len(self.examples))
        if number == len(self.examples):
            self.examples.append(devices)
        if sketch is not None and devices.is_surely_selected(kinds, self.rules):
            known.sketches[sketch] = number
        return number


def _looked_up(values: Mapping[int, int], at: Amounts) -> Amounts:
    """Return the value for each key; -1 is one of these."""
    table = np.full(max(values) + 2, MOST, dtype=np.int64)
    table[list(values)] = list(values.values())
    return table[at]


def _changed(before: DeviceFacts, after: DeviceFacts) -> list[ResourceSlice]:
    old, new = ({each.name: each for each in facts.slices} for facts in (before, after))
    names = [name for name in old.keys() | new.keys() if old.get(name) is not new.get(name)]
    return [each for of in (old, new) for name in names if (each := of.get(name))]


def _are_same(these: Collection[ResourceSlice], others: Collection[ResourceSlice]) -> bool:
    return len(these) == len(others) and all(map(is_, these, others))


def _differing(before: Taken, after: Taken) -> list[PoolKey]:
    """Return the pools of which other devices are taken."""
    changed = [key for key, ids in after.items() if before.get(key) is not ids]
    return [*(key for key in changed if before.get(key) != after[key]), *before.keys() - after]
