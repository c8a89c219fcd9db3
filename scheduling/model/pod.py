"""A pod shape: all of a pod that matters to the scheduler.

Everything here is a value: frozen, compared by content, free of clocks and clients. Amounts
are whole numbers: milli-CPU for `cpu`, base units (bytes, devices, pods) for the rest.
A pod's request for one pod slot is written into its requests as `pods: 1`, so that slots
are one more resource and no special case.
"""

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from scheduling.model.constraints import (
    HashedOnce,
    NodeTerm,
    PodTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
    VolumeNodeRestriction,
)
from scheduling.model.host_ports import is_port

LOWEST_PRIORITY, HIGHEST_PRIORITY = -(2**31), 2**31 - 1
"""Priorities are of 32 bits."""


@dataclass(frozen=True)
class PodShape:
    """What of a pod matters to the scheduler: pods of one shape are interchangeable.

    `requests` is sorted by resource name, without zeros, `pods: 1` included. `node_affinity`
    is the ORed list of required terms; None where the pod has no required node affinity (an
    empty tuple would match nothing), `added_affinity` the same of what the pod's scheduler adds of
    itself: a node must match one of each. `features` are those that a node must declare, sorted.
    `unsupported` names the constraints of the pod that the core does not model, sorted; such a
    shape is never placed. `near` and `apart` are the terms of required affinity and anti-affinity
    between pods, `spread` how they are to be spread. `volumes` names the claims that pods of the
    shape mount, and their generic ephemeral volumes, sorted.

    `bounds`, `inside` and `reach` are no part of the pod, and no part of the key either: they are
    what pods around (`inter_pod_affinity`) and volumes (`volume_binding`) leave of the choice of
    nodes at one moment, and the domain that its gang is tried in (`gang_topology`). Nor is
    `avoided`: nodes, sorted, that are not to be tried now, for whatever reason the caller has.
    `came_as` is the key of the shape before its volumes were looked at.
    """

    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    added_affinity: tuple[NodeTerm, ...] | None = None
    features: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[str, ...] = ()
    bounds: tuple[Requirement, ...] = ()
    inside: tuple[Requirement, ...] = ()
    reach: tuple[VolumeNodeRestriction, ...] = ()
    avoided: tuple[str, ...] = field(default=(), repr=False)
    came_as: str = ""

    @cached_property
    def key(self) -> str:
        """Short content hash, equal in every process: a placement names shapes by it."""
        if self.came_as:
            return self.came_as
        if self.bounds or self.inside:
            return replace(self, bounds=(), inside=()).key
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    @cached_property
    def scheduling_key(self) -> HashedOnce[Hashable]:
        """Return all of it that tells nodes apart, the room on them left aside."""
        terms = self.node_affinity, self.added_affinity
        keys = tuple(each.counted.key for each in self.spread)
        reach = tuple((each.predicate, each.terms) for each in self.reach)
        rest = self.features, keys, self.bounds, self.inside, self.avoided, reach
        return HashedOnce((self.tolerations, self.node_selector, *terms, *rest))

    @cached_property
    def fitting(self) -> HashedOnce[Hashable]:
        """Return all of it that says how often it fits on each node: many shapes have it equal."""
        return HashedOnce((self.requests, self.scheduling_key))

    @cached_property
    def amounts(self) -> Mapping[str, int]:
        """Return its requests by resource."""
        return dict(self.requests)

    @cached_property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """Return the host ports among its requests."""
        return tuple(each for each in self.requests if is_port(each[0]))

    @cached_property
    def counted(self) -> tuple[tuple[str, int], ...]:
        """Return its requests without host ports: what nodes have in numbers."""
        if not self.ports:
            return self.requests
        return tuple(each for each in self.requests if not is_port(each[0]))

    @property
    def pinned_spread(self) -> tuple[PodTerm, ...]:
        """Return whom the constraints count that bind the pod even when it is pinned."""
        return tuple(each.counted for each in self.spread if each.binds_pinned)

    def __hash__(self) -> int:
        """Hash once per object: a cycle looks shapes up thousands of times."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        terms = (self.node_affinity, self.added_affinity)
        moment = (self.bounds, self.inside, self.reach, self.avoided)
        rest = (self.tolerations, self.features, self.volumes, *moment)
        return hash((self.requests, self.node_selector, *terms, *rest))


class Mount(NamedTuple):
    """A claim that a pod mounts; of a generic ephemeral volume also its name and the pod's uid."""

    claim: str
    volume: str = ""
    owner: str = ""
