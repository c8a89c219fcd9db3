"""Which nodes may run pods of a shape, room left aside, and what speaks against the others?

Each predicate follows the plugin of kube-scheduler 1.36 of the same name and is asked in the
scheduler's order, after Muster's own: the domain that a gang is held to, and the nodes that it is
to avoid; a node counts for the first that refuses it. A predicate is asked once per class of nodes
(equal taints, equal value of a label), not once per node, and its mask is remembered until a node
changes.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import partial, reduce
from operator import eq

import numpy as np

from scheduling.columns import Columns, Mask, Positions, Traits
from scheduling.counting import pods_per_node
from scheduling.model import (
    NODE_NAME,
    Node,
    NodeTerm,
    PodShape,
    Reach,
    Requirement,
    Taint,
    Toleration,
)
from scheduling.ports import pods_by_ports


class Predicate(StrEnum):
    """What can speak against a node, in the order in which it is asked."""

    TOPOLOGY = "Topology"
    AVOIDED = "Avoided"
    CORDON = "NodeUnschedulable"
    TAINT = "TaintToleration"
    ADDED_AFFINITY = "AddedAffinity"
    NODE_SELECTOR = "NodeSelector"
    NODE_AFFINITY = "NodeAffinity"
    SPREAD = "PodTopologySpread"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    VOLUME_LIMITS = "NodeVolumeLimits"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_ZONE = "VolumeZone"
    COMPANY = "InterPodAffinity"
    FEATURES = "NodeDeclaredFeatures"
    RESOURCES = "NodeResourcesFit"


VOLUME_PREDICATES = (
    Predicate.VOLUME_RESTRICTIONS,
    Predicate.VOLUME_LIMITS,
    Predicate.VOLUME_BINDING,
    Predicate.VOLUME_ZONE,
)
"""Those that a shape's `reach` speaks of."""

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""What a pod must tolerate to run on a cordoned node (plugin NodeUnschedulable)."""

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def feasible(shape: PodShape, columns: Columns) -> Mask:
    """Return the nodes that no predicate but room refuses; the mask is shared, not yours."""
    return columns.traits.remembered(
        ("feasible", shape.told_apart_by),
        lambda: reduce(np.logical_and, masks(shape, columns.traits).values()),
    )


def feasible_nodes(shape: PodShape, columns: Columns) -> Positions:
    """Return where the nodes are that no predicate but room refuses; shared, not yours."""
    return columns.traits.remembered(
        ("feasible nodes", shape.told_apart_by), lambda: np.flatnonzero(feasible(shape, columns))
    )


def is_feasible_somewhere(shape: PodShape, columns: Columns) -> bool:
    """Say whether there is a node that no predicate but room refuses."""
    return len(feasible_nodes(shape, columns)) > 0


def is_feasible_everywhere(shape: PodShape, columns: Columns) -> bool:
    """Say whether no predicate but room refuses any node."""
    return len(feasible_nodes(shape, columns)) == len(columns.names)


def rejections(shape: PodShape, columns: Columns) -> dict[Predicate, int]:
    """Return how many nodes each predicate refuses before any other does, room asked last."""
    room = pods_per_node(shape.counted, columns.row, columns.free) > 0
    if shape.ports:
        room &= pods_by_ports(shape.ports, columns.ports, columns.index) > 0
    counts: dict[Predicate, int] = {}
    left = np.ones(len(columns.names), dtype=np.bool_)
    for predicate, mask in (masks(shape, columns.traits) | {Predicate.RESOURCES: room}).items():
        counts[predicate] = int(np.count_nonzero(left & ~mask))
        left &= mask
    return {predicate: count for predicate, count in counts.items() if count}


def masks(shape: PodShape, traits: Traits) -> dict[Predicate, Mask]:
    """Return per predicate, in order, the nodes that it lets pass."""
    tolerations, selector, terms = shape.tolerations, shape.node_selector, shape.node_affinity
    added = shape.added_affinity
    return {
        **({Predicate.TOPOLOGY: bounded(shape.inside, traits)} if shape.inside else {}),
        **({Predicate.AVOIDED: _unavoided(shape.avoided, traits)} if shape.avoided else {}),
        Predicate.CORDON: traits.remembered(
            (Predicate.CORDON, tolerations), lambda: _uncordoned(tolerations, traits)
        ),
        Predicate.TAINT: traits.remembered(
            (Predicate.TAINT, tolerations), lambda: _untainted(tolerations, traits)
        ),
        Predicate.ADDED_AFFINITY: traits.remembered(
            (Predicate.NODE_AFFINITY, added), lambda: _attracted(added, traits)
        ),
        Predicate.NODE_SELECTOR: traits.remembered(
            (Predicate.NODE_SELECTOR, selector), lambda: _selected(selector, traits)
        ),
        Predicate.NODE_AFFINITY: traits.remembered(
            (Predicate.NODE_AFFINITY, terms), lambda: _attracted(terms, traits)
        ),
        **({Predicate.SPREAD: _has_domains(shape, traits)} if shape.spread else {}),
        **_reached(shape.reach, traits),
        **({Predicate.COMPANY: bounded(shape.bounds, traits)} if shape.bounds else {}),
        Predicate.FEATURES: traits.remembered(
            (Predicate.FEATURES, shape.features), lambda: _able(shape.features, traits)
        ),
    }


def _able(features: tuple[str, ...], traits: Traits) -> Mask:
    """Return the nodes that declare all of the features; most pods need none."""
    if not features:
        return np.ones(len(traits.nodes), dtype=np.bool_)
    return np.array([node.features.issuperset(features) for node in traits.nodes], dtype=np.bool_)


def _unavoided(avoided: tuple[str, ...], traits: Traits) -> Mask:
    """Return the nodes that are not among those to avoid."""
    return bounded((Requirement(NODE_NAME, "NotIn", avoided),), traits)


def _has_domains(shape: PodShape, traits: Traits) -> Mask:
    """Return the nodes that have the keys of all spread constraints."""
    mask = np.ones(len(traits.nodes), dtype=np.bool_)
    for constraint in shape.spread:
        mask &= traits.label(constraint.counted.key).where(lambda value: value is not None)
    return mask


def _reached(reach: tuple[Reach, ...], traits: Traits) -> dict[Predicate, Mask]:
    """Return per predicate that asks for volumes the nodes that reach all of them."""
    masks: dict[Predicate, Mask] = {}
    for predicate in VOLUME_PREDICATES:
        for each in (found for found in reach if found.predicate == predicate):
            reached = traits.remembered(
                ("reach", each.terms), partial(_attracted, each.terms, traits)
            )
            masks[predicate] = masks[predicate] & reached if predicate in masks else reached
    return masks


def bounded(bounds: tuple[Requirement, ...], traits: Traits) -> Mask:
    """Return the nodes that all bounds (In and NotIn) allow; In without values allows none."""
    mask = np.ones(len(traits.nodes), dtype=np.bool_)
    for bound in bounds:
        inside = traits.label(bound.key).among(bound.values)
        mask &= inside if bound.operator == "In" else ~inside
    return mask


def _uncordoned(tolerations: tuple[Toleration, ...], traits: Traits) -> Mask:
    may_enter = tolerates(tolerations, UNSCHEDULABLE_TAINT)
    return traits.taints.where(lambda cordoned, _: may_enter or not cordoned)


def _untainted(tolerations: tuple[Toleration, ...], traits: Traits) -> Mask:
    return traits.taints.where(
        lambda _, taints: all(
            taint.effect == "PreferNoSchedule" or tolerates(tolerations, taint) for taint in taints
        )
    )


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Say whether one of the tolerations covers the taint (ToleratesTaint of k8s.io/api).

    Lt and Gt never do: their feature gate TaintTolerationComparisonOperators is off in 1.36.
    """
    return any(
        each.effect in ("", taint.effect)
        and each.key in ("", taint.key)
        and (
            each.operator == "Exists"
            or (each.operator in ("", "Equal") and each.value == taint.value)
        )
        for each in tolerations
    )


def _selected(selector: tuple[tuple[str, str], ...], traits: Traits) -> Mask:
    mask = np.ones(len(traits.nodes), dtype=np.bool_)
    for key, wanted in selector:
        mask &= traits.label(key).where(partial(eq, wanted))
    return mask


def _attracted(terms: tuple[NodeTerm, ...] | None, traits: Traits) -> Mask:
    """Return the nodes that one of the terms matches; all where there is no affinity."""
    if terms is None:
        return np.ones(len(traits.nodes), dtype=np.bool_)
    mask = np.zeros(len(traits.nodes), dtype=np.bool_)
    for term in terms:
        mask |= _matched(term, traits)
    return mask


def _matched(term: NodeTerm, traits: Traits) -> Mask:
    """Return the nodes that satisfy all of a term; an empty term matches nothing."""
    mask = np.full(len(traits.nodes), bool(term.labels or term.fields))
    for label in term.labels:
        mask &= traits.remembered(label, partial(_labelled, label, traits))
    for field in term.fields:
        mask &= _named(field, traits)
    return mask


def matches(term: NodeTerm, node: Node) -> bool:
    """Say whether one node satisfies all labels of a term that asks for nothing else."""
    return bool(term.labels) and all(_satisfies(each, node) for each in term.labels)


def _satisfies(requirement: Requirement, node: Node) -> bool:
    value = node.labels.get(requirement.key)
    match requirement.operator if _parses(requirement) else "":
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "":
            return False
        case _:
            return _holds(requirement, value)


def _labelled(requirement: Requirement, traits: Traits) -> Mask:
    """Return the nodes whose label satisfies the requirement.

    A requirement that the scheduler cannot parse makes its whole term match nothing
    (component-helpers nodeaffinity.go), so NotIn without values is no "everything but nothing".
    """
    if requirement.key == NODE_NAME:
        return bounded((requirement,), traits)
    if not _parses(requirement):
        return np.zeros(len(traits.nodes), dtype=np.bool_)
    column = traits.label(requirement.key)
    match requirement.operator:
        case "In":
            return column.among(requirement.values)
        case "NotIn":
            return ~column.among(requirement.values)
        case _:
            return column.where(lambda value: _holds(requirement, value))


def _parses(requirement: Requirement) -> bool:
    values = requirement.values
    match requirement.operator if requirement.key else "":
        case "In" | "NotIn":
            return bool(values) and all(_LABEL_VALUE.fullmatch(value) for value in values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and _integer(values[0]) is not None
        case _:
            return False


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _compares(requirement, value)


def _compares(requirement: Requirement, value: str | None) -> bool:
    """Compare as Gt or Lt; a node whose value is no integer does not match."""
    bound, found = _integer(requirement.values[0]), _integer(value)
    if bound is None or found is None:
        return False
    return found > bound if requirement.operator == "Gt" else found < bound


def _integer(text: str | None) -> int | None:
    """Parse as Go's strconv.ParseInt(text, 10, 64) does; None where it would fail."""
    if text is None or len(text) > 63 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _named(requirement: Requirement, traits: Traits) -> Mask:
    """Return the nodes whose metadata.name matches; the API knows no other field here."""
    wanted = requirement.operator == "In"
    if (
        requirement.key != "metadata.name"
        or requirement.operator not in ("In", "NotIn")
        or len(requirement.values) != 1
    ):
        return np.zeros(len(traits.nodes), dtype=np.bool_)
    mask = np.full(len(traits.nodes), not wanted)
    position = traits.index.get(requirement.values[0])
    if position is not None:
        mask[position] = wanted
    return mask
