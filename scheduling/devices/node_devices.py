"""The devices of one node as a gang's claims see them, and the pattern that equal nodes share."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from scheduling.devices.allocator import Course, EqualPods
from scheduling.devices.outcome import NotAllocated
from scheduling.devices.pools import Pool, PoolDevice, are_open
from scheduling.devices.search.counters import CountersLeft
from scheduling.devices.selection import (
    Rules,
    Selected,
    Selections,
    selected,
    selections,
    tolerated,
)
from scheduling.devices.steps import StepBudget
from scheduling.model.amounts import MOST
from scheduling.model.devices.asked import least_of, requests_of
from scheduling.model.devices.capacity import times
from scheduling.model.devices.in_use import NOTHING, InUse, TakenDevice
from scheduling.model.devices.resource_claim import DeviceRequest
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.shape.restrictions import Claims

REACHED_BY_OTHERS = "devices that several nodes reach"


LOOK = 3
"""Steps for a device of a node that was not looked at before: some 10 us.

As many are for a selector that is asked about it.
"""

AT_ONCE = 16
"""Devices that one step is for where a request was asked about them before."""

PATTERNS_KEPT = 32
"""Kinds of pods for which the pattern of a node is remembered."""


class _OfClass(NamedTuple):
    """Devices of one class: those that a claim may be given, and those it may only have already.

    Of the `partitions` not all may be given together.
    """

    free: frozenset[DeviceID]
    partitions: tuple[PoolDevice, ...]
    others: frozenset[DeviceID]


@dataclass(slots=True)
class _Remembered:
    """What of the devices of one node does not depend on which are in use, under one set of rules.

    `answers` are by what is asked, in the order of the devices, `selected` by the claims that see
    them, `classes` by name.
    """

    rules: Rules | None = None
    answers: dict[DeviceRequest, tuple[Selected, ...]] = field(default_factory=dict)
    selected: dict[tuple[Claims, ...], Hashable] = field(default_factory=dict)
    classes: Mapping[str, _OfClass] | None = None

    def by(self, rules: Rules) -> "_Remembered":
        """Return what is known under these rules; what others made of it is forgotten."""
        if self.rules is not rules:
            self.rules, self.answers, self.selected, self.classes = rules, {}, {}, None
        return self


@dataclass(slots=True)
class _Now:
    """What depends on which devices are in use, under one set of rules.

    `courses` and `most` are by the claims of a pod: what is allocated to equal ones.
    """

    rules: Rules | None = None
    by_class: Mapping[str, frozenset[DeviceID]] | None = None
    courses: dict[Claims, Course] = field(default_factory=dict)
    most: dict[Claims, int] = field(default_factory=dict)

    def by(self, rules: Rules) -> "_Now":
        """Return what is known under these rules; what others made of it is forgotten."""
        if self.rules is not rules:
            self.rules, self.by_class, self.courses, self.most = rules, None, {}, {}
        return self


@dataclass(frozen=True)
class NodeDevices:
    """The pools that one node reaches, and which devices are in use.

    Devices that other nodes reach may be taken by pods there, in an order that is not known, so
    none of them is foreseen for a pod (`of`): they are counted, if at all.
    """

    pools: tuple[Pool, ...]
    in_use: InUse
    _remembered: _Remembered = field(default_factory=_Remembered, compare=False, repr=False)

    @classmethod
    def of(cls, pools: Iterable[Pool], taken: frozenset[TakenDevice]) -> "NodeDevices":
        """Return the devices; what is taken of devices that are not here is left aside."""
        own = tuple(map(_held_to_node, pools))
        return cls(own, NOTHING).with_in_use(taken)

    def with_in_use(self, taken: frozenset[TakenDevice]) -> "NodeDevices":
        """Return the same devices, of which others are in use; what is remembered they share."""
        if not taken:
            return self if not self.in_use else replace(self, in_use=NOTHING)
        here = {found.id: found.shared for pool in self.pools for found in pool.devices}
        return replace(self, in_use=InUse.of(taken, here))

    @cached_property
    def usable(self) -> tuple[PoolDevice, ...]:
        """Return the devices in the order in which they are tried."""
        return tuple(found for pool in self.pools for found in pool.devices)

    @property
    def pools_of_all(self) -> tuple[Pool, ...]:
        """Return the pools where it is known what pods on other nodes take before."""
        return tuple(map(_freed, self.pools))

    def pattern(self, pods: Iterable[Claims], rules: Rules, steps: StepBudget) -> Hashable:
        """Return all that decides what is allocated for such pods: nodes with one are alike.

        It is remembered for some kinds of pods, and costs steps where it is not.
        """
        kinds = tuple(dict.fromkeys(filter(None, pods)))
        known = self._remembered.by(rules).selected
        if kinds not in known:
            steps.spend(LOOK * len(self.usable))
            self.look(kinds, rules, steps)
            if len(known) >= PATTERNS_KEPT:
                known.clear()
            known[kinds] = self._selected(kinds, rules)
        return self._used, known[kinds]

    @cached_property
    def _used(self) -> tuple[Hashable, ...]:
        whole = self.in_use.devices
        if not self.in_use.shares:
            return tuple(found.id in whole for found in self.usable)
        return tuple((each.id in whole, self.in_use.consumed(each.id)) for each in self.usable)

    def selections(self, asked: DeviceRequest, rules: Rules) -> tuple[Selected, ...]:
        """Say of each of the usable devices whether a request selects it."""
        return self._selections(asked, rules).answers

    def _selections(self, asked: DeviceRequest, rules: Rules) -> Selections:
        known = self._remembered.by(rules).answers
        if asked in known:
            return Selections(known[asked])
        if len(known) >= PATTERNS_KEPT:
            known.clear()
        found = selections(asked, self.usable, rules)
        known[asked] = found.answers
        return found

    def look(self, pods: Iterable[Claims], rules: Rules, steps: StepBudget) -> None:
        """Spend steps for all that such pods ask for, and for what selectors were not asked yet."""
        for asked in dict.fromkeys(request for claims in pods for request in requests_of(claims)):
            steps.spend(1 + len(self.usable) // AT_ONCE)
            steps.spend(LOOK * self._selections(asked, rules).evaluated)

    def is_surely_selected(self, pods: Iterable[Claims], rules: Rules) -> bool:
        """Say whether of each device it is known if what the pods ask for selects it."""
        asked = (request for claims in pods for request in requests_of(claims))
        return all(
            isinstance(said, bool) for each in asked for said in self.selections(each, rules)
        )

    def _selected(self, pods: Iterable[Claims], rules: Rules) -> Hashable:
        asked = dict.fromkeys(request for claims in pods for request in requests_of(claims))
        names = dict.fromkeys(
            each.attribute for claims in pods for claim in claims for each in claim.constraints
        )
        usable, features = self.usable, rules.features
        tainted = asked if any(found.device.taints for found in usable) else ()
        devices = (
            tuple([found.unsupported for found in usable]),
            tuple([tuple(map(_kind, self.selections(each, rules))) for each in asked]),
            tuple([tuple([tolerated(each, f, features) for f in usable]) for each in tainted]),
            tuple([_numbered(f.device.content.attribute(name) for f in usable) for name in names]),
            tuple([tuple([f.device.content.is_unread(name) for f in usable]) for name in names]),
            tuple(self._consumption) if self.has_counters else (),
            tuple(self._far) if self.has_far else (),
            tuple(self._capacities) if self._has_shared or _ask_for_capacity(asked) else (),
        )
        pools = tuple(
            (pool.incomplete, pool.invalid, pool.unsupported, pool.counters) for pool in self.pools
        )
        return devices, pools

    @cached_property
    def has_counters(self) -> bool:
        """Say whether devices may consume counters."""
        consumes = any(found.device.consumes_counters for found in self.usable)
        return consumes or any(pool.counters for pool in self.pools)

    @cached_property
    def has_far(self) -> bool:
        """Say whether the node reaches devices that others reach as well."""
        return not all(found.local for found in self.usable)

    @property
    def _far(self) -> Iterable[Hashable]:
        """Yield by device which one it is, where pods on other nodes may take it."""
        return (None if found.local else found.id for found in self.usable)

    @cached_property
    def _has_shared(self) -> bool:
        return any(found.shared for found in self.usable)

    @property
    def _capacities(self) -> Iterable[Hashable]:
        return ((found.shared, found.device.capacities) for found in self.usable)

    @property
    def _consumption(self) -> Iterable[Hashable]:
        """Yield by device what it consumes, and of which pool: each has counters of its own."""
        for at, pool in enumerate(self.pools):
            yield from ((at, found.device.consumes_counters) for found in pool.devices)

    def by_class(self, rules: Rules) -> Mapping[str, frozenset[DeviceID]]:
        """Return the devices that claims of each class alone would find, or that are in use.

        Of partitions it has those that claims find one after the other. Devices that claims share
        or that other nodes reach are left out, and so is a class without any device.
        """
        now = self._now.by(rules)
        if now.by_class is None:
            now.by_class = self._by_class(rules)
        return now.by_class

    @cached_property
    def _now(self) -> _Now:
        return _Now()

    def _by_class(self, rules: Rules) -> Mapping[str, frozenset[DeviceID]]:
        known = self._remembered.by(rules)
        if known.classes is None:
            known.classes = {name: self._of_class(name, rules) for name in rules.classes}
        found = ((name, self._found_by(of, rules)) for name, of in known.classes.items())
        return {name: ids for name, ids in found if ids}

    def _found_by(self, of: _OfClass, rules: Rules) -> frozenset[DeviceID]:
        left = CountersLeft(self.pools, self.in_use, rules.features)
        parts = (each for each in of.partitions if each.id in self.in_use or left.take(each))
        return of.free | (of.others & self.in_use.devices) | {each.id for each in parts}

    def _of_class(self, name: str, rules: Rules) -> _OfClass:
        asked = DeviceRequest(name, name)
        pools = (pool for pool in self.pools if not (pool.incomplete or pool.invalid))
        found = (device for pool in pools for device in pool.devices)
        own = (each for each in found if each.local and not each.shared)
        mine = [each for each in own if selection(asked, each, rules) is True]
        free = [
            each for each in mine if not each.unsupported and tolerated(asked, each, rules.features)
        ]
        partitions = tuple(each for each in free if each.device.consumes_counters)
        ids = frozenset(each.id for each in free)
        return _OfClass(
            ids - {each.id for each in partitions},
            partitions,
            frozenset(each.id for each in mine) - ids,
        )

    def most(self, claims: Claims, rules: Rules) -> int:
        """Return a number of pods with these claims that is not exceeded, in whatever order."""
        known = self._now.by(rules).most
        if claims not in known:
            if len(known) >= PATTERNS_KEPT:
                known.clear()
            known[claims] = self._most(claims, rules)
        return known[claims]

    def _most(self, claims: Claims, rules: Rules) -> int:
        needed = least_of(claims)
        free = self._free_for(claims, rules) if needed else None
        return MOST if free is None else free // needed

    def equal_pods(self, claims: Claims, most: int, rules: Rules, steps: StepBudget) -> EqualPods:
        """Return how many pods with these claims get devices, of so many and none but them."""
        known = self._now.by(rules).courses
        if claims not in known:
            if len(known) >= PATTERNS_KEPT:
                known.clear()
            known[claims] = Course(claims, self.pools, self.in_use)
        return known[claims].up_to(most, rules, steps)

    def _free_for(self, claims: Claims, rules: Rules) -> int | None:
        """Return how often a request finds a device; None where that is not known."""
        if are_open(self.pools, rules.features):
            return None
        free, left = 0, CountersLeft(self.pools, self.in_use, rules.features)
        requests = list(requests_of(claims))
        by_request = [self.selections(asked, rules) for asked in requests]
        for found, *answers in zip(self.usable, *by_request, strict=True):
            if not all(isinstance(each, bool) for each in answers):
                return None
            if any(answers):
                if found.unsupported:
                    return None
                those = [r for r, a in zip(requests, answers, strict=True) if a]
                free += self._times(found, those) if self._has_counters_left(found, left) else 0
        return free

    def _has_counters_left(self, found: PoolDevice, left: CountersLeft) -> bool:
        """Say whether what others have of the counters lets a device be given, if alone."""
        is_charged = found.shared and self.in_use.consumed(found.id) is not None
        if is_charged or found.id in self.in_use:
            return True
        has_room = left.take(found)
        if has_room:
            left.give_back(found)
        return has_room

    def _times(self, found: PoolDevice, requests: Iterable[DeviceRequest]) -> int:
        """Return a number of some requests that a device is not enough for more of."""
        if not found.shared or found.id in self.in_use:
            return int(found.id not in self.in_use)
        before, capacities = self.in_use.consumed(found.id) or (), found.device.capacities or ()
        return times((each.capacity or () for each in requests), before, capacities)


def selection(asked: DeviceRequest, found: PoolDevice, rules: Rules) -> Selected:
    """Say whether a request selects a device; of an unknown class it selects none."""
    return asked.device_class in rules.classes and selected(asked, found, rules)


def _ask_for_capacity(requests: Iterable[DeviceRequest]) -> bool:
    return any(each.capacity for each in requests)


def _held_to_node(pool: Pool) -> Pool:
    if all(found.local or found.unsupported for found in pool.devices):
        return pool
    devices = (
        found if found.local else found._replace(unsupported=found.unsupported or REACHED_BY_OTHERS)
        for found in pool.devices
    )
    return replace(pool, devices=tuple(devices))


def _freed(pool: Pool) -> Pool:
    """Return a pool whose devices may be given though other nodes reach them."""
    if all(found.unsupported != REACHED_BY_OTHERS for found in pool.devices):
        return pool
    devices = (
        found._replace(unsupported="") if found.unsupported == REACHED_BY_OTHERS else found
        for found in pool.devices
    )
    return replace(pool, devices=tuple(devices))


def _kind(answer: Selected) -> Hashable:
    return answer.refusal if isinstance(answer, NotAllocated) else answer


def _numbered(values: Iterable[Hashable]) -> tuple[int, ...]:
    """Number the values as they come: two nodes differ in the values, and not in what is equal."""
    known: dict[Hashable, int] = {}
    return tuple(-1 if each is None else known.setdefault(each, len(known)) for each in values)
