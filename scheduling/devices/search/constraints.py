"""Enforces the constraints of a claim while the search chooses its devices one by one.

Answers to matchAttributeConstraint and distinctAttributeConstraint of kube-scheduler's allocator
(k8s.io/dynamic-resource-allocation, structured/internal/incubating) in Kubernetes 1.36 and 1.37,
which differ in the second.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from scheduling.devices.outcome import Unsupported
from scheduling.devices.pools import PoolDevice
from scheduling.devices.wanted import Refused, Wanted
from scheduling.model.devices.resource_claim import (
    ClaimSpec,
    Constraint,
    DistinctAttribute,
    MatchAttribute,
)
from scheduling.model.devices.resource_slice import Attribute

DISTINCT = (
    "distinctAttribute where versions of kube-scheduler differ (ask for one device in each request)"
)


UNREAD_ATTRIBUTE = "an attribute of a device that is not read"


class Constraining(ABC):
    """A constraint, and what it has met so far."""

    def __init__(self, constraint: Constraint) -> None:
        self._attribute = constraint.attribute
        self._requests = frozenset(constraint.requests)

    def concerns(self, wanted: Wanted) -> bool:
        """Say whether it constrains the devices of a request."""
        return not self._requests or not self._requests.isdisjoint(wanted.names)

    def add(self, wanted: Wanted, found: PoolDevice) -> bool:
        """Note a device of a request, if it may be there beside those before.

        Refused where the attribute is there and not read: it is not known whether it may.
        """
        if found.device.content.is_unread(self._attribute):
            raise Refused(Unsupported(found.unsupported or UNREAD_ATTRIBUTE))
        value = found.device.content.attribute(self._attribute)
        return value is not None and self._add(wanted, value)

    @abstractmethod
    def _add(self, wanted: Wanted, value: Attribute) -> bool:
        """Note a value, if it may be."""

    @abstractmethod
    def remove(self, wanted: Wanted) -> None:
        """Forget the last device, which is of this request."""


class _Matching(Constraining):
    """All devices have one value."""

    _value: Attribute | None = None
    _devices = 0

    def _add(self, wanted: Wanted, value: Attribute) -> bool:  # noqa: ARG002 - as the others
        if self._devices and value != self._value:
            return False
        self._value = value
        self._devices += 1
        return True

    def remove(self, wanted: Wanted) -> None:  # noqa: ARG002 - as the others
        """Forget the last device."""
        self._devices -= 1


class _Distinct(Constraining):
    """No two devices have one value, as since Kubernetes 1.37."""

    def __init__(self, constraint: Constraint) -> None:
        super().__init__(constraint)
        self._values: list[Attribute] = []

    def _add(self, wanted: Wanted, value: Attribute) -> bool:  # noqa: ARG002 - as the others
        if value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self, wanted: Wanted) -> None:  # noqa: ARG002 - as the others
        """Forget the last device."""
        self._values.pop()


class _DistinctRequests(Constraining):
    """The same, but of each request the last value alone is remembered, as in Kubernetes 1.36."""

    def __init__(self, constraint: Constraint) -> None:
        super().__init__(constraint)
        self._values: dict[str, Attribute] = {}

    def _add(self, wanted: Wanted, value: Attribute) -> bool:
        if value in self._values.values():
            return False
        self._values[wanted.request] = value
        return True

    def remove(self, wanted: Wanted) -> None:
        """Forget the value of this request."""
        self._values.pop(wanted.request, None)


Reading = Callable[[Constraint], Constraining]


def _reading(distinct: Callable[[Constraint], Constraining]) -> Reading:
    return lambda each: _Matching(each) if isinstance(each, MatchAttribute) else distinct(each)


def readings(claims: Iterable[ClaimSpec]) -> Sequence[Reading]:
    """Return how kube-scheduler may keep to the constraints of some claims, by its version."""
    every = (each for claim in claims for each in claim.constraints)
    differ = any(isinstance(each, DistinctAttribute) for each in every)
    found = (_reading(_Distinct), _reading(_DistinctRequests))
    return found if differ else found[:1]
