"""The devices that claims use: whole devices, and shares of devices that allow several claims."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from scheduling.model.devices.capacity import Thousandths, added
from scheduling.model.devices.resource_claim import AllocatedDevice, ResourceClaim
from scheduling.model.devices.resource_slice import DeviceID


class Share(NamedTuple):
    """A share of a device; `result` names what gave it, the result of one claim."""

    driver: str
    pool: str
    device: str
    result: str
    consumed: Thousandths

    @property
    def id(self) -> DeviceID:
        """Return the device."""
        return DeviceID(self.driver, self.pool, self.device)


TakenDevice = DeviceID | Share
"""What one result of an allocation takes from others."""


def taken_of(claim: ResourceClaim) -> Iterator[TakenDevice]:
    """Yield the devices, and shares of devices, that a claim takes from others.

    Each result counts, also where two have one shareID: so kube-scheduler adds them up.
    """
    for at, given in enumerate(claim.allocation.devices if claim.allocation else ()):
        if given.consumed is not None and not given.admin_access:
            yield Share(*given.device, f"{claim.namespace}/{claim.name}/{at}", given.consumed)
        elif not given.admin_access:
            yield given.device


@dataclass(frozen=True)
class InUse:
    """The devices that are in use, and of others how much is, by device; equal where both are."""

    devices: frozenset[DeviceID] = frozenset()
    shares: frozenset[tuple[DeviceID, Thousandths]] = frozenset()

    @classmethod
    def of(cls, taken: frozenset[TakenDevice], here: Mapping[DeviceID, bool]) -> "InUse":
        """Return what is taken of the devices that are here; they say whether they are shared.

        A device that is not counts as in use, as it does without DRAConsumableCapacity.
        """
        whole = frozenset(each for each in here if each in taken) if taken else frozenset()
        shares = [each for each in taken if isinstance(each, Share) and each.id in here]
        more = frozenset(each.id for each in shares if not here[each.id])
        sums = ((each.id, each.consumed) for each in shares if here[each.id])
        return cls(whole | more).with_shares(sums)

    def __contains__(self, device: object) -> bool:
        """Say whether a device is no one else's any more."""
        return device in self.devices

    def __bool__(self) -> bool:
        """Say whether anything is in use."""
        return bool(self.devices or self.shares)

    def consumed(self, device: DeviceID) -> Thousandths | None:
        """Return how much of a device is in use by shares; None where there are none."""
        return self._by_device.get(device) if self.shares else None

    def plus(self, given: Iterable[AllocatedDevice]) -> "InUse":
        """Return what is in use once these are given as well."""
        found = list(given)
        whole = {each.device for each in found if each.consumed is None}
        shares = ((each.device, each.consumed) for each in found if each.consumed is not None)
        return replace(self, devices=self.devices | whole).with_shares(shares)

    def with_shares(self, shares: Iterable[tuple[DeviceID, Thousandths]]) -> "InUse":
        """Return what is in use once so much of these devices is as well."""
        sums: dict[DeviceID, Thousandths] = {}
        for device, amounts in shares:
            sums[device] = added(sums.get(device, self.consumed(device) or ()), amounts)
        if not sums:
            return self
        others = {each for each in self.shares if each[0] not in sums}
        return replace(self, shares=frozenset((*others, *sums.items())))

    @cached_property
    def _by_device(self) -> Mapping[DeviceID, Thousandths]:
        return dict(self.shares)


NOTHING = InUse()


def whole(devices: Set[DeviceID]) -> InUse:
    """Return these devices as in use, none of them by shares."""
    return InUse(frozenset(devices))
