"""A pod shape: all of a pod that matters to the scheduler.

Everything here is a value: frozen, compared by content, free of clocks and clients. Amounts
are whole numbers: milli-CPU for `cpu`, base units (bytes, devices, pods) for the rest.
A pod's request for one pod slot is written into its requests as `pods: 1`, so that slots
are one more resource and no special case.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from scheduling.model.amounts import Requests, sorted_requests
from scheduling.model.constraints import (
    HashedOnce,
    NodeTerm,
    PodTerm,
    SpreadConstraint,
    Toleration,
)
from scheduling.model.restrictions import UNRESTRICTED, NodeRestrictions
from scheduling.model.shape.host_ports import is_port
from scheduling.model.shape.key import shape_key

LOWEST_PRIORITY, HIGHEST_PRIORITY = -(2**31), 2**31 - 1
"""Priorities are of 32 bits."""


@dataclass(frozen=True)
class PodShape:
    """What of a pod matters to the scheduler: pods of one shape are interchangeable.

    `own_requests` is sorted by resource name, without zeros, `pods: 1` included. `node_affinity`
    is the ORed list of required terms; None where the pod has no required node affinity (an
    empty tuple would match nothing), `added_affinity` the same of what the pod's scheduler adds of
    itself: a node must match one of each. `features` are those that a node must declare, sorted.
    `own_unsupported` names the constraints of the pod that the core does not model, sorted; such a
    shape is never placed. `affinity` and `anti_affinity` are the required terms between pods,
    `spread` the topology spread constraints. `volumes` names the claims that pods of the shape
    mount, and their generic ephemeral volumes, sorted.

    `restrictions` is no part of the pod, and so no part of the key: it is what existing pods, the
    topology of the gang, its queue, volumes and the caller add at one moment (`node_restrictions`).
    """

    own_requests: Requests
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    added_affinity: tuple[NodeTerm, ...] | None = None
    features: tuple[str, ...] = ()
    own_unsupported: tuple[str, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[str, ...] = ()
    restrictions: NodeRestrictions = field(default=UNRESTRICTED, repr=False)

    @cached_property
    def key(self) -> str:
        """Short content hash of the pod's own part; a placement names shapes by it."""
        return shape_key(self)

    @cached_property
    def requests(self) -> Requests:
        """Return what a pod takes of its node: its own requests, and its disks."""
        if not self.restrictions.disks:
            return self.own_requests
        return sorted_requests(dict((*self.own_requests, *self.restrictions.disks)))

    @cached_property
    def unsupported(self) -> tuple[str, ...]:
        """Return the constraints that are not modelled, those by volumes among them, sorted."""
        if not self.restrictions.unsupported_volumes:
            return self.own_unsupported
        return tuple(sorted({*self.own_unsupported, *self.restrictions.unsupported_volumes}))

    @cached_property
    def scheduling_key(self) -> HashedOnce[Hashable]:
        """Return all of it that a node can suit or not, free capacity left aside."""
        added = self.restrictions
        terms = self.node_affinity, self.added_affinity
        keys = tuple(each.counted.key for each in self.spread)
        volumes = tuple((each.predicate, each.terms) for each in added.volumes)
        held = added.existing_pods, added.topology, added.queue, added.avoided, added.claimed_from
        return HashedOnce(
            (self.tolerations, self.node_selector, *terms, self.features, keys, *held, volumes)
        )

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
        """Return what the spread constraints count that bind the pod even when it is pinned."""
        return tuple(each.counted for each in self.spread if each.binds_pinned)

    def __hash__(self) -> int:
        """Hash once per object: a cycle looks shapes up thousands of times."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        terms = (self.node_affinity, self.added_affinity)
        rest = (self.tolerations, self.features, self.volumes, self.restrictions)
        return hash((self.own_requests, self.node_selector, *terms, *rest))


class Mount(NamedTuple):
    """A claim that a pod mounts; of a generic ephemeral volume also its name and the pod's uid."""

    claim: str
    volume: str = ""
    owner: str = ""
