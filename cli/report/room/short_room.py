"""Finds who holds a resource that a gang lacks, on the nodes that could run its pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cli.report.gangs import queue_of
from cli.report.order import natural
from cli.report.room.sums import Room, Use, key_of, room_of
from cli.report.snapshot import QUEUES, Snapshot
from kube.codec.fields import InvalidObject, quantity, read_amounts
from kube.codec.observed_pod import observe
from kube.codec.queues.queue import read_queue
from kube.objects.core import Pod
from kube.objects.gang import Gang, GangShortage
from scheduling.filters.feasibility import feasible
from scheduling.model.amounts import Mask
from scheduling.model.holder import Holder, gang_holder
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import on_nodes_of_queue
from scheduling.queueing.faults import faults
from scheduling.queueing.queue_nodes import NodeRules, node_rules
from scheduling.queueing.quota_tree import QuotaTree

MOST_HOLDERS = 5
"""How many holders of a resource are named."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a holder has of the resource, in quantities.

    `reserved` is the part for pods that are not bound yet; `frees` is how many more pods of the
    pod set would find the resource if the holder ended.
    """

    holder: Holder
    amount: str
    reserved: str
    frees: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """The holders of the resource that a pod set lacks, on the `nodes` that could run it."""

    resource: str
    nodes: int
    holders: tuple[Holding, ...]
    others: int


def judged(found: Snapshot, gang: Gang, pods: Iterable[Pod]) -> dict[str, Shortage]:
    """Return the shortage of each pod set that has one, by name.

    None of them where nodes or pods cannot be listed, and not those of which no pod exists.
    """
    short = [each for each in gang.status.pod_sets if each.shortage is not None]
    room = room_of(found) if short else None
    if room is None:
        return {}
    shapes, rules = _shapes(pods), _rules(found, gang)
    return {
        each.name: _shortage(room, each.shortage, _allowed(room, shapes[each.name], rules), gang)
        for each in short
        if each.name in shapes and each.shortage and each.shortage.resource in room.nodes.row
    }


def _shapes(pods: Iterable[Pod]) -> dict[str, set[PodShape]]:
    """Return the shapes of the pods that wait, by pod set."""
    found: defaultdict[str, set[PodShape]] = defaultdict(set)
    for pod in map(observe, pods):
        if pod.gated and pod.member is not None and pod.member.shape is not None:
            found[pod.member.pod_set].add(pod.member.shape)
    return dict(found)


def _rules(found: Snapshot, gang: Gang) -> NodeRules:
    """Return the nodes that the gang's queue allows; all where queues cannot be listed."""
    if found.lacks(QUEUES):
        return NodeRules()
    readable = {}
    for each in found.queues:
        try:
            readable[each.metadata.name] = read_queue(each)
        except (InvalidObject, ValueError):
            continue
    broken = faults(readable)
    tree = QuotaTree(each for name, each in readable.items() if name not in broken)
    return node_rules(tree).get(queue_of(gang), NodeRules())


def _allowed(room: Room, shapes: Iterable[PodShape], rules: NodeRules) -> Mask:
    """Return the nodes that no predicate but room refuses to any of the shapes."""
    mask = np.zeros(len(room.nodes.names), dtype=np.bool_)
    for shape in shapes:
        mask |= feasible(on_nodes_of_queue(shape, rules.labels(shape)), room.nodes)
    return mask


def _shortage(room: Room, said: GangShortage, allowed: Mask, gang: Gang) -> Shortage:
    resource = said.resource
    each = max(read_amounts({resource: said.each}, "shortage.each")[resource], 1)
    held = _held(room, resource, allowed)
    held.pop(gang_holder(key_of(gang)), None)
    largest = sorted(held, key=lambda one: (-sum(held[one].values()), natural(str(one))))
    return Shortage(
        resource=resource,
        nodes=int(np.count_nonzero(allowed)),
        holders=tuple(
            Holding(
                one,
                quantity(resource, sum(held[one].values())),
                quantity(resource, _reserved(room, resource, allowed, one)),
                _freed(room, resource, each, held[one]),
            )
            for one in largest[:MOST_HOLDERS]
        ),
        others=max(len(largest) - MOST_HOLDERS, 0),
    )


def _held(room: Room, resource: str, allowed: Mask) -> dict[Holder, Counter[str]]:
    """Return what each holder has of the resource on allowed nodes, by node."""
    found: defaultdict[Holder, Counter[str]] = defaultdict(Counter)
    for use, amount in _uses(room, resource, allowed):
        found[use.holder][use.node] += amount
    return dict(found)


def _uses(room: Room, resource: str, allowed: Mask) -> Iterator[tuple[Use, int]]:
    index = room.nodes.index
    for use in room.uses:
        amount = dict(use.requests).get(resource, 0) * use.pods
        if amount and use.node in index and allowed[index[use.node]]:
            yield use, amount


def _reserved(room: Room, resource: str, allowed: Mask, holder: Holder) -> int:
    return sum(
        amount
        for use, amount in _uses(room, resource, allowed)
        if use.reserved and use.holder == holder
    )


def _freed(room: Room, resource: str, each: int, held: Mapping[str, int]) -> int:
    """Return how many more pods would find the resource if the holder gave all of it back."""
    free, index = room.nodes.free[room.nodes.row[resource]], room.nodes.index
    before = {node: max(int(free[index[node]]), 0) for node in held}
    return sum((before[node] + held[node]) // each - before[node] // each for node in held)
