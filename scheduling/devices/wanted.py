"""Resolves the requests of a claim on one node, with the checks that precede the search.

Answers to the first part of Allocate, validateDeviceRequest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scheduling.devices.outcome import NotAllocated, Refusal, Unsupported
from scheduling.devices.pools import Pool, PoolDevice
from scheduling.devices.selection import Rules, Selected, selected
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.capacity import Thousandths, leaves, taken_by
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import (
    MAX_DEVICES,
    AllocationMode,
    ClaimSpec,
    DeviceRequest,
    Request,
)

PRIORITIZED_LIST = "DRAPrioritizedList"
CONSUMABLE_CAPACITY = "DRAConsumableCapacity"

FULL_SHARED = (
    "mode All where a device that suits has too little capacity left, on which versions of "
    "kube-scheduler differ (ask for a number of devices)"
)
UNREAD_CAPACITY = "a capacity of a device that is not counted in thousandths up to 2^62"


ASKED_AT_ONCE = 4
"""Alternatives that one step is for where they are checked."""


class Refused(Exception):  # noqa: N818 # it ends a search from within, and never leaves the package
    """Ends an allocation: kube-scheduler gives the node up, or what it does is not known."""

    def __init__(self, outcome: NotAllocated | Unsupported) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(frozen=True, eq=False, slots=True)
class Wanted:
    """The devices that one request, or one alternative of it, wants: `number` of them.

    `every` are the positions of the devices that mode All means, None in mode ExactCount. `known`
    remembers by position whether a device is selected.
    """

    name: str
    request: str
    names: frozenset[str]
    asked: DeviceRequest
    number: int
    every: tuple[int, ...] | None = None
    known: dict[int, bool] = field(default_factory=dict)

    def selects(self, position: int, found: PoolDevice, rules: Rules) -> bool:
        """Say whether the device at the position is selected; Refused where a selector fails."""
        if position not in self.known:
            self.known[position] = _or_refused(selected(self.asked, found, rules))
        return self.known[position]

    def takes(self, found: PoolDevice) -> Thousandths | None:
        """Return what the request takes of a device's capacity; None where it does not suit.

        A device that is not shared is asked where the request names a capacity.
        """
        return amounts_of(self.asked, found)


WantedClaim = tuple[tuple[Wanted, ...], ...]
"""Per request of a claim its alternatives."""


def amounts_of(asked: DeviceRequest, found: PoolDevice) -> Thousandths | None:
    """Return what a request takes of a device's capacity; None where it does not suit."""
    if not (found.shared or asked.capacity):
        return ()
    capacities = found.device.capacities
    if capacities is None:
        raise Refused(Unsupported(found.unsupported or UNREAD_CAPACITY))
    return taken_by(asked.capacity or (), capacities)


def wanted_by(
    claim: ClaimSpec,
    pools: tuple[Pool, ...],
    devices: Sequence[PoolDevice],
    in_use: InUse,
    rules: Rules,
    steps: StepBudget,
) -> WantedClaim:
    """Return what a claim wants; Refused where kube-scheduler would not begin to search."""
    if claim.unsupported:
        raise Refused(Unsupported(", ".join(claim.unsupported)))
    steps.spend(sum(len(each.alternatives) for each in claim.requests) // ASKED_AT_ONCE)
    found = tuple(
        tuple(_alternatives(request, pools, devices, in_use, rules, steps))
        for request in claim.requests
    )
    if sum(min(each.number for each in request) for request in found) > MAX_DEVICES:
        raise Refused(NotAllocated(Refusal.TOO_MANY_DEVICES))
    return found


def _alternatives(
    request: Request,
    pools: tuple[Pool, ...],
    devices: Sequence[PoolDevice],
    in_use: InUse,
    rules: Rules,
    steps: StepBudget,
) -> Iterator[Wanted]:
    if request.first_available and not rules.features.prioritized_list:
        raise Refused(NotAllocated(Refusal.FEATURE_OFF, PRIORITIZED_LIST))
    capacity = any(asked.capacity is not None for asked in request.alternatives)
    if capacity and not rules.features.consumable_capacity:
        raise Refused(NotAllocated(Refusal.FEATURE_OFF, CONSUMABLE_CAPACITY))
    for asked in request.alternatives:
        _check(asked, rules)
        full = request.name if request.exactly else f"{request.name}/{asked.name}"
        names = frozenset((request.name, full))
        if asked.mode is AllocationMode.EXACT_COUNT:
            yield Wanted(full, request.name, names, asked, asked.count)
        else:
            every = _every(asked, pools, devices, in_use, rules, steps)
            yield Wanted(full, request.name, names, asked, len(every), every)


def _check(asked: DeviceRequest, rules: Rules) -> None:
    if asked.unsupported:
        raise Refused(Unsupported(", ".join(asked.unsupported)))
    if asked.device_class not in rules.classes:
        raise Refused(NotAllocated(Refusal.UNKNOWN_CLASS, asked.device_class))


def _every(
    asked: DeviceRequest,
    pools: tuple[Pool, ...],
    devices: Sequence[PoolDevice],
    in_use: InUse,
    rules: Rules,
    steps: StepBudget,
) -> tuple[int, ...]:
    """Return the positions of all devices that are selected, which takes pools that are whole.

    Devices without capacity left are none of them to 1.36, and all the same to 1.37.
    """
    for pool in pools:
        if pool.unsupported:
            raise Refused(Unsupported(pool.unsupported))
        if pool.incomplete or pool.invalid:
            why = Refusal.POOL_INCOMPLETE if pool.incomplete else Refusal.POOL_INVALID
            raise Refused(NotAllocated(why, "/".join(pool.key)))
    steps.spend(len(devices))
    return tuple(
        position
        for position, found in enumerate(devices)
        if _or_refused(selected(asked, found, rules)) and _has_capacity(asked, found, in_use)
    )


def _has_capacity(asked: DeviceRequest, found: PoolDevice, in_use: InUse) -> bool:
    amounts, before = amounts_of(asked, found), in_use.consumed(found.id)
    if amounts is None or before is None:
        return amounts is not None
    if not leaves(amounts, before, found.device.capacities or ()):
        raise Refused(Unsupported(FULL_SHARED))
    return True


def _or_refused(answer: Selected) -> bool:
    if not isinstance(answer, bool):
        raise Refused(answer)
    return answer
