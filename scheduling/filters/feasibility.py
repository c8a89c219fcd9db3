"""Runs all filters except free capacity on a pod shape, in the order of kube-scheduler.

Each predicate follows the plugin of kube-scheduler 1.36 of the same name and is asked in the
scheduler's order, after Muster's own: the domain that a gang is held to, the nodes of its queue,
those that it is to avoid, and those that are taken away; a node counts for the first that refuses
it. A predicate is asked once per class of nodes (equal taints, equal value of a label), not once
per node, and its mask is remembered until a node changes.
"""

from functools import partial, reduce

import numpy as np

from scheduling.filters.node_affinity import attracted, bounded, selected
from scheduling.filters.node_declared_features import able
from scheduling.filters.node_ports import pods_by_ports
from scheduling.filters.node_removal import staying
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.filters.node_unschedulable import uncordoned
from scheduling.filters.taint_toleration import untainted
from scheduling.model.amounts import Mask, Positions
from scheduling.model.constraints import NODE_NAME, Requirement, VolumeNodeRestriction
from scheduling.model.pod import PodShape
from scheduling.model.predicates import VOLUME_PREDICATES, Predicate
from scheduling.model.shape.restrictions import NodeRestrictions
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot


def feasible(shape: PodShape, columns: NodeSnapshot) -> Mask:
    """Return the nodes that no predicate but room refuses; the mask is shared, not yours."""
    return columns.traits.remembered(
        ("feasible", shape.scheduling_key),
        lambda: reduce(np.logical_and, masks(shape, columns.traits).values()),
    )


def feasible_nodes(shape: PodShape, columns: NodeSnapshot) -> Positions:
    """Return where the nodes are that no predicate but room refuses; shared, not yours."""
    return columns.traits.remembered(
        ("feasible nodes", shape.scheduling_key), lambda: np.flatnonzero(feasible(shape, columns))
    )


def is_feasible_somewhere(shape: PodShape, columns: NodeSnapshot) -> bool:
    """Say whether there is a node that no predicate but room refuses."""
    return len(feasible_nodes(shape, columns)) > 0


def is_feasible_everywhere(shape: PodShape, columns: NodeSnapshot) -> bool:
    """Say whether no predicate but room refuses any node."""
    return len(feasible_nodes(shape, columns)) == len(columns.names)


def rejections(shape: PodShape, columns: NodeSnapshot) -> dict[Predicate, int]:
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


def masks(shape: PodShape, traits: NodeAttributes) -> dict[Predicate, Mask]:
    """Return per predicate, in order, the nodes that it lets pass."""
    tolerations, selector, terms = shape.tolerations, shape.node_selector, shape.node_affinity
    added, now = shape.added_affinity, shape.restrictions
    return {
        **({Predicate.TOPOLOGY: bounded(now.topology, traits)} if now.topology else {}),
        **({Predicate.QUEUE: selected(now.queue, traits)} if now.queue else {}),
        **({Predicate.AVOIDED: _unavoided(now.avoided, traits)} if now.avoided else {}),
        **_left_in_place(traits),
        Predicate.CORDON: traits.remembered(
            (Predicate.CORDON, tolerations), lambda: uncordoned(tolerations, traits)
        ),
        Predicate.TAINT: traits.remembered(
            (Predicate.TAINT, tolerations), lambda: untainted(tolerations, traits)
        ),
        Predicate.ADDED_AFFINITY: traits.remembered(
            (Predicate.NODE_AFFINITY, added), lambda: attracted(added, traits)
        ),
        Predicate.NODE_SELECTOR: traits.remembered(
            (Predicate.NODE_SELECTOR, selector), lambda: selected(selector, traits)
        ),
        Predicate.NODE_AFFINITY: traits.remembered(
            (Predicate.NODE_AFFINITY, terms), lambda: attracted(terms, traits)
        ),
        **({Predicate.SPREAD: _has_domains(shape, traits)} if shape.spread else {}),
        **_reached(now.volumes, traits),
        **_beside_existing_pods(now.existing_pods, traits),
        **({Predicate.DEVICES: _with_devices(now, traits)} if now.claimed_from else {}),
        Predicate.FEATURES: traits.remembered(
            (Predicate.FEATURES, shape.features), lambda: able(shape.features, traits)
        ),
    }


def _left_in_place(traits: NodeAttributes) -> dict[Predicate, Mask]:
    """Return the nodes that are not taken away, if any is."""
    mask = staying(traits)
    return {Predicate.REMOVAL: mask} if mask is not None else {}


def _unavoided(avoided: tuple[str, ...], traits: NodeAttributes) -> Mask:
    """Return the nodes that are not among those to avoid."""
    return bounded((Requirement(NODE_NAME, "NotIn", avoided),), traits)


def _has_domains(shape: PodShape, traits: NodeAttributes) -> Mask:
    """Return the nodes that have the keys of all spread constraints."""
    mask = np.ones(len(traits.nodes), dtype=np.bool_)
    for constraint in shape.spread:
        mask &= traits.label(constraint.counted.key).where(lambda value: value is not None)
    return mask


def _beside_existing_pods(
    allowed: tuple[Requirement, ...], traits: NodeAttributes
) -> dict[Predicate, Mask]:
    """Return the nodes that affinity and anti-affinity of existing pods leave, if they say any."""
    return {Predicate.INTER_POD_AFFINITY: bounded(allowed, traits)} if allowed else {}


def _with_devices(now: NodeRestrictions, traits: NodeAttributes) -> Mask:
    """Return the nodes that reach the devices of all claims that have some."""
    terms = (each for _, each in now.claimed_from)
    return reduce(np.logical_and, (attracted(each, traits) for each in terms))


def _reached(
    volumes: tuple[VolumeNodeRestriction, ...], traits: NodeAttributes
) -> dict[Predicate, Mask]:
    """Return per predicate that asks for volumes the nodes that reach all of them."""
    masks: dict[Predicate, Mask] = {}
    for predicate in VOLUME_PREDICATES:
        for each in (found for found in volumes if found.predicate == predicate):
            reached = traits.remembered(
                ("reach", each.terms), partial(attracted, each.terms, traits)
            )
            masks[predicate] = masks[predicate] & reached if predicate in masks else reached
    return masks
