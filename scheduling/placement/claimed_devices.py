"""Places pods that claim devices on nodes with room and devices for all, and plans their waves.

What is free else bounds the pods of each shape on each node; which of them get their devices, and
in which order they have to come, is foreseen for the whole (`scheduling.devices`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from scheduling.devices.counting import DevicesOfSeveralNodes
from scheduling.devices.gang import (
    ClaimGroup,
    Foreseen,
    NodeOffer,
    NoPlacement,
    Verdict,
    foresee,
)
from scheduling.devices.mixes import Unknown
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import Kinds, Pending
from scheduling.devices.outcome import NotAllocated, Refusal
from scheduling.devices.room import DeviceRoom
from scheduling.devices.selection import Rules
from scheduling.devices.sharing import PartedGroups
from scheduling.devices.steps import StepBudget
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions
from scheduling.model.devices.asked import least_of, requests_of
from scheduling.model.devices.class_requests import resources_of
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.shape.restrictions import Claims
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import needed
from scheduling.placement.offered_by_class import lists_none
from scheduling.state.node_snapshot import NodeAttributes

DEVICE_STEPS = 100
"""Steps of a search that one look at a device, or at one mix of pods, counts as."""

FIRST_NODES = 32
"""So many nodes that have room are looked at before others are."""


@dataclass(frozen=True, eq=False, slots=True)
class PlacedWithDevices:
    """One distribution and one release wave per shape of the demand, and the room that is left."""

    distributions: tuple[Distribution, ...]
    waves: tuple[int, ...]
    room: FreeCapacity


Outcome = PlacedWithDevices | NoPlacement | Unknown


def place_with_devices(
    demand: Demand, room: FreeCapacity, devices: DeviceRoom, steps: int
) -> tuple[Outcome, int]:
    """Place all of the demand or nothing of it, in so many steps; return what it took of them."""
    resources = dict(sorted(needed(demand).items()))
    groups = PartedGroups.of_groups([_group(*each, resources) for each in demand])
    budget = StepBudget(max(0, steps) // DEVICE_STEPS)
    far = DevicesOfSeveralNodes(devices.pending, partial(_reached, room, devices), devices.rules)
    found: Verdict = NoPlacement((), ())
    for offers in _portions(demand, resources, room, budget):
        parted = (replace(offer, most=groups.most(offer.most)) for offer in offers)
        answer = foresee(groups.parts, parted, devices.rules, budget, far.left, devices.kept)
        found = groups.joined(answer)
        if isinstance(found, Foreseen) and not any(found.waves):
            break
    if isinstance(found, NoPlacement):
        found = _with_unknown_classes(found, demand, devices.rules)
    spent = min(steps, steps - budget.left * DEVICE_STEPS)
    if isinstance(found, Foreseen):
        return _placed(demand, room, devices, found), spent
    return found, spent


def _reached(room: FreeCapacity, devices: DeviceRoom, name: str) -> NodeDevices | None:
    """Return the devices that a node reaches; None where there is no such node."""
    at = room.columns.index.get(name)
    return None if at is None else devices.nodes.of(room.columns.traits.nodes[at])


def _with_unknown_classes(found: NoPlacement, demand: Demand, rules: Rules) -> NoPlacement:
    """Name the classes that do not exist: nodes without devices are not asked."""
    refusals = []
    for (shape, _), known in zip(demand, found.refusals or [()] * len(demand), strict=True):
        asked = (each.device_class for each in requests_of(shape.restrictions.most_claims))
        unknown = (NotAllocated(Refusal.UNKNOWN_CLASS, n) for n in asked if n not in rules.classes)
        refusals.append(tuple(dict.fromkeys((*known, *unknown))))
    return replace(found, refusals=tuple(refusals))


def _group(shape: PodShape, count: int, resources: Iterable[str]) -> ClaimGroup:
    """Return pods of one shape as a group; those who share claims are tied to each other."""
    added, requests = shape.restrictions, _amounts(dict(shape.requests), resources)
    tie = added.shared_claims or None
    return ClaimGroup(added.claims, count, requests, tie, added.by_class)


def _amounts(requests: Mapping[str, int], resources: Iterable[str]) -> tuple[int, ...]:
    return tuple(min(requests.get(each, 0), LIMIT) for each in resources)


def _portions(
    demand: Demand, resources: Mapping[str, int], room: FreeCapacity, steps: StepBudget
) -> Iterator[Iterable[NodeOffer]]:
    """Yield the first nodes that take a pod of the demand, then more and more, at last all.

    Those that take pods which claim devices come before the others.

    Where the first will do for all pods, the devices of the others are not looked at. What is free
    is looked at as far as the demand could use it, so that most nodes are alike. Nodes with fewer
    devices left than one pod claims are left out.
    """
    wanted = np.array([[count] for _, count in demand])
    kinds = _kinds([shape.restrictions.claims for shape, _ in demand])
    counts = np.minimum([_counts(shape, kinds, room) for shape, _ in demand], wanted)
    claiming = [shape.restrictions.claims_devices for shape, _ in demand]
    of_claims = counts[claiming].max(axis=0, initial=0) > 0
    others = (counts.max(axis=0) > 0) & ~of_claims
    at = np.concatenate((np.flatnonzero(of_claims), np.flatnonzero(others)))
    size = FIRST_NODES
    while size < len(at):
        yield _offers(demand, resources, room, at[:size], counts, steps)
        size *= 8
    yield _offers(demand, resources, room, at, counts, steps)


def _kinds(claims: Iterable[Claims]) -> Kinds:
    return tuple(dict.fromkeys(filter(None, claims)))


def _counts(shape: PodShape, kinds: Kinds, room: FreeCapacity) -> Amounts:
    """Return how many pods fit on each node, by their requests and the devices there."""
    added, devices, columns = shape.restrictions, room.devices, room.columns
    counts = room.counts(shape)
    if added.shared_claims or devices is None or not least_of(added.claims):
        return counts
    most = devices.most_on(kinds, added.claims, columns.nodes, columns.index)
    return np.minimum(counts, most)


def _offers(
    demand: Demand,
    resources: Mapping[str, int],
    room: FreeCapacity,
    at: Positions,
    counts: Amounts,
    steps: StepBudget,
) -> Iterator[NodeOffer]:
    """Yield these nodes, those together that are alike in all."""
    for lacking, some in _by_lacking(demand, at, room.columns.traits):
        free = _free(resources, room, some)
        yield from _offers_lacking(lacking, demand, room, some, (counts[:, some], free), steps)


def _offers_lacking(
    lacking: frozenset[str],
    demand: Demand,
    room: FreeCapacity,
    at: Positions,
    counted: tuple[Amounts, Amounts],
    steps: StepBudget,
) -> Iterator[NodeOffer]:
    """Yield nodes on which the same resources are given by devices."""
    devices, nodes = room.devices, room.columns.traits.nodes
    assert devices is not None, "asked for where devices are known"
    counts, free = counted
    whole = sum(count for _, count in demand)
    claimed = [shape.restrictions.claims_where(lacking) for shape, _ in demand]
    kinds = _kinds(claimed)
    takes: Mask = np.any(counts[list(map(bool, claimed))], axis=0)
    alike = np.full((2, len(at)), -1, dtype=np.int64)  # without a look where no claim is for
    alike[:, takes] = _patterns(kinds, room, at[takes], devices, steps)
    for members in _grouped((*alike, *counts, *free)):
        names = [nodes[each].name for each in at[members[:whole]].tolist()]
        one = int(members[0])
        most, left = tuple(counts[:, one].tolist()), tuple(free[:, one].tolist())
        coming = devices.pending.get(names[0], ()) if takes[one] else ()
        number, node = int(alike[0, one]), nodes[int(at[one])]
        here = devices.nodes.of(node) if number < 0 else devices.nodes.examples[number]
        yield NodeOffer(names, here, most, left, coming, lacking)


def _by_lacking(
    demand: Demand, at: Positions, traits: NodeAttributes
) -> Iterator[tuple[frozenset[str], Positions]]:
    """Part nodes by which of the resources that classes give they list none of."""
    by_class = dict.fromkeys(shape.restrictions.by_class for shape, _ in demand)
    names = dict.fromkeys(chain.from_iterable(map(resources_of, by_class)))
    rows = [lists_none(name, traits)[at].astype(np.int64) for name in names]
    if not rows:
        yield frozenset(), at
        return
    for members in _grouped(rows):
        lacking = (name for name, row in zip(names, rows, strict=True) if row[members[0]])
        yield frozenset(lacking), at[members]


def _grouped(rows: Iterable[Amounts]) -> list[Positions]:
    """Return the positions at which all rows are equal, each group in order."""
    found = list(rows)
    told = [row.tolist() for row in found if (row != row[:1]).any()]
    if not told:
        return [np.arange(len(found[0]), dtype=np.intp)] if len(found[0]) else []
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for at, values in enumerate(zip(*told, strict=True)):
        groups[values].append(at)
    return [np.array(members, dtype=np.intp) for members in groups.values()]


def _patterns(
    kinds: Kinds, room: FreeCapacity, at: Positions, devices: DeviceRoom, steps: StepBudget
) -> tuple[Amounts, Amounts]:
    """Return two numbers for each node, equal where such pods find the same devices."""
    nodes = room.columns.traits.nodes
    numbers = devices.nodes.alike(kinds, nodes, at, steps)
    coming = np.zeros(len(at), dtype=np.int64)
    seen: dict[Pending, int] = {}
    for here, each in enumerate(at.tolist() if devices.pending else ()):
        pods = devices.pending.get(nodes[each].name, ())
        if not pods:
            continue
        both = tuple(dict.fromkeys((*kinds, *(claims for claims, _ in pods))))
        if both != kinds:
            [numbers[here]] = devices.nodes.alike(both, nodes, at[here : here + 1], steps)
        coming[here] = seen.setdefault(pods, 1 + len(seen))
    return numbers, coming


def _free(resources: Mapping[str, int], room: FreeCapacity, at: Positions) -> Amounts:
    """Return what is free of each resource on some nodes, no more than all of the demand takes."""
    zero = np.zeros(len(at), dtype=np.int64)
    lefts = ((room.left(name), min(most, LIMIT)) for name, most in resources.items())
    return np.array([zero if left is None else np.minimum(left[at], most) for left, most in lefts])


def claims_on(shape: PodShape, node: Node) -> Claims:
    """Return what a pod claims on a node."""
    added = shape.restrictions
    names = resources_of(added.by_class)
    return added.claims_where(frozenset(n for n in names if not node.allocatable.get(n)))


def _placed(
    demand: Demand, room: FreeCapacity, devices: DeviceRoom, found: Foreseen
) -> PlacedWithDevices:
    index = room.columns.index
    distributions = []
    shared: set[tuple[str, ...]] = set()
    for at, (shape, _) in enumerate(demand):
        pods = {node: mix[at] for node, mix in found.placement if mix[at]}
        nodes = np.array([index[node] for node in pods], dtype=np.intp)
        distributions.append(Distribution(nodes, np.array(list(pods.values()), dtype=np.int64)))
        room = room.without(shape, distributions[-1])
        added = shape.restrictions
        if added.claims_devices and added.shared_claims not in shared:
            alone = dict.fromkeys(pods, 1) if added.shared_claims else pods
            devices = _with_pods(shape, nodes, alone, devices, room)
        shared |= {added.shared_claims} - {()}
    return PlacedWithDevices(tuple(distributions), found.waves, room.with_devices(devices))


def _with_pods(
    shape: PodShape,
    nodes: Positions,
    pods: Mapping[str, int],
    devices: DeviceRoom,
    room: FreeCapacity,
) -> DeviceRoom:
    """Return what is left when so many pods of a shape are to come, by node."""
    for lacking, some in _by_lacking(((shape, 1),), nodes, room.columns.traits):
        here = {room.columns.names[each]: pods[room.columns.names[each]] for each in some.tolist()}
        claims = shape.restrictions.claims_where(lacking)
        devices = devices.with_pods(claims, here) if claims else devices
    return devices
