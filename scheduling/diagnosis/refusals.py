"""Words why a gang does not fit, in numbers that its user can act on.

"2 of 4 w fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; 3 are free, and
those that fit leave 0": as much of the gang is placed as finds room (`partial_fit`), and the
amounts are those of the nodes that the predicates allow. What could not run on empty nodes either
(`never_fits`) is said in another way, for it does not help to wait. A message depends on nothing
but the gang and the room, so it stays the same while they do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scheduling.diagnosis import never_fits
from scheduling.diagnosis.partial_fit import (
    Wanted,
    attempted,
    is_short_alone,
    per_shape,
)
from scheduling.diagnosis.shortfall import (
    never_said,
    numbers_alone,
    numbers_of,
    sentences,
    wanted_pods,
)
from scheduling.diagnosis.wording import bounded, shown
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.pod_topology_spread import Lack, Stop
from scheduling.model.constraints import SpreadConstraint
from scheduling.model.gang import Group, PendingGang
from scheduling.model.plugins import Predicate
from scheduling.model.pod import PodShape
from scheduling.model.verdict import PodSetRefusal, Reason, Refusal
from scheduling.placement.independent import in_order

MOST_KINDS = 256
MOST_MINDING = 64
"""How many kinds of pods (pod set and shape) a gang may have, and where they mind each other."""

MOST_PORTS = 128
"""How many host ports all kinds of pods of a gang may ask for; one on an address counts twice."""


_ALL_FIT_BUT = "there is room for all, but what they mind of each other may leave no way"


def unsupported(groups: Iterable[Group]) -> Refusal | None:
    """Refuse a gang with pods that the core cannot judge; None where it can judge all."""
    asked: dict[str, set[str]] = {}
    for group in in_order(groups):
        if group.shape.unsupported:
            asked.setdefault(group.pod_set, set()).update(group.shape.unsupported)
    if not asked:
        return None
    said = [f"{pod_set}: {', '.join(sorted(names))}" for pod_set, names in asked.items()]
    return Refusal(Reason.UNSUPPORTED, bounded(["not supported by Muster", *said], "; "))


def too_many_kinds(gang: PendingGang) -> Refusal | None:
    """Refuse a gang with more kinds of pods than can be judged in a moment, none where it is fine.

    Each kind costs a look at all nodes, and at all other kinds where they mind each other.
    """
    if 1 + len(gang.minimum) + sum(map(len, gang.surplus)) <= MOST_MINDING:
        return None
    kinds = {(group.pod_set, group.shape) for group in gang.groups()}
    minding = any(shape.near or shape.apart or shape.spread for _, shape in kinds)
    if len(kinds) <= (MOST_MINDING if minding else MOST_KINDS):
        return None
    said = f"{len(kinds)} kinds of pods, more than {MOST_KINDS}"
    if minding:
        said = f"{len(kinds)} kinds of pods that mind each other, more than {MOST_MINDING}"
    remedy = "make the pods of a group equal, or have fewer groups"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said} ({remedy})")


def too_many_ports(gang: PendingGang) -> Refusal | None:
    """Refuse a gang that asks for more host ports than can be judged in a moment."""
    ports = sum(len(shape.ports) for shape in {group.shape for group in gang.groups()})
    if ports <= MOST_PORTS:
        return None
    said = f"{ports} host ports of all kinds of its pods, more than {MOST_PORTS} (use fewer)"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said}")


def counted_too_often(disks: Iterable[tuple[str, str]]) -> Refusal:
    """Refuse a gang that may fit only because of disks that its pods share, by driver and claim."""
    named = ", ".join(
        f'volume claim "{shown(claim)}" of {driver}' for driver, claim in sorted(disks)
    )
    said = (
        "not supported by Muster; a shared disk counts for each pod that mounts it, and so too "
        f"few can be attached (NodeVolumeLimits): {named} (let fewer pods mount it, or detach "
        "other volumes of the driver)"
    )
    return Refusal(Reason.UNSUPPORTED, bounded([said], ""))


def no_fit(groups: Iterable[Group], room: FreeCapacity, unit: Sequence[Group] = ()) -> Refusal:
    """Explain that a gang certainly does not fit into the room, or not one `unit` of its surplus.

    Of a surplus only the unit must come at once, so never is only what even that could not.
    """
    wanted = wanted_pods(groups)
    attempt = attempted(wanted, room)
    numbers = numbers_of(attempt)
    said = sentences(attempt, numbers)
    if any(not each.resource for each in numbers if each.fit < each.wanted):
        return _refusal(Reason.NO_FEASIBLE_NODE, said, wanted, room, numbers)
    at_once = wanted_pods(unit) if unit else wanted
    causes = never_fits.never(tuple(per_shape(at_once).items()), room.columns)
    if causes:
        said = [never_said(cause, at_once, room) for cause in causes]
        return Refusal(Reason.NEVER_FITS, bounded(said, ". "), numbers)
    return _refusal(Reason.INSUFFICIENT_RESOURCES, said, wanted, room, numbers)


def no_way(
    groups: Iterable[Group], lacks: Mapping[tuple[str, PodShape], Lack], room: FreeCapacity
) -> Refusal:
    """Explain that what binds the pods of the gang leaves no way to place them all.

    `lacks` says per pod set and shape what the best attempt left out.
    """
    wanted = wanted_pods(groups)
    if is_short_alone(wanted, room):
        return no_fit(groups, room)
    numbers = numbers_alone(wanted, room)
    found = [lacks.get((pod_set, shape), Lack(0)) for pod_set, shape, _ in wanted]
    said = [
        f"{count - lack.pods} of {count} {pod_set} {'fits' if count == 1 else 'fit'}: {_why(lack)}"
        for (pod_set, _, count), lack in zip(wanted, found, strict=True)
        if lack.pods
    ]
    stopped = tuple(_stopped(*pair) for pair in zip(numbers, found, strict=True))
    return _refusal(Reason.NO_FEASIBLE_NODE, said, wanted, room, stopped)


def _why(lack: Lack) -> str:
    if lack.stop is None:
        return (
            "required affinity between the pods of the gang and the room that is free leave no "
            "node for more"
        )
    return _stop(lack.stop)


def _stop(stop: Stop) -> str:
    """Say which spread constraint stops the next pod, and what would let it go on."""
    constraint = stop.constraint
    most, key = stop.least + constraint.max_skew, constraint.counted.key
    nodes = "1 node" if stop.nodes == 1 else f"{stop.nodes} nodes"
    said = f"topology spread over {key} (maxSkew {constraint.max_skew}) keeps more from {nodes}"
    if stop.name:
        return f"{said}: {shown(stop.name)} holds {stop.least}, so that none may hold over {most}"
    if stop.found < constraint.min_domains:
        domains = f"{stop.found} of {constraint.min_domains} domains (minDomains) are there"
        return f"{said}: {domains}, so that none may hold over {most}"
    return f"{said}: none may hold over {most}"


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


def only_unpinned(groups: Iterable[Group]) -> Refusal:
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
    head = "not supported by Muster where the pods fit only before they are pinned to their nodes"
    return Refusal(Reason.UNSUPPORTED, bounded([head, *said], "; "))


def _what_binds(constraint: SpreadConstraint) -> str:
    if constraint.heeds_affinity:
        return f"minDomains {constraint.min_domains} (leave minDomains out)"
    return "nodeAffinityPolicy Ignore (use Honor)"


def awaiting() -> Refusal:
    """Put a gang off whose pods would disturb others that are not bound yet, or be refused."""
    return Refusal(
        Reason.UNDECIDED,
        "topology spread constraints of released pods count pods of this gang, or its affinity "
        "counts on them; it is decided once those are bound",
    )


def _refusal(
    reason: Reason,
    said: Sequence[str],
    wanted: Sequence[Wanted],
    room: FreeCapacity,
    numbers: tuple[PodSetRefusal, ...],
) -> Refusal:
    """Refuse for good, unless nodes could give by classes of devices what they lack otherwise."""
    open_ways = _open_ways(wanted, room)
    if open_ways:
        said = ["not supported by Muster", *open_ways, *said]
        return Refusal(Reason.UNSUPPORTED, bounded(said, "; "), numbers)
    return Refusal(reason, bounded(said, ". "), numbers)


def _open_ways(wanted: Sequence[Wanted], room: FreeCapacity) -> list[str]:
    """Name what nodes could give by classes of devices; mostly there are none."""
    if not room.columns.claimable:
        return []
    return [way for pod_set, shape, _ in wanted if (way := _by_claim(pod_set, shape, room))]


def _by_claim(pod_set: str, shape: PodShape, room: FreeCapacity) -> str:
    """Name what a pod asks for and feasible nodes without any may give by a class of devices."""
    names = [name for name, _ in shape.requests if name in room.columns.claimable]
    lacking = [name for name in names if _is_lacking(name, shape, room)]
    if not lacking:
        return ""
    remedy = "only devices in a node's status.allocatable are counted: add nodes with such"
    return f"{pod_set}: {', '.join(lacking)} through a DeviceClass ({remedy})"


def _is_lacking(resource: str, shape: PodShape, room: FreeCapacity) -> bool:
    """Say whether some feasible node has none at all; kube-scheduler asks its devices then."""
    row = room.columns.row.get(resource)
    nodes = feasible(shape, room.columns)
    lacking = nodes if row is None else nodes & (room.columns.allocatable[row] == 0)
    return bool(lacking.any())


def undecided(groups: Iterable[Group], room: FreeCapacity) -> Refusal:
    """Explain that the search for a placement was given up before it had an answer."""
    attempt = attempted(wanted_pods(groups), room)
    numbers = numbers_of(attempt)
    said = ["no placement found within the bounded search; tried again when room changes"]
    said += sentences(attempt, numbers) or [_ALL_FIT_BUT]
    return Refusal(Reason.UNDECIDED, bounded(said, ". "), numbers)
