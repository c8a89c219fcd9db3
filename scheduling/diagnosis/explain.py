"""Turns the cause of a failed placement into a refusal with a reason and a message."""

from typing import assert_never

from scheduling.diagnosis import claimed_devices, domain_refusals, refusals
from scheduling.diagnosis.causes import (
    AwaitsBinding,
    Cause,
    DeviceCause,
    DevicesUndecided,
    DevicesUnforeseen,
    DoesNotFit,
    EqualPodsDiffer,
    FitsUnpinned,
    InDomain,
    LimitCause,
    NoDevices,
    NoDomain,
    NoDomainLeft,
    NoLabel,
    NotModelled,
    NoWay,
    ReachUnknown,
    ReplicasCrowded,
    ReplicasShort,
    Scattered,
    SearchEnded,
    SharedDisksCounted,
    TooManyKinds,
    TooManyPorts,
    TopologyCause,
    VolumesUnforeseen,
)
from scheduling.model.verdict import Refusal


def explain(cause: Cause) -> Refusal:
    """Return the refusal that a cause means; equal gangs in the same room are explained once."""
    if isinstance(cause, DeviceCause):
        return _of_devices(cause)
    if isinstance(cause, TopologyCause):
        return _of_topology(cause)
    return _of_limits(cause) if isinstance(cause, LimitCause) else _of_room(cause)


def _of_room(cause: DoesNotFit | SearchEnded | NoWay | InDomain | NoDomain) -> Refusal:
    match cause:
        case DoesNotFit(groups, room, unit):
            key = "no fit", groups, unit
            return room.remembered(key, lambda: refusals.no_fit(groups, room, unit))
        case SearchEnded(groups, room):
            return room.remembered(("undecided", groups), lambda: refusals.undecided(groups, room))
        case NoWay():
            return refusals.no_way(cause.groups, cause.lacks, cause.room)
        case InDomain(domain, inner):
            return domain_refusals.in_domain(domain, explain(inner))
        case NoDomain():
            return domain_refusals.no_domain(cause, explain(cause.cause))
    assert_never(cause)


def _of_devices(cause: DeviceCause) -> Refusal:
    match cause:
        case NoDevices():
            return claimed_devices.no_devices(cause)
        case DevicesUnforeseen(feature):
            return claimed_devices.unforeseen(feature)
        case DevicesUndecided(groups, room, doubt):
            return claimed_devices.undecided(groups, room, doubt)
    assert_never(cause)


def _of_topology(cause: TopologyCause) -> Refusal:
    match cause:
        case NoLabel(keys, pods):
            return domain_refusals.no_label(keys, pods)
        case Scattered(keys, names):
            return domain_refusals.scattered(keys, names)
        case ReachUnknown(pods):
            return domain_refusals.reach_unknown(pods)
        case ReplicasShort():
            return domain_refusals.replicas_short(cause)
        case ReplicasCrowded(groups, keys, room):
            return domain_refusals.replicas_crowded(groups, keys, room)
        case NoDomainLeft(keys, replicas, pod_sets):
            return domain_refusals.no_domain_left(keys, replicas, pod_sets)
    assert_never(cause)


def _of_limits(cause: LimitCause) -> Refusal:
    match cause:
        case NotModelled(groups):
            return refusals.not_modelled(groups)
        case TooManyKinds() | TooManyPorts():
            return _of_size(cause)
        case EqualPodsDiffer(problem):
            return refusals.equal_pods_differ(problem)
        case AwaitsBinding():
            return refusals.awaits_binding()
        case FitsUnpinned(groups):
            return refusals.fits_unpinned(groups)
        case SharedDisksCounted() | VolumesUnforeseen():
            return _of_volumes(cause)
    assert_never(cause)


def _of_size(cause: TooManyKinds | TooManyPorts) -> Refusal:
    if isinstance(cause, TooManyPorts):
        return refusals.too_many_ports(cause.ports)
    return refusals.too_many_kinds(cause.kinds, are_constrained=cause.are_constrained)


def _of_volumes(cause: SharedDisksCounted | VolumesUnforeseen) -> Refusal:
    if isinstance(cause, VolumesUnforeseen):
        return refusals.volumes_unforeseen(cause.claims)
    return refusals.shared_disks_counted(cause.disks)
