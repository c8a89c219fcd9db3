"""Adds to a pod shape the node restrictions of one moment; no other module writes them.

Existing pods, topology and queue of a gang, volumes and the caller each have a function here. None
of them changes what the pod says itself, so the key of the shape stays.
"""

from collections.abc import Mapping
from dataclasses import replace

from scheduling.model.amounts import sorted_requests
from scheduling.model.constraints import (
    NodeTerm,
    Requirement,
    VolumeNodeRestriction,
)
from scheduling.model.devices.class_requests import ClassRequests
from scheduling.model.pod import PodShape
from scheduling.model.shape.restrictions import UNRESTRICTED, Claims


def beside_existing_pods(shape: PodShape, allowed: tuple[Requirement, ...]) -> PodShape:
    """Return the shape restricted to label values that existing pods leave to it."""
    return replace(shape, restrictions=replace(shape.restrictions, existing_pods=allowed))


def inside_domain(shape: PodShape, required: tuple[Requirement, ...]) -> PodShape:
    """Return the shape restricted to one more domain of a label."""
    if not required:
        return shape
    topology = (*shape.restrictions.topology, *required)
    return replace(shape, restrictions=replace(shape.restrictions, topology=topology))


def in_any_domain(shape: PodShape) -> PodShape:
    """Return the shape without the domains that it is restricted to."""
    return replace(shape, restrictions=replace(shape.restrictions, topology=()))


def with_volumes(
    shape: PodShape,
    volumes: tuple[VolumeNodeRestriction, ...],
    disks: Mapping[str, int],
    unsupported: tuple[str, ...],
) -> PodShape:
    """Return the shape with what its volumes add now, in place of what they added before."""
    added = replace(
        shape.restrictions,
        volumes=volumes,
        disks=sorted_requests(disks),
        unsupported_volumes=unsupported,
    )
    return replace(shape, restrictions=added)


def without_disks(shape: PodShape, taken: Mapping[str, int]) -> PodShape:
    """Return the shape less some of the disks that it takes of its node."""
    left = {row: count - taken.get(row, 0) for row, count in shape.restrictions.disks}
    return replace(shape, restrictions=replace(shape.restrictions, disks=sorted_requests(left)))


def with_claims(
    shape: PodShape,
    claims: Claims,
    claimed_from: tuple[tuple[str, tuple[NodeTerm, ...]], ...],
    shared: tuple[str, ...] = (),
    by_class: ClassRequests = (),
) -> PodShape:
    """Return the shape with what its claims of devices add now, in place of what they added."""
    added = replace(
        shape.restrictions,
        claims=claims,
        by_class=by_class,
        claimed_from=claimed_from,
        shared_claims=shared,
    )
    return replace(shape, restrictions=added)


def avoiding(shape: PodShape, nodes: tuple[str, ...]) -> PodShape:
    """Return the shape with nodes, sorted, that are ruled out for now."""
    return replace(shape, restrictions=replace(shape.restrictions, avoided=nodes))


def on_nodes_of_queue(shape: PodShape, labels: tuple[tuple[str, str], ...]) -> PodShape:
    """Return the shape held to nodes with all these labels, sorted, which its queue asks for."""
    return replace(shape, restrictions=replace(shape.restrictions, queue=labels))


def lasting(shape: PodShape) -> PodShape:
    """Return what does not pass by itself: what the pod and its queue say."""
    return replace(shape, restrictions=replace(UNRESTRICTED, queue=shape.restrictions.queue))
