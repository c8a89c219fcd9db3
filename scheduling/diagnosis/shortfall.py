"""Says what each pod set lacks, in numbers and in a sentence."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import numpy as np

from scheduling.diagnosis import never_fits
from scheduling.diagnosis.amount_texts import amount_down, amount_up, number_of_nodes, written
from scheduling.diagnosis.never_fits import Never, TooLarge, TooMany, TooScattered
from scheduling.diagnosis.partial_fit import Attempt, Part, Wanted
from scheduling.diagnosis.shortage import NO_NODE, shortage
from scheduling.diagnosis.unmatched_labels import in_words, unmatched
from scheduling.filters.feasibility import rejections
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.node_volume_limits import is_attach
from scheduling.model.gang import SUBMITTER, Group
from scheduling.model.pod import PodShape
from scheduling.model.predicates import Predicate
from scheduling.model.shape.host_ports import is_port
from scheduling.model.verdict import PodSetRefusal
from scheduling.placement.independent import in_order
from scheduling.state.node_snapshot import NodeSnapshot

_WHY_INFEASIBLE = {
    Predicate.TOPOLOGY: ("is in another domain", "are in other domains"),
    Predicate.AVOIDED: ("refused such a pod recently", "refused such pods recently"),
    Predicate.REMOVAL: ("is being deleted", "are being deleted"),
    Predicate.CORDON: ("is cordoned", "are cordoned"),
    Predicate.TAINT: ("has an untolerated taint", "have an untolerated taint"),
    Predicate.ADDED_AFFINITY: (
        "does not match the scheduler's addedAffinity",
        "do not match the scheduler's addedAffinity",
    ),
    Predicate.NODE_SELECTOR: ("does not match the node selector", "do not match the node selector"),
    Predicate.NODE_AFFINITY: ("does not match the node affinity", "do not match the node affinity"),
    Predicate.SPREAD: (
        "is in no domain of a topology spread constraint",
        "are in no domain of a topology spread constraint",
    ),
    Predicate.INTER_POD_AFFINITY: (
        "is ruled out by affinity or anti-affinity between pods",
        "are ruled out by affinity or anti-affinity between pods",
    ),
    Predicate.DEVICES: (
        "does not reach devices that a ResourceClaim of the pod was given",
        "do not reach devices that a ResourceClaim of the pod was given",
    ),
    Predicate.FEATURES: (
        "does not declare a feature that the pod needs",
        "do not declare a feature that the pod needs",
    ),
}

_OTHERS_NAMED = 3
NEW_NODE = "the gang waits until a node is added or changed"


def wanted_pods(groups: Iterable[Group]) -> tuple[Wanted, ...]:
    """Return the pods wanted per pod set and shape, whatever their replicas."""
    counts: dict[tuple[str, PodShape], int] = {}
    for group in in_order(groups):
        key = group.pod_set, group.shape
        counts[key] = counts.get(key, 0) + group.count
    return tuple((pod_set, shape, n) for (pod_set, shape), n in counts.items() if n)


def numbers_of(attempt: Attempt) -> tuple[PodSetRefusal, ...]:
    """Return how each pod set stands in the attempt."""
    return tuple(_numbers_of(part, attempt) for part in attempt.parts)


def numbers_alone(wanted: Sequence[Wanted], room: FreeCapacity) -> tuple[PodSetRefusal, ...]:
    """Return how the pod sets stand without each other, all of which fit so."""
    return tuple(_alone(*each, room) for each in wanted)


def _alone(pod_set: str, shape: PodShape, count: int, room: FreeCapacity) -> PodSetRefusal:
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
    """Return what one more pod lacks beside the others; nothing of a set that fits."""
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


def _rejections(shape: PodShape, room: FreeCapacity) -> tuple[tuple[str, int], ...]:
    """Return the nodes refused per predicate; those without room are counted in this room."""
    return room.remembered(("rejections", shape.fitting), lambda: _rejected(shape, room))


def _rejected(shape: PodShape, room: FreeCapacity) -> tuple[tuple[str, int], ...]:
    counts = room.columns.traits.remembered(
        ("rejections", shape.scheduling_key), lambda: _unfit(shape, room.columns)
    )
    takers = int(np.count_nonzero(room.counts(shape) > 0))
    full = len(room.columns.names) - sum(counts.values()) - takers
    everything = {**counts, Predicate.RESOURCES: full}
    return tuple((str(predicate), number) for predicate, number in everything.items() if number)


def _unfit(shape: PodShape, columns: NodeSnapshot) -> dict[Predicate, int]:
    counts = rejections(shape, columns)
    counts.pop(Predicate.RESOURCES, None)
    return counts


def sentences(attempt: Attempt, numbers: Sequence[PodSetRefusal]) -> list[str]:
    """Say of each pod set that is short how many fit, and what stops the next one.

    Of the submitter only where all pods of the gang fit: they have their room first.
    """
    pairs = zip(attempt.parts, numbers, strict=True)
    short = [pair for pair in pairs if pair[0].missing]
    mine = [pair for pair in short if pair[0].pod_set != SUBMITTER]
    return [_sentence(part, each, attempt) for part, each in mine or short]


def _sentence(part: Part, numbers: PodSetRefusal, attempt: Attempt) -> str:
    beside = _beside(attempt.beside(numbers.resource, part)) if numbers.resource else ""
    said = f"{_at_most(part)}{how_many_fit(part.pod_set, part.wanted, part.fit)}{beside}"
    return f"{said}: {_stops(part, numbers, attempt)}"


def how_many_fit(pod_set: str, wanted: int, fit: int) -> str:
    """Say how many pods of a pod set fit that is short of room."""
    if pod_set == SUBMITTER:
        return f"{pod_set} does not fit"
    return f"{fit} of {wanted} {pod_set} {'fits' if wanted == 1 else 'fit'}"


def _at_most(part: Part) -> str:
    """Fewer may fit where pods have inter-pod constraints."""
    constrained = part.shape.affinity or part.shape.anti_affinity or part.shape.spread
    return "at most " if part.fit and constrained else ""


def _beside(others: Sequence[Part]) -> str:
    named = [_found(part) for part in others if part.fit or part.pod_set != SUBMITTER]
    if len(named) > _OTHERS_NAMED:
        named = [*named[:_OTHERS_NAMED], f"{len(named) - _OTHERS_NAMED} more"]
    return f" beside {listed(named)}" if named else ""


def _found(part: Part) -> str:
    return part.pod_set if not part.missing else f"{part.fit} of {part.wanted} {part.pod_set}"


def listed(names: Sequence[str]) -> str:
    """Write names as a list: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _stops(part: Part, numbers: PodSetRefusal, attempt: Attempt) -> str:
    barred = _barred(part.shape, attempt.before)
    if not numbers.resource:
        pods = "it" if part.wanted == 1 else "them"
        nodes = number_of_nodes(attempt.before)
        said = f"no node is feasible for {pods} ({nodes}{': ' if barred else ''}{barred})"
        return "; ".join(filter(None, (said, unmatched(part.shape, attempt.before.columns.traits))))
    needs = "it needs" if part.wanted == 1 else "each needs"
    aside = f" (left out: {barred})" if barred else ""
    each = f"{amount_up(numbers.resource, numbers.each)} on one node{_in_all(numbers, attempt)}"
    return f"{needs} {each}; {_free(numbers, attempt.before.columns)}{aside}"


def _in_all(numbers: PodSetRefusal, attempt: Attempt) -> str:
    """Say what the gang needs, where that is more than one pod does."""
    if numbers.needed in (0, numbers.each):
        return ""
    asking = (part.pod_set for part in attempt.parts if part.asks(numbers.resource))
    who = _the_gang(asking)
    return f", {who} {written(numbers.resource, numbers.needed, up=1)} in all"


def _free(numbers: PodSetRefusal, nodes: NodeSnapshot) -> str:
    resource = numbers.resource
    if is_port(resource):
        having = "1 more node has" if numbers.free == 1 else f"{numbers.free} more nodes have"
        return f"{having} it free"
    if not is_attach(resource) and not _is_offered(resource, nodes):
        return "no node offers any"
    said = f"{_are(resource, numbers.free)} free"
    if numbers.free != numbers.left:
        said += f", and those that fit leave {amount_down(resource, numbers.left)}"
    if numbers.largest:
        said += f", at most {amount_down(resource, numbers.largest)} on one node"
    return said


def _is_offered(resource: str, nodes: NodeSnapshot) -> bool:
    row = nodes.row.get(resource)
    return row is not None and bool(nodes.allocatable[row].any())


def _are(resource: str, amount: int) -> str:
    said = amount_down(resource, amount)
    return f"{said} {'is' if said == '1' else 'are'}"


def never_said(cause: Never, wanted: Sequence[Wanted], room: FreeCapacity) -> str:
    """Say why waiting does not help as long as the nodes stay as they are."""
    match cause:
        case TooMany(resource, needed, total):
            who, most = _the_gang(_asking(resource, wanted)), amount_down(resource, total)
            said = (
                f"{who} needs {amount_up(resource, needed)} in all; the nodes that could run it "
                f"have {most} in all when empty"
            )
        case TooScattered(shape, count, fit):
            names = listed(_sets_of(shape, wanted))
            said = f"only {fit} of {count} {names} would fit if all nodes were empty"
        case TooLarge():
            said = _too_large(cause, wanted)
        case other:
            assert_never(other)
    shapes = _that_ask(cause.resource, wanted) if isinstance(cause, TooMany) else [cause.shape]
    barred = {_barred_for_long(shape, room) for shape in shapes}
    aside = f" (left out: {barred.pop()})" if len(barred) == 1 and any(barred) else ""
    return f"{said}{aside}: {NEW_NODE}"


def _the_gang(pod_sets: Iterable[str]) -> str:
    """Name the gang, with the pod that is none of it where that is among these."""
    return f"the gang with {SUBMITTER}" if SUBMITTER in pod_sets else "the gang"


def _asking(resource: str, wanted: Iterable[Wanted]) -> Iterator[str]:
    return (pod_set for pod_set, shape, _ in wanted if resource in shape.amounts)


def _that_ask(resource: str, wanted: Sequence[Wanted]) -> list[PodShape]:
    return [shape for _, shape, _ in wanted if resource in shape.amounts]


def _too_large(cause: TooLarge, wanted: Sequence[Wanted]) -> str:
    names = listed(_sets_of(cause.shape, wanted))
    count = sum(pods for _, shape, pods in wanted if shape == cause.shape)
    each = f"{'each ' if count > 1 else ''}{names} needs"
    if not cause.resource:
        every = ", ".join(amount_up(*pair) for pair in cause.shape.requests)
        return f"{each} {every} on one node; no node that could run it has all of that when empty"
    said = f"{each} {amount_up(cause.resource, cause.each)} on one node; "
    if not cause.largest:
        return f"{said}no node that could run it offers any"
    most = amount_down(cause.resource, cause.largest)
    return f"{said}the largest node that could run it, {cause.node}, has {most} in all"


def _sets_of(shape: PodShape, wanted: Sequence[Wanted]) -> list[str]:
    return [pod_set for pod_set, other, _ in wanted if other == shape]


def _barred_for_long(shape: PodShape, room: FreeCapacity) -> str:
    """Say which nodes are ruled out by conditions that do not pass by themselves."""
    lasting = never_fits.patient(shape)
    return _in_words(_unfit(lasting, room.columns).items(), lasting)


def _barred(shape: PodShape, room: FreeCapacity) -> str:
    """Say which nodes the predicates rule out, free capacity aside."""
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
    """Say why a predicate rules out a node, and why several."""
    if predicate in _WHY_INFEASIBLE:
        return _WHY_INFEASIBLE[predicate]
    if predicate is Predicate.QUEUE:
        of = f"match nodeSelector {in_words(shape.restrictions.queue)} of the gang's queue"
        return f"does not {of}", f"do not {of}"
    volumes = shape.restrictions.volumes
    claims = dict.fromkeys(each.claim for each in volumes if each.predicate == predicate)
    by = f"ruled out by {predicate}: {' and '.join(claims)}"
    return f"is {by}", f"are {by}"
