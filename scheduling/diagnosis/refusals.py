"""Writes refusals of gangs that do not fit, or cannot be judged.

"2 of 4 w fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; 3 are free, and
those that fit leave 0": as much of the gang is placed as fits (`partial_fit`), and the amounts are
those of the feasible nodes. Pods that would not fit on empty nodes either (`never_fits`) have other
words, since waiting does not help. A message depends on nothing but the gang and the room, so it
stays the same while they do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scheduling.diagnosis import never_fits
from scheduling.diagnosis.amount_texts import bounded, shown
from scheduling.diagnosis.device_classes import allocated_otherwise
from scheduling.diagnosis.partial_fit import (
    Wanted,
    attempted,
    is_short_alone,
    per_shape,
)
from scheduling.diagnosis.shortfall import (
    how_many_fit,
    never_said,
    numbers_alone,
    numbers_of,
    sentences,
    wanted_pods,
)
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.pod_topology_spread import Lack, Stop
from scheduling.filters.volumes.claim_effect import BIND_IT, spoken
from scheduling.filters.volumes.node_volume_limits import SharedDisk
from scheduling.model.constraints import SpreadConstraint
from scheduling.model.gang import Group
from scheduling.model.pod import PodShape
from scheduling.model.predicates import Predicate
from scheduling.model.verdict import PodSetRefusal, Reason, Refusal
from scheduling.placement.independent import in_order

MOST_KINDS = 256
MOST_CONSTRAINED_KINDS = 64
"""How many kinds of pods (pod set and shape) a gang may have, and where they have inter-pod
constraints."""

_MAY_CONFLICT = (
    "capacity suffices, but affinity or spread between the gang's own pods may be unsatisfiable"
)

MOST_PORTS = 128
"""How many host ports all kinds of pods of a gang may ask for; one on an address counts twice."""


def not_modelled(groups: Iterable[Group]) -> Refusal:
    """Name the constraints of the groups that the core does not judge."""
    asked: dict[str, set[str]] = {}
    for group in in_order(groups):
        if group.shape.unsupported:
            asked.setdefault(group.pod_set, set()).update(group.shape.unsupported)
    said = [f"{pod_set}: {', '.join(sorted(names))}" for pod_set, names in asked.items()]
    return Refusal(Reason.UNSUPPORTED, bounded(["not supported by Muster", *said], "; "))


def too_many_kinds(kinds: int, *, are_constrained: bool) -> Refusal:
    """Refuse a gang with more kinds of pods than can be judged in a moment.

    Each kind costs a look at all nodes, and at all other kinds where they have constraints.
    """
    what = " that have affinity or topology spread constraints" if are_constrained else ""
    most = MOST_CONSTRAINED_KINDS if are_constrained else MOST_KINDS
    said = f"{kinds} kinds of pods{what}, more than {most}"
    remedy = "make the pods of a group equal, or use fewer groups"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said} ({remedy})")


def too_many_ports(ports: int) -> Refusal:
    """Refuse a gang that asks for more host ports than can be judged in a moment."""
    said = f"{ports} host ports in all kinds of its pods, more than {MOST_PORTS} (use fewer)"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said}")


def equal_pods_differ(problem: str) -> Refusal:
    """Refuse a gang of which a selector matches some of a number of equal pods and not others."""
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {problem}")


def shared_disks_counted(disks: Iterable[SharedDisk]) -> Refusal:
    """Refuse a gang that may fit only because of disks that its pods share."""
    named = ", ".join(f"{shown(spoken(mount))} of {driver}" for driver, mount in sorted(disks))
    said = (
        "not supported by Muster; a disk that several pods mount is counted once for each of them, "
        f"and nodes can attach too few by that count (NodeVolumeLimits): {named} (let fewer pods "
        "mount it, or detach other volumes of the driver)"
    )
    return Refusal(Reason.UNSUPPORTED, bounded([said], ""))


def volumes_unforeseen(claims: Iterable[str]) -> Refusal:
    """Refuse a gang that fits only if kube-scheduler binds its claims to certain free volumes."""
    said = (
        "not supported by Muster; where free volumes are enough in any case, the gang does not "
        f"fit: {', '.join(map(shown, claims))} ({BIND_IT})"
    )
    return Refusal(Reason.UNSUPPORTED, bounded([said], ""))


def no_fit(groups: Iterable[Group], room: FreeCapacity, unit: Sequence[Group] = ()) -> Refusal:
    """Explain that the groups certainly do not fit, or not one more `unit` of a surplus.

    Of a surplus only one unit is placed at once, so only what is too large for one never fits.
    """
    wanted = wanted_pods(groups)
    attempt = attempted(wanted, room)
    numbers = numbers_of(attempt)
    said = sentences(attempt, numbers)
    if any(not each.resource for each in numbers if each.fit < each.wanted):
        return _refusal(Reason.NO_FEASIBLE_NODE, said, wanted, room, numbers)
    at_once = wanted_pods(unit) if unit else wanted
    never = _never(at_once, room, numbers)
    return never or _refusal(Reason.INSUFFICIENT_RESOURCES, said, wanted, room, numbers)


def never(groups: Iterable[Group], room: FreeCapacity) -> Refusal | None:
    """Explain that the nodes could not hold the groups even if empty; None where they might."""
    return _never(wanted_pods(groups), room, ())


def _never(
    wanted: Sequence[Wanted], room: FreeCapacity, numbers: tuple[PodSetRefusal, ...]
) -> Refusal | None:
    causes = never_fits.never(tuple(per_shape(wanted).items()), room.columns)
    said = [never_said(cause, wanted, room) for cause in causes]
    return Refusal(Reason.NEVER_FITS, bounded(said, ". "), numbers) if said else None


def no_way(
    groups: Iterable[Group], lacks: Mapping[tuple[str, PodShape], Lack], room: FreeCapacity
) -> Refusal:
    """Explain that the constraints between the pods of the gang leave no way to place them all.

    `lacks` says per pod set and shape what the best attempt left out.
    """
    wanted = wanted_pods(groups)
    if is_short_alone(wanted, room):
        return no_fit(groups, room)
    numbers = numbers_alone(wanted, room)
    found = [lacks.get((pod_set, shape), Lack(0)) for pod_set, shape, _ in wanted]
    said = [
        f"{how_many_fit(pod_set, count, count - lack.pods)}: {_why(lack)}"
        for (pod_set, _, count), lack in zip(wanted, found, strict=True)
        if lack.pods
    ]
    stopped = tuple(_stopped(*pair) for pair in zip(numbers, found, strict=True))
    return _refusal(Reason.NO_FEASIBLE_NODE, said, wanted, room, stopped)


def _why(lack: Lack) -> str:
    if lack.stop is None:
        return (
            "required affinity or anti-affinity between the gang's own pods leaves no node with "
            "room for more"
        )
    return _stop(lack.stop)


def _stop(stop: Stop) -> str:
    """Say which spread constraint stops the next pod, and what would let it go on."""
    constraint = stop.constraint
    most, key = stop.least + constraint.max_skew, constraint.counted.key
    nodes = "1 node" if stop.nodes == 1 else f"{stop.nodes} nodes"
    said = f"topology spread over {key} (maxSkew {constraint.max_skew}) rules out {nodes} for more"
    limit = f"no {key} may hold more than {most}"
    if stop.name:
        return f"{said}: {shown(stop.name)} holds {stop.least}, so {limit}"
    if stop.found < constraint.min_domains:
        domains = f"{stop.found} of {constraint.min_domains} domains (minDomains) exist"
        return f"{said}: {domains}, so {limit}"
    return f"{said}: {limit}"


def _stopped(numbers: PodSetRefusal, lack: Lack) -> PodSetRefusal:
    """Correct the numbers of a pod set for what a spread constraint keeps from it."""
    if lack.stop is None:
        return numbers
    refused = (*numbers.rejections, (str(Predicate.SPREAD), lack.stop.nodes))
    return replace(numbers, fit=numbers.wanted - lack.pods, rejections=_summed(refused))


def _summed(counts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return tuple(sums.items())


def fits_unpinned(groups: Iterable[Group]) -> Refusal:
    """Refuse a gang whose pods would fit as they came, but not each pinned to its node."""
    said = [
        f"{pod_set}: topologySpreadConstraints over {shown(constraint.counted.key)} with "
        f"{_what_binds(constraint)}"
        for pod_set, constraint in dict.fromkeys(
            (group.pod_set, constraint)
            for group in in_order(groups)
            for constraint in group.shape.spread
            if constraint.binds_pinned
        )
    ]
    head = "not supported by Muster; the pods fit as created, but not once pinned to their nodes"
    return Refusal(Reason.UNSUPPORTED, bounded([head, *said], "; "))


def _what_binds(constraint: SpreadConstraint) -> str:
    if constraint.honors_affinity:
        return f"minDomains {constraint.min_domains} (leave minDomains out)"
    return "nodeAffinityPolicy Ignore (use Honor)"


def awaits_binding() -> Refusal:
    """Put a gang off whose pods would disturb others that are not bound yet, or be refused."""
    return Refusal(
        Reason.UNDECIDED,
        "waits until released pods are bound: their topology spread constraints count pods of this "
        "gang, or the affinity of this gang depends on them",
    )


def _refusal(
    reason: Reason,
    said: Sequence[str],
    wanted: Sequence[Wanted],
    room: FreeCapacity,
    numbers: tuple[PodSetRefusal, ...],
) -> Refusal:
    """Refuse for good, unless nodes may give through a DeviceClass what they lack otherwise."""
    otherwise = [*allocated_otherwise(wanted, room)]
    if otherwise:
        said = ["not supported by Muster", *otherwise, *said]
        return Refusal(Reason.UNSUPPORTED, bounded(said, "; "), numbers)
    return Refusal(reason, bounded(said, ". "), numbers)


def undecided(groups: Iterable[Group], room: FreeCapacity) -> Refusal:
    """Explain that the search for a placement was given up before it had an answer."""
    attempt = attempted(wanted_pods(groups), room)
    numbers = numbers_of(attempt)
    said = ["no placement found within the search limit; tried again when free capacity changes"]
    said += sentences(attempt, numbers) or [_MAY_CONFLICT]
    return Refusal(Reason.UNDECIDED, bounded(said, ". "), numbers)
