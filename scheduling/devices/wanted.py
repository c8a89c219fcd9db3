"""What the requests of claims want on one node, checked before the search as kube-scheduler does.

Answers to the first part of Allocate, validateDeviceRequest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scheduling.devices.outcome import NotAllocated, Refusal, Unsupported
from scheduling.devices.pools import Pool, PoolDevice
from scheduling.devices.selection import Rules, Selected, selected
from scheduling.model.devices.resource_claim import (
    MAX_DEVICES,
    AllocationMode,
    ClaimSpec,
    DeviceRequest,
    Request,
)

PRIORITIZED_LIST = "DRAPrioritizedList"


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


WantedClaim = tuple[tuple[Wanted, ...], ...]
"""Per request of a claim its alternatives."""


def wanted_by(
    claim: ClaimSpec, pools: tuple[Pool, ...], devices: Sequence[PoolDevice], rules: Rules
) -> WantedClaim:
    """Return what a claim wants; Refused where kube-scheduler would not begin to search."""
    if claim.unsupported:
        raise Refused(Unsupported(", ".join(claim.unsupported)))
    found = tuple(
        tuple(_alternatives(request, pools, devices, rules)) for request in claim.requests
    )
    if sum(min(each.number for each in request) for request in found) > MAX_DEVICES:
        raise Refused(NotAllocated(Refusal.TOO_MANY_DEVICES))
    return found


def _alternatives(
    request: Request, pools: tuple[Pool, ...], devices: Sequence[PoolDevice], rules: Rules
) -> Iterator[Wanted]:
    if request.first_available and not rules.features.prioritized_list:
        raise Refused(NotAllocated(Refusal.FEATURE_OFF, PRIORITIZED_LIST))
    for asked in request.alternatives:
        _check(asked, rules)
        full = request.name if request.exactly else f"{request.name}/{asked.name}"
        names = frozenset((request.name, full))
        if asked.mode is AllocationMode.EXACT_COUNT:
            yield Wanted(full, names, asked, asked.count)
        else:
            every = _every(asked, pools, devices, rules)
            yield Wanted(full, names, asked, len(every), every)


def _check(asked: DeviceRequest, rules: Rules) -> None:
    if asked.unsupported:
        raise Refused(Unsupported(", ".join(asked.unsupported)))
    if asked.device_class not in rules.classes:
        raise Refused(NotAllocated(Refusal.UNKNOWN_CLASS, asked.device_class))


def _every(
    asked: DeviceRequest, pools: tuple[Pool, ...], devices: Sequence[PoolDevice], rules: Rules
) -> tuple[int, ...]:
    """Return the positions of all devices that are selected, which takes pools that are whole."""
    for pool in pools:
        if pool.unsupported:
            raise Refused(Unsupported(pool.unsupported))
        if pool.incomplete or pool.invalid:
            why = Refusal.POOL_INCOMPLETE if pool.incomplete else Refusal.POOL_INVALID
            raise Refused(NotAllocated(why, "/".join(pool.key)))
    return tuple(
        position
        for position, found in enumerate(devices)
        if _or_refused(selected(asked, found, rules))
    )


def _or_refused(answer: Selected) -> bool:
    if not isinstance(answer, bool):
        raise Refused(answer)
    return answer
