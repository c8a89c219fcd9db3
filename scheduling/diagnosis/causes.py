"""Why a gang, or a part of its surplus, is not placed: the outcomes of admission, as values.

A cause holds what `explain` needs to put it in words: the groups that it is about, held to the
domain in which they were tried, and the free capacity that they were tried in. Making one costs
nothing; many gangs with surplus wait for long, and are explained only where that is news.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduling.devices.outcome import Doubt, NotAllocated
from scheduling.diagnosis.device_classes import allocated_otherwise
from scheduling.diagnosis.shortfall import wanted_pods
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.pod_topology_spread import Lack
from scheduling.filters.volumes.node_volume_limits import SharedDisk
from scheduling.model.gang import Group
from scheduling.model.pod import PodShape

Groups = tuple[Group, ...]


@dataclass(frozen=True, eq=False, slots=True)
class NotModelled:
    """Pods have constraints that the core does not judge."""

    groups: Groups


@dataclass(frozen=True, eq=False, slots=True)
class TooManyKinds:
    """The gang has too many kinds of pods; fewer are allowed where they have constraints."""

    kinds: int
    are_constrained: bool


@dataclass(frozen=True, eq=False, slots=True)
class TooManyPorts:
    """The pods ask for too many host ports."""

    ports: int


@dataclass(frozen=True, slots=True)
class EqualPodsDiffer:
    """A selector between pods matches some of a number of equal pods and not others."""

    problem: str


@dataclass(frozen=True, slots=True)
class AwaitsBinding:
    """Released pods that are not bound yet count pods of the gang, or the gang counts on them."""


@dataclass(frozen=True, eq=False, slots=True)
class DoesNotFit:
    """Certainly not all of the groups fit; of surplus, not one more `unit` does."""

    groups: Groups
    room: FreeCapacity
    unit: Groups = ()


@dataclass(frozen=True, eq=False, slots=True)
class SearchEnded:
    """The steps were used up before a placement was found or excluded."""

    groups: Groups
    room: FreeCapacity


@dataclass(frozen=True, eq=False, slots=True)
class NoWay:
    """The constraints between the gang's own pods leave no placement.

    `lacks` has by pod set and shape what the best attempt left out.
    """

    groups: Groups
    lacks: Mapping[tuple[str, PodShape], Lack]
    room: FreeCapacity


@dataclass(frozen=True, eq=False, slots=True)
class FitsUnpinned:
    """The pods would fit as they came, but not each pinned to its node."""

    groups: Groups


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain: the values of its keys, and what messages call the pods that are held to it."""

    keys: tuple[str, ...]
    name: tuple[str, ...]
    pods: str


@dataclass(frozen=True, eq=False, slots=True)
class InDomain:
    """What stops pods that are held to a domain."""

    domain: Domain
    cause: "Cause"


@dataclass(frozen=True, eq=False, slots=True)
class NoDomain:
    """No domain takes the pods of the `pod_sets`; `cause` is what stops them in the best one.

    There is no choice of domains where pods of the gang are in one already: it `is_given`. `about`
    are the groups held to the domain.
    """

    domain: Domain
    cause: "Cause"
    pod_sets: tuple[str, ...]
    is_given: bool
    about: Groups


@dataclass(frozen=True, slots=True)
class NoLabel:
    """No node has the labels that make domains."""

    keys: tuple[str, ...]
    pods: str


@dataclass(frozen=True, slots=True)
class Scattered:
    """Pods of the gang are in several domains already (`names`), or in none."""

    keys: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ReachUnknown:
    """No node takes all pods that share a volume, nor is it known which others reach that."""

    pods: str


@dataclass(frozen=True, eq=False, slots=True)
class ReplicasShort:
    """Of the replicas of some pod sets, each of `pods` pods, only so many find a domain.

    `fit` of the `wanted` do, `beside` other pod sets; for the next there is room for `some` of its
    pods in the domain called `name`. `about` are the replicas, as if all were held to that domain.
    """

    groups: Groups
    keys: tuple[str, ...]
    room: FreeCapacity
    pod_sets: tuple[str, ...]
    wanted: int
    fit: int
    pods: int
    some: int
    name: tuple[str, ...]
    beside: tuple[str, ...] = ()
    about: Groups = ()


@dataclass(frozen=True, eq=False, slots=True)
class ReplicasCrowded:
    """The replicas find their domains, but not beside the other pods of the gang."""

    groups: Groups
    keys: tuple[str, ...]
    room: FreeCapacity


@dataclass(frozen=True, slots=True)
class NoDomainLeft:
    """No domain has room for all pods of another replica of the surplus."""

    keys: tuple[str, ...]
    replicas: int
    pod_sets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedDisksCounted:
    """The gang may fit: a shared disk counts here for each pod that mounts it, on a node once."""

    disks: tuple[SharedDisk, ...]


@dataclass(frozen=True, slots=True)
class VolumesUnforeseen:
    """The gang may fit: its claims may be bound to volumes on which it was not to count."""

    claims: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class NoDevices:
    """Room is there, and not all pods get the devices that they claim.

    Of each of the `shapes` at most so many do; `refusals` are what nodes refuse even one for.
    """

    groups: Groups
    room: FreeCapacity
    shapes: tuple[PodShape, ...]
    most: tuple[int, ...]
    refusals: tuple[tuple[NotAllocated, ...], ...]


@dataclass(frozen=True, slots=True)
class DevicesUnforeseen:
    """What pods claim, or what nodes have, is beyond what is modelled of devices."""

    feature: str


@dataclass(frozen=True, eq=False, slots=True)
class DevicesUndecided:
    """Room is there; whether all pods get their devices is not known, and may be later."""

    groups: Groups
    room: FreeCapacity
    doubt: Doubt


DeviceCause = NoDevices | DevicesUnforeseen | DevicesUndecided
"""Room is there, and the devices that pods claim are not, or it is not known."""

LimitCause = (
    NotModelled
    | TooManyKinds
    | TooManyPorts
    | EqualPodsDiffer
    | AwaitsBinding
    | FitsUnpinned
    | SharedDisksCounted
    | VolumesUnforeseen
)
"""Muster cannot judge the gang, or not yet."""

TopologyCause = NoLabel | Scattered | ReachUnknown | ReplicasShort | ReplicasCrowded | NoDomainLeft
"""The domains that pods are to share are missing, or have not enough room."""

Cause = (
    DoesNotFit
    | SearchEnded
    | NoWay
    | InDomain
    | NoDomain
    | LimitCause
    | TopologyCause
    | DeviceCause
)


def is_open(cause: Cause) -> bool:
    """Say whether it is not known if the gang fits (reason Undecided)."""
    match cause:
        case InDomain(cause=inner) | NoDomain(cause=inner):
            return is_open(inner)
    return isinstance(cause, SearchEnded | AwaitsBinding | DevicesUndecided)


def is_unsupported(cause: Cause) -> bool:
    """Say whether the gang cannot be judged (reason Unsupported)."""
    match cause:
        case InDomain(cause=inner) | NoDomain(cause=inner):
            return is_unsupported(inner)
        case DoesNotFit(groups=groups, room=room) | NoWay(groups=groups, room=room):
            claimable = bool(room.columns.claimable)
            return claimable and any(allocated_otherwise(wanted_pods(groups), room))
        case AwaitsBinding():
            return False
    return isinstance(cause, LimitCause | ReachUnknown | DevicesUnforeseen)


def groups_of(cause: Cause) -> Groups:
    """Return the groups held to a domain that a cause is about; none if it is about all nodes."""
    match cause:
        case NoDomain(about=about) | ReplicasShort(about=about):
            return about
        case InDomain(cause=inner):
            return groups_of(inner)
    return ()


def not_modelled(groups: Iterable[Group]) -> NotModelled | None:
    """Return the cause where some of the groups have constraints that are not modelled."""
    found = tuple(group for group in groups if group.shape.unsupported)
    return NotModelled(found) if found else None
