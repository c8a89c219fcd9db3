"""Why does a gang not fit, in numbers that a user can act on?

"2 of 4 w fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; 3 are free, and
those that fit leave 0": as much of the gang is placed as finds room (`attempt`), and the amounts
are those of the nodes that the predicates allow. What could not run on empty nodes either (`never`)
is said in another way, for it does not help to wait. A message depends on nothing but the gang and
the room, so it stays the same while they do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from scheduling import never
from scheduling.attach import is_attach
from scheduling.attach import spoken as attachable
from scheduling.attempt import Attempt, Part, Wanted, attempted, is_short_alone, per_shape
from scheduling.columns import Columns
from scheduling.effects import BIND_IT
from scheduling.feasibility import Predicate, feasible, rejections
from scheduling.fit import in_order
from scheduling.holders import Held, Holders
from scheduling.model import CPU, MEMORY, PODS, Group, PendingGang, PodShape, SpreadConstraint
from scheduling.never import Never, TooLarge, TooMany, TooScattered
from scheduling.packing import is_device
from scheduling.ports import is_port, spoken
from scheduling.room import Room
from scheduling.shortage import NO_NODE, shortage
from scheduling.skew import Lack, Stop
from scheduling.unmatched import unmatched
from scheduling.verdict import MESSAGE_LIMIT, PodSetRefusal, Reason, Refusal

_SPEAKS_AGAINST = {
    Predicate.TOPOLOGY: ("is in another domain", "are in other domains"),
    Predicate.AVOIDED: ("refused such a pod of late", "refused such pods of late"),
    Predicate.CORDON: ("is cordoned", "are cordoned"),
    Predicate.TAINT: ("has an untolerated taint", "have an untolerated taint"),
    Predicate.ADDED_AFFINITY: (
        "does not match the affinity that the scheduler adds",
        "do not match the affinity that the scheduler adds",
    ),
    Predicate.NODE_SELECTOR: ("does not match the node selector", "do not match the node selector"),
    Predicate.NODE_AFFINITY: ("does not match the node affinity", "do not match the node affinity"),
    Predicate.SPREAD: (
        "is in no domain of a topology spread constraint",
        "are in no domain of a topology spread constraint",
    ),
    Predicate.COMPANY: (
        "is ruled out by affinity between pods",
        "are ruled out by affinity between pods",
    ),
    Predicate.FEATURES: (
        "does not declare a feature that it needs",
        "do not declare a feature that it needs",
    ),
}

MOST_KINDS = 256
MOST_MINDING = 64
"""How many kinds of pods (pod set and shape) a gang may have, and where they mind each other."""

MOST_PORTS = 128
"""How many host ports all kinds of pods of a gang may ask for; one on an address counts twice."""

MOST_HOLDERS = 3
"""How many of those who hold what is short are named."""

_DOMAINS_NAMED = 3
_OTHERS_NAMED = 3

SHOWN = 80
"""How much of a label's key or value a message shows."""

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
    return Refusal(Reason.UNSUPPORTED, _bounded(["not supported by Muster", *said], "; "))


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
        f'volume claim "{_shown(claim)}" of {driver}' for driver, claim in sorted(disks)
    )
    said = (
        "not supported by Muster; a shared disk counts for each pod that mounts it, and so too "
        f"few can be attached (NodeVolumeLimits): {named} (let fewer pods mount it, or detach "
        "other volumes of the driver)"
    )
    return Refusal(Reason.UNSUPPORTED, _bounded([said], ""))


def no_fit(groups: Iterable[Group], room: Room, unit: Sequence[Group] = ()) -> Refusal:
    """Explain that a gang certainly does not fit into the room, or not one `unit` of its surplus.

    Of a surplus only the unit must come at once, so never is only what even that could not.
    """
    wanted = _wanted(groups)
    attempt = attempted(wanted, room)
    numbers = _numbers(attempt)
    said = _sentences(attempt, numbers)
    if any(not each.resource for each in numbers if each.fit < each.wanted):
        return _refusal(Reason.NO_FEASIBLE_NODE, said, wanted, room, numbers)
    at_once = _wanted(unit) if unit else wanted
    causes = never.never(tuple(per_shape(at_once).items()), room.columns)
    if causes:
        said = [_never_said(cause, at_once, room) for cause in causes]
        return Refusal(Reason.NEVER_FITS, _bounded(said, ". "), numbers)
    return _refusal(Reason.INSUFFICIENT_RESOURCES, said, wanted, room, numbers)


def no_way(
    groups: Iterable[Group], lacks: Mapping[tuple[str, PodShape], Lack], room: Room
) -> Refusal:
    """Explain that what binds the pods of the gang leaves no way to place them all.

    `lacks` says per pod set and shape what the best attempt left out.
    """
    wanted = _wanted(groups)
    if is_short_alone(wanted, room):
        return no_fit(groups, room)
    numbers = _numbers_alone(wanted, room)
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
        return f"{said}: {_shown(stop.name)} holds {stop.least}, so that none may hold over {most}"
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
        f"{pod_set}: topologySpreadConstraints over {_shown(constraint.counted.key)} with "
        f"{_what_binds(constraint)}"
        for pod_set, constraint in dict.fromkeys(
            (group.pod_set, constraint)
            for group in in_order(groups)
            for constraint in group.shape.spread
            if constraint.binds_pinned
        )
    ]
    head = "not supported by Muster where the pods fit only before they are pinned to their nodes"
    return Refusal(Reason.UNSUPPORTED, _bounded([head, *said], "; "))


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
    room: Room,
    numbers: tuple[PodSetRefusal, ...],
) -> Refusal:
    """Refuse for good, unless nodes could give by classes of devices what they lack otherwise."""
    open_ways = _open_ways(wanted, room)
    if open_ways:
        said = ["not supported by Muster", *open_ways, *said]
        return Refusal(Reason.UNSUPPORTED, _bounded(said, "; "), numbers)
    return Refusal(reason, _bounded(said, ". "), numbers)


def _open_ways(wanted: Sequence[Wanted], room: Room) -> list[str]:
    """Name what nodes could give by classes of devices; mostly there are none."""
    if not room.columns.claimable:
        return []
    return [way for pod_set, shape, _ in wanted if (way := _by_claim(pod_set, shape, room))]


def _by_claim(pod_set: str, shape: PodShape, room: Room) -> str:
    """Name what a pod asks for and feasible nodes without any may give by a class of devices."""
    names = [name for name, _ in shape.requests if name in room.columns.claimable]
    lacking = [name for name in names if _is_lacking(name, shape, room)]
    if not lacking:
        return ""
    remedy = "only devices in a node's status.allocatable are counted: add nodes with such"
    return f"{pod_set}: {', '.join(lacking)} through a DeviceClass ({remedy})"


def _is_lacking(resource: str, shape: PodShape, room: Room) -> bool:
    """Say whether some feasible node has none at all; kube-scheduler asks its devices then."""
    row = room.columns.row.get(resource)
    nodes = feasible(shape, room.columns)
    lacking = nodes if row is None else nodes & (room.columns.allocatable[row] == 0)
    return bool(lacking.any())


def undecided(groups: Iterable[Group], room: Room) -> Refusal:
    """Explain that the search for a placement was given up before it had an answer."""
    attempt = attempted(_wanted(groups), room)
    numbers = _numbers(attempt)
    said = ["no placement found within the bounded search; tried again when room changes"]
    said += _sentences(attempt, numbers) or [_ALL_FIT_BUT]
    return Refusal(Reason.UNDECIDED, _bounded(said, ". "), numbers)


WORKERS = "the workers"
"""Whom a topology binds."""


def closest_domain(
    keys: Sequence[str], name: Sequence[str], refusal: Refusal, whom: str = WORKERS
) -> Refusal:
    """Explain that no domain takes the pods, by what stops them in the best one."""
    said = f"no single {_joined(keys)} holds {whom}; {_joined(name)} comes closest"
    return _introduced(said, refusal)


def in_domain(
    keys: Sequence[str], name: Sequence[str], refusal: Refusal, whom: str = WORKERS
) -> Refusal:
    """Say which domain a refusal speaks of."""
    return _introduced(f"{whom} belong in {_joined(keys)} {_joined(name)}", refusal)


def no_label(keys: Sequence[str], whom: str = WORKERS) -> Refusal:
    """Explain that no node is in any domain."""
    said = f"no node has the label {_joined(keys)}, by which {whom} are to be together"
    return Refusal(Reason.NO_FEASIBLE_NODE, said)


def nowhere_together(whom: str) -> Refusal:
    """Explain that nobody says from where volumes are reached, and no one node takes the pods."""
    said = f"no one node holds {whom}, and nothing says from which others the volume is reached"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said} ({BIND_IT})")


def scattered(keys: Sequence[str], names: Sequence[Sequence[str]]) -> Refusal:
    """Explain that pods of the gang are in several domains already, or in none."""
    named = ", ".join(_joined(name) for name in names[:_DOMAINS_NAMED]) or "none"
    said = f"the workers are to be in one {_joined(keys)}, but those that have room are in {named}"
    more = len(names) - _DOMAINS_NAMED
    said += f" and {more} more" if more > 0 else ""
    return Refusal(Reason.NO_FEASIBLE_NODE, said)


@dataclass(frozen=True, slots=True)
class ReplicasShort:
    """How replicas of some pod sets stand whose `pods` pods are to be in one domain.

    `fit` of the `wanted` find one, `beside` other pod sets; for the next there is room for `some`
    of its pods in `domain`.
    """

    pod_sets: tuple[str, ...]
    wanted: int
    fit: int
    pods: int
    some: int
    domain: Sequence[str]
    beside: tuple[str, ...] = ()


def replicas_short(
    groups: Iterable[Group], keys: Sequence[str], short: ReplicasShort, room: Room
) -> Refusal:
    """Explain that there is room for all pods, but not for whole replicas inside domains."""
    noun, verb = ("replica", "fits") if short.wanted == 1 else ("replicas", "fit")
    beside = f" beside {_listed(short.beside)}" if short.beside else ""
    said = (
        f"{short.fit} of {short.wanted} {noun} of {', '.join(short.pod_sets)} {verb}{beside}: "
        f"each needs {short.pods} pods inside one {_joined(keys)}; the next finds room for "
        f"{short.some} in {_joined(short.domain)}"
    )
    numbers = _numbers_alone(_wanted(groups), room)
    if len(short.pod_sets) == 1:
        most = short.fit * short.pods
        mine = (each.pod_set in short.pod_sets for each in numbers)
        numbers = tuple(
            replace(each, fit=min(each.fit, most)) if is_mine else each
            for each, is_mine in zip(numbers, mine, strict=True)
        )
    return Refusal(Reason.INSUFFICIENT_RESOURCES, _bounded([said], ""), numbers)


def replicas_crowded(groups: Iterable[Group], keys: Sequence[str], room: Room) -> Refusal:
    """Explain that replicas would find their domains, but not beside the other pods of the gang."""
    wanted = _wanted(groups)
    names = ", ".join(dict.fromkeys(pod_set for pod_set, _, _ in wanted))
    said = f"{names} fit alone but not together with each replica inside one {_joined(keys)}"
    return Refusal(
        Reason.INSUFFICIENT_RESOURCES, _bounded([said], ""), _numbers_alone(wanted, room)
    )


def no_domain_left(keys: Sequence[str], replicas: int, pod_sets: Sequence[str]) -> Refusal:
    """Explain that no domain has room for all pods of another replica of the surplus."""
    more = "1 more replica" if replicas == 1 else f"any of {replicas} more replicas"
    said = f"no single {_joined(keys)} has room for {more} of {', '.join(pod_sets)}"
    return Refusal(Reason.INSUFFICIENT_RESOURCES, _bounded([said], ""))


def _introduced(words: str, refusal: Refusal) -> Refusal:
    return replace(refusal, message=_bounded([f"{words}: {refusal.message}"], ""))


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(parts)


def with_holders(
    refusal: Refusal, groups: Iterable[Group], room: Room, holders: Holders
) -> Refusal:
    """Add who holds the room that is short, with the largest shares, as far as the limit allows."""
    if refusal.reason is not Reason.INSUFFICIENT_RESOURCES:
        return refusal
    wanted = _wanted(groups)
    short = [each for each in refusal.pod_sets if each.fit < each.wanted] or refusal.pod_sets
    numbers = tuple(
        replace(each, held=_held(each, wanted, room, holders)) if each in short else each
        for each in refusal.pod_sets
    )
    said = [refusal.message, *_first_of_devices(numbers)]
    message = ". ".join(said)
    return replace(
        refusal,
        message=message if len(message) <= MESSAGE_LIMIT else refusal.message,
        pod_sets=numbers,
    )


def _held(
    each: PodSetRefusal, wanted: Sequence[Wanted], room: Room, holders: Holders
) -> Held | None:
    """Return who holds what is short; None where no node has it, or it is made up (ports).

    The pods were judged with what their volumes take beside what they ask for themselves.
    """
    asked = set(each.requests)
    mine = (
        s for pod_set, s, _ in wanted if pod_set == each.pod_set and asked.issuperset(s.requests)
    )
    shape = next(mine, None)
    if shape is None or each.resource not in dict(shape.requests) or is_port(each.resource):
        return None
    if each.resource not in room.columns.row:
        return None
    return room.remembered(
        ("held", each.resource, shape.told_apart_by),
        lambda: holders.of(each.resource, feasible(shape, room.columns), room, MOST_HOLDERS),
    )


def _first_of_devices(numbers: Iterable[PodSetRefusal]) -> list[str]:
    """Say who holds one of the short resources: a device if there is one, for people ask for it."""
    told = [(each.resource, each.held) for each in numbers if each.held and each.held.shares]
    told.sort(key=lambda pair: not is_device(pair[0]))
    return [_holders_said(*pair) for pair in told[:1]]


def _holders_said(resource: str, held: Held) -> str:
    first, *others = held.shares
    amount, total = (_amount_down(resource, n) for n in (first.amount, held.total))
    verb = "is" if amount == "1" else "are"
    said = [f"{amount} of {total} {resource} {verb} held by {first.holder}"]
    said += [f"{_amount_down(resource, share.amount)} by {share.holder}" for share in others]
    if held.others:
        plural = "" if held.others == 1 else "s"
        said.append(f"{_amount_down(resource, held.rest)} by {held.others} other{plural}")
    return ", ".join(said)


def _wanted(groups: Iterable[Group]) -> tuple[Wanted, ...]:
    """Return the pods wanted per pod set and shape, whatever their replicas."""
    counts: dict[tuple[str, PodShape], int] = {}
    for group in in_order(groups):
        key = group.pod_set, group.shape
        counts[key] = counts.get(key, 0) + group.count
    return tuple((pod_set, shape, n) for (pod_set, shape), n in counts.items() if n)


def _numbers(attempt: Attempt) -> tuple[PodSetRefusal, ...]:
    """Return how each pod set stands in the attempt."""
    return tuple(_numbers_of(part, attempt) for part in attempt.parts)


def _numbers_alone(wanted: Sequence[Wanted], room: Room) -> tuple[PodSetRefusal, ...]:
    """Return how the pod sets stand without each other, all of which fit so."""
    return tuple(_alone(*each, room) for each in wanted)


def _alone(pod_set: str, shape: PodShape, count: int, room: Room) -> PodSetRefusal:
    short = shortage(shape, room)
    return PodSetRefusal(
        pod_set=pod_set,
        wanted=count,
        fit=count,
        requests=shape.requests,
        resource=short.resource,
        each=short.each,
        needed=0,
        free=short.free,
        left=short.free,
        largest=short.largest,
        rejections=_rejections(shape, room),
    )


def _numbers_of(part: Part, attempt: Attempt) -> PodSetRefusal:
    """Return what one more pod lacks beside the others; of a set that fits nothing is short."""
    short = attempt.shortage(part) if part.missing else NO_NODE
    counts = short.resource and not is_port(short.resource)
    return PodSetRefusal(
        pod_set=part.pod_set,
        wanted=part.wanted,
        fit=part.fit,
        requests=part.shape.requests,
        resource=short.resource,
        each=short.each,
        needed=attempt.needed(short.resource, part) if counts else 0,
        free=attempt.free(short.resource, part) if counts else short.free,
        left=short.free,
        largest=short.largest,
        rejections=_rejections(part.shape, attempt.before),
    )


def _rejections(shape: PodShape, room: Room) -> tuple[tuple[str, int], ...]:
    """Return the nodes refused per predicate; those without room are counted in this room."""
    return room.remembered(("rejections", shape.fitting), lambda: _rejected(shape, room))


def _rejected(shape: PodShape, room: Room) -> tuple[tuple[str, int], ...]:
    counts = room.columns.traits.remembered(
        ("rejections", shape.told_apart_by), lambda: _unfit(shape, room.columns)
    )
    takers = int(np.count_nonzero(room.counts(shape) > 0))
    full = len(room.columns.names) - sum(counts.values()) - takers
    everything = {**counts, Predicate.RESOURCES: full}
    return tuple((str(predicate), number) for predicate, number in everything.items() if number)


def _unfit(shape: PodShape, columns: Columns) -> dict[Predicate, int]:
    counts = rejections(shape, columns)
    counts.pop(Predicate.RESOURCES, None)
    return counts


def _sentences(attempt: Attempt, numbers: Sequence[PodSetRefusal]) -> list[str]:
    """Say of each pod set that is short how many fit, and what stops the next one."""
    pairs = zip(attempt.parts, numbers, strict=True)
    return [_sentence(part, each, attempt) for part, each in pairs if part.missing]


def _sentence(part: Part, numbers: PodSetRefusal, attempt: Attempt) -> str:
    verb = "fits" if part.wanted == 1 else "fit"
    beside = _beside(attempt.beside(numbers.resource, part)) if numbers.resource else ""
    said = f"{_at_most(part)}{part.fit} of {part.wanted} {part.pod_set} {verb}{beside}"
    return f"{said}: {_stops(part, numbers, attempt)}"


def _at_most(part: Part) -> str:
    """Fewer may fit where pods mind where the others of the gang are."""
    minds = part.shape.near or part.shape.apart or part.shape.spread
    return "at most " if part.fit and minds else ""


def _beside(others: Sequence[Part]) -> str:
    named = [
        part.pod_set if not part.missing else f"{part.fit} of {part.wanted} {part.pod_set}"
        for part in others
    ]
    if len(named) > _OTHERS_NAMED:
        named = [*named[:_OTHERS_NAMED], f"{len(named) - _OTHERS_NAMED} more"]
    return f" beside {_listed(named)}" if named else ""


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _stops(part: Part, numbers: PodSetRefusal, attempt: Attempt) -> str:
    barred = _barred(part.shape, attempt.before)
    if not numbers.resource:
        whom = "it" if part.wanted == 1 else "them"
        nodes = _nodes(attempt.before)
        said = f"no node is feasible for {whom} ({nodes}{': ' if barred else ''}{barred})"
        return "; ".join(filter(None, (said, unmatched(part.shape, attempt.before.columns.traits))))
    needs = "it needs" if part.wanted == 1 else "each needs"
    aside = f" (left out: {barred})" if barred else ""
    each = f"{_amount_up(numbers.resource, numbers.each)} on one node{_in_all(numbers)}"
    return f"{needs} {each}; {_free(numbers)}{aside}"


def _in_all(numbers: PodSetRefusal) -> str:
    """Say what the gang needs, where that is more than one pod does."""
    if numbers.needed in (0, numbers.each):
        return ""
    return f", the gang {_written(numbers.resource, numbers.needed, up=1)} in all"


def _free(numbers: PodSetRefusal) -> str:
    resource = numbers.resource
    if is_port(resource):
        nodes = "1 more node has" if numbers.free == 1 else f"{numbers.free} more nodes have"
        return f"{nodes} it free"
    said = f"{_are(resource, numbers.free)} free"
    if numbers.free != numbers.left:
        said += f", and those that fit leave {_amount_down(resource, numbers.left)}"
    if numbers.largest:
        said += f", at most {_amount_down(resource, numbers.largest)} on one node"
    return said


def _are(resource: str, amount: int) -> str:
    said = _amount_down(resource, amount)
    return f"{said} {'is' if said == '1' else 'are'}"


NEW_NODE = "it waits until a node is added or changed"


def _never_said(cause: Never, wanted: Sequence[Wanted], room: Room) -> str:
    """Say why waiting does not help while the nodes are what they are."""
    match cause:
        case TooMany(resource, needed, total):
            said = (
                f"the gang needs {_amount_up(resource, needed)} in all; the nodes that could run "
                f"it have {_amount_down(resource, total)} in all when empty"
            )
        case TooScattered(shape, count, fit):
            names = _listed(_sets_of(shape, wanted))
            said = f"only {fit} of {count} {names} would fit if the nodes were empty"
        case TooLarge():
            said = _too_large(cause, wanted)
        case other:
            assert_never(other)
    shapes = [shape for _, shape, _ in wanted] if isinstance(cause, TooMany) else [cause.shape]
    barred = {_barred_for_long(shape, room) for shape in shapes}
    aside = f" (left out: {barred.pop()})" if len(barred) == 1 and any(barred) else ""
    return f"{said}{aside}: {NEW_NODE}"


def _too_large(cause: TooLarge, wanted: Sequence[Wanted]) -> str:
    names = _listed(_sets_of(cause.shape, wanted))
    count = sum(pods for _, shape, pods in wanted if shape == cause.shape)
    each = f"{'each ' if count > 1 else ''}{names} needs"
    if not cause.resource:
        every = ", ".join(_amount_up(*pair) for pair in cause.shape.requests)
        return f"{each} {every} on one node; no node that could run it has all of that when empty"
    said = f"{each} {_amount_up(cause.resource, cause.each)} on one node; "
    if not cause.largest:
        return f"{said}no node that could run it offers any"
    most = _amount_down(cause.resource, cause.largest)
    return f"{said}the largest node that could run it, {cause.node}, has {most} in all"


def _sets_of(shape: PodShape, wanted: Sequence[Wanted]) -> list[str]:
    return [pod_set for pod_set, other, _ in wanted if other == shape]


def _barred_for_long(shape: PodShape, room: Room) -> str:
    """Say which nodes are ruled out by what does not pass by itself."""
    lasting = never.patient(shape)
    return _in_words(_unfit(lasting, room.columns).items(), lasting)


def _barred(shape: PodShape, room: Room) -> str:
    """Say which nodes the predicates rule out, room left aside."""
    counts = [each for each in _rejections(shape, room) if each[0] != Predicate.RESOURCES]
    return _in_words(((Predicate(name), number) for name, number in counts), shape)


def _in_words(counts: Iterable[tuple[Predicate, int]], shape: PodShape) -> str:
    said = [
        f"{number} {_says(predicate, shape)[number > 1]}"
        for predicate, number in counts
        if predicate != Predicate.RESOURCES
    ]
    return ", ".join(said)


def _says(predicate: Predicate, shape: PodShape) -> tuple[str, str]:
    """Say what a predicate has against one node, and against several."""
    if predicate in _SPEAKS_AGAINST:
        return _SPEAKS_AGAINST[predicate]
    claims = dict.fromkeys(each.claim for each in shape.reach if each.predicate == predicate)
    by = f"ruled out by {predicate}: {' and '.join(claims)}"
    return f"is {by}", f"are {by}"


def _nodes(room: Room) -> str:
    count = len(room.columns.names)
    return "1 node" if count == 1 else f"{count} nodes" if count else "there are no nodes"


def _amount_up(resource: str, amount: int) -> str:
    """Write what is needed with its resource, rounded up where it must be rounded."""
    if is_port(resource):
        return spoken(resource)
    if is_attach(resource):
        return f"{amount} {attachable(resource)}"
    if resource == PODS:
        return f"{amount} pod slot" + ("s" if amount != 1 else "")
    return f"{_written(resource, amount, up=1)} {resource}"


def _amount_down(resource: str, amount: int) -> str:
    """Write what is free, rounded down where it must be rounded."""
    return _written(resource, amount, up=0)


def _written(resource: str, amount: int, *, up: int) -> str:
    """Write an amount as people do: cpu in whole or milli, bytes in Gi or Mi, devices plain."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if not _is_in_bytes(resource):
        return str(amount)
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if amount >= size:
            tenths = (amount * 10 + (size - 1) * up) // size
            whole, part = divmod(tenths, 10)
            return f"{whole}.{part}{unit}" if part else f"{whole}{unit}"
    return str(amount)


def _is_in_bytes(resource: str) -> bool:
    return resource in (MEMORY, "ephemeral-storage") or resource.startswith("hugepages-")


def _shown(text: str) -> str:
    """Cut what tenants write: a key or a domain's name."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _bounded(said: Sequence[str], joint: str) -> str:
    """Join sentences as far as the limit allows, and say how many were left out."""
    text = said[0]
    for at, sentence in enumerate(said[1:], start=1):
        rest = f"{joint}and {len(said) - at} more"
        if len(text) + len(joint) + len(sentence) + len(rest) > MESSAGE_LIMIT:
            text += rest
            break
        text += joint + sentence
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"
