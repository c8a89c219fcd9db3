"""The outcomes of an allocation: devices, a refusal, or no answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from scheduling.model.devices.resource_claim import AllocatedDevice


class Refusal(StrEnum):
    """Why kube-scheduler allocates nothing for a pod on a node."""

    NO_DEVICES = "NoDevices"
    UNKNOWN_CLASS = "UnknownClass"
    SELECTOR_FAILS = "SelectorFails"
    POOL_INCOMPLETE = "PoolIncomplete"
    POOL_INVALID = "PoolInvalid"
    TOO_MANY_DEVICES = "TooManyDevices"
    CONSTRAINT = "Constraint"
    FEATURE_OFF = "FeatureOff"


@dataclass(frozen=True, slots=True)
class Allocated:
    """The devices of each claim, in the order in which kube-scheduler takes them."""

    claims: tuple[tuple[AllocatedDevice, ...], ...]

    @property
    def given(self) -> Iterator[AllocatedDevice]:
        """Yield the devices of all claims."""
        return chain.from_iterable(self.claims)


@dataclass(frozen=True, slots=True)
class NotAllocated:
    """kube-scheduler refuses the node; `subject` names the class, selector or pool, if one is why.

    All but NoDevices are errors to it.
    """

    refusal: Refusal
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """What of the claims or of the devices is not modelled, so that nothing is known."""

    feature: str


class Doubt(StrEnum):
    """Why an answer is not known."""

    STEPS = "the steps of the search were used up"
    ORDER = "no order of release was found in which all devices are allocated"
    OTHERS = "claims of other gangs on the node are not allocated yet"
    SHARED = "a claim that its pods share is not allocated yet"


@dataclass(frozen=True, slots=True)
class Undecided:
    """The answer is not known, and may be later."""

    doubt: Doubt = Doubt.STEPS


Outcome = Allocated | NotAllocated | Unsupported | Undecided
