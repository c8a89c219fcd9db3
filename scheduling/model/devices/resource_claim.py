"""ResourceClaims and DeviceClasses: which devices a pod asks for, and which it was given."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from scheduling.model.constraints import NodeTerm, Toleration
from scheduling.model.devices.capacity import Thousandths
from scheduling.model.devices.resource_slice import DeviceID

MAX_DEVICES = 32
"""A claim is given no more devices (AllocationResultsMaxSize)."""


class AllocationMode(StrEnum):
    """How many of the devices that suit a request are wanted."""

    EXACT_COUNT = "ExactCount"
    ALL = "All"


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass: what all devices of a kind have in common.

    `extended_resource_name` is the resource that pods may ask for in place of a claim, "" where
    the class names none. `selectors` are CEL texts.
    """

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource_name: str = ""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """What one request asks for exactly, or as one of the alternatives of firstAvailable.

    `name` is that of the alternative, or of the request. A device suits if all selectors of the
    class and of the request match, and it has the `capacity`, None where none is asked for.
    Tolerations are of device taints. `unsupported` names what of the request is not modelled (admin
    access), sorted.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    mode: AllocationMode = AllocationMode.EXACT_COUNT
    count: int = 1
    tolerations: tuple[Toleration, ...] = ()
    unsupported: tuple[str, ...] = ()
    capacity: Thousandths | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a claim: `exactly` one, or the first of several alternatives that is met."""

    name: str
    exactly: DeviceRequest | None = None
    first_available: tuple[DeviceRequest, ...] = ()

    @property
    def alternatives(self) -> tuple[DeviceRequest, ...]:
        """Return what may be allocated for it, in order."""
        return self.first_available if self.exactly is None else (self.exactly,)


@dataclass(frozen=True, slots=True)
class MatchAttribute:
    """All devices of these requests (none named: of all) have one value of the attribute.

    An alternative is named REQUEST/ALTERNATIVE, and by its request.
    """

    attribute: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DistinctAttribute:
    """No two devices of these requests have one value of the attribute; all have it."""

    attribute: str
    requests: tuple[str, ...] = ()


Constraint = MatchAttribute | DistinctAttribute


@dataclass(frozen=True)
class ClaimSpec:
    """What a claim asks for; equal specs are one, whoever owns the claims.

    `constraints` are those that are modelled, `unsupported` names what is not, sorted.
    """

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    unsupported: tuple[str, ...] = ()

    def __hash__(self) -> int:
        """Hash once per object."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.requests, self.constraints, self.unsupported))


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """A device given to a request; `request` names an alternative as REQUEST/ALTERNATIVE.

    With admin access it is not taken from others. `consumed` is what a share of it takes, None
    where it is the whole device.
    """

    request: str
    device: DeviceID
    admin_access: bool = False
    consumed: Thousandths | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """The devices that a claim was given; `nodes` are those that reach them, None: all.

    `is_dated`: it says when. kube-scheduler since 1.36 would add that, which the API server refuses
    (allocationTimestamp): no further pod can be bound that uses the claim. `unsupported` names what
    else decides whether a pod may use it, sorted.
    """

    devices: tuple[AllocatedDevice, ...]
    nodes: tuple[NodeTerm, ...] | None = None
    is_dated: bool = True
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A ResourceClaim.

    `owner` is the uid of its controller, "" where it has none: a claim made from a template is
    owned by its pod. `reserved_for` are the uids of its consumers. `deleted`: it is going.
    """

    namespace: str
    name: str
    uid: str
    spec: ClaimSpec
    allocation: Allocation | None = None
    owner: str = ""
    reserved_for: tuple[str, ...] = ()
    deleted: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate:
    """A ResourceClaimTemplate: the spec of the claims that are made from it."""

    namespace: str
    name: str
    uid: str
    spec: ClaimSpec

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name."""
        return self.namespace, self.name


Classes = Mapping[str, DeviceClass]
"""Device classes by name."""
