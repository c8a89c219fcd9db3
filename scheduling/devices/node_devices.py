"""The devices of one node as the claims of a gang see them, and the pattern they make."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from scheduling.devices.outcome import NotAllocated
from scheduling.devices.pools import Pool, PoolDevice
from scheduling.devices.selection import Rules, Selected, selected, tolerated
from scheduling.devices.steps import StepBudget
from scheduling.model.amounts import MOST
from scheduling.model.devices.resource_claim import AllocationMode, DeviceRequest
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.shape.restrictions import Claims

REACHED_BY_OTHERS = "devices that several nodes reach"


LOOK = 3
"""Steps for a device of a node that was not looked at before: some 10 us."""

PATTERNS_KEPT = 32
"""Kinds of pods for which the pattern of a node is remembered."""


@dataclass(slots=True)
class _Patterns:
    """Patterns of one node by the claims that see them, under one set of rules."""

    rules: Rules | None = None
    of: dict[tuple[Claims, ...], Hashable] = field(default_factory=dict)

    def by(self, rules: Rules) -> dict[tuple[Claims, ...], Hashable]:
        """Return the patterns under these rules; those of other rules are forgotten."""
        if self.rules is not rules:
            self.rules, self.of = rules, {}
        return self.of


@dataclass(slots=True)
class _ByClass:
    """Devices of one node by class, under one set of rules."""

    rules: Rules | None = None
    of: Mapping[str, frozenset[DeviceID]] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeDevices:
    """The pools that one node reaches, and which devices are in use.

    Devices that other nodes reach may be taken by pods there, in an order that is not known, so
    none of them is foreseen for a pod (`of`).
    """

    pools: tuple[Pool, ...]
    in_use: frozenset[DeviceID]

    @classmethod
    def of(cls, pools: Iterable[Pool], in_use: frozenset[DeviceID]) -> "NodeDevices":
        """Return the devices; of those in use the ones that are not here are left aside."""
        own = tuple(map(_held_to_node, pools))
        here = {found.id for pool in own for found in pool.devices}
        return cls(own, in_use & here)

    @cached_property
    def usable(self) -> tuple[PoolDevice, ...]:
        """Return the devices in the order in which they are tried."""
        return tuple(found for pool in self.pools for found in pool.devices)

    def pattern(self, pods: Iterable[Claims], rules: Rules, steps: StepBudget) -> Hashable:
        """Return all that decides what is allocated for such pods: nodes with one are alike.

        It is remembered for some kinds of pods, and costs steps where it is not.
        """
        kinds, known = tuple(dict.fromkeys(filter(None, pods))), self._known.by(rules)
        if kinds not in known:
            steps.spend(LOOK * len(self.usable))
            if len(known) >= PATTERNS_KEPT:
                known.clear()
            known[kinds] = self._pattern(kinds, rules)
        return known[kinds]

    @cached_property
    def _known(self) -> "_Patterns":
        return _Patterns()

    def _pattern(self, pods: Iterable[Claims], rules: Rules) -> Hashable:
        asked = dict.fromkeys(request for claims in pods for request in requests_of(claims))
        names = dict.fromkeys(
            each.attribute for claims in pods for claim in claims for each in claim.constraints
        )
        values: dict[Hashable, int] = {}
        devices = tuple(
            (
                found.id in self.in_use,
                found.unsupported,
                *(_kind(selection(each, found, rules)) for each in asked),
                *(tolerated(each, found, rules.features) for each in asked),
                *(_number(found.device.content.attribute(name), values) for name in names),
            )
            for found in self.usable
        )
        pools = tuple((pool.incomplete, pool.invalid, pool.unsupported) for pool in self.pools)
        return devices, pools

    def by_class(self, rules: Rules) -> Mapping[str, frozenset[DeviceID]]:
        """Return the devices that a claim of each class alone would find, or that are in use.

        It is remembered for the rules that were asked about last. A class without any is left out.
        """
        known = self._classes
        if known.rules is not rules:
            found = {name: frozenset(self._of_class(name, rules)) for name in rules.classes}
            known.rules, known.of = rules, {name: ids for name, ids in found.items() if ids}
        return known.of

    @cached_property
    def _classes(self) -> "_ByClass":
        return _ByClass()

    def _of_class(self, name: str, rules: Rules) -> Iterator[DeviceID]:
        asked = DeviceRequest(name, name)
        for pool in self.pools:
            for found in () if pool.incomplete or pool.invalid else pool.devices:
                known = not found.unsupported and tolerated(asked, found, rules.features)
                is_counted = known or found.id in self.in_use
                if is_counted and selection(asked, found, rules) is True:
                    yield found.id

    def most(self, claims: Claims, rules: Rules) -> int:
        """Return a number of pods with these claims that is not exceeded, in whatever order."""
        needed = sum(
            min(
                1 if each.mode is AllocationMode.ALL else each.count
                for each in request.alternatives
            )
            for claim in claims
            for request in claim.requests
        )
        free = self._free_for(claims, rules) if needed else None
        return MOST if free is None else free // needed

    def _free_for(self, claims: Claims, rules: Rules) -> int | None:
        """Return how many free devices suit a request; None where that is not known."""
        free = 0
        for found in self.usable:
            answers = [selection(asked, found, rules) for asked in requests_of(claims)]
            if not all(isinstance(each, bool) for each in answers):
                return None
            if any(answers):
                if found.unsupported:
                    return None
                free += found.id not in self.in_use
        return free


def requests_of(claims: Claims) -> Iterable[DeviceRequest]:
    """Yield what the claims of a pod ask for, alternatives included."""
    for claim in claims:
        for request in claim.requests:
            yield from request.alternatives


def selection(asked: DeviceRequest, found: PoolDevice, rules: Rules) -> Selected:
    """Say whether a request selects a device; of an unknown class it selects none."""
    return asked.device_class in rules.classes and selected(asked, found, rules)


def _held_to_node(pool: Pool) -> Pool:
    if all(found.local or found.unsupported for found in pool.devices):
        return pool
    devices = (
        found if found.local else replace(found, unsupported=found.unsupported or REACHED_BY_OTHERS)
        for found in pool.devices
    )
    return replace(pool, devices=tuple(devices))


def _kind(answer: Selected) -> Hashable:
    return answer.refusal if isinstance(answer, NotAllocated) else answer


def _number(value: Hashable, values: dict[Hashable, int]) -> int:
    """Number the values as they come: two nodes differ in the values, and not in what is equal."""
    return -1 if value is None else values.setdefault(value, len(values))
