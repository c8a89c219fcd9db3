"""Foresees what is free on nodes and in quota once gangs have ended or started."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question, SearchSteps
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions, Requests
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.pod import PodShape
from scheduling.queueing.line import requests_of
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods

STEPS = 200_000
"""What one search may take, within what the cycle has."""


@dataclass(frozen=True, eq=False, slots=True)
class RunningGang:
    """A gang that holds room, and when it is expected to give it back.

    `ends` is in seconds on the clock of the cycle, infinite where nothing is said of it. `room` is
    what it holds on the nodes at `nodes` (resources x those), `quota` what it holds of the quota of
    the queue in row `queue`.
    """

    key: GangKey
    ends: float
    nodes: Positions
    room: Amounts
    queue: int
    quota: Amounts


@dataclass(frozen=True, eq=False, slots=True)
class Cluster:
    """The nodes, the pods on them that constrain others, the queues, and the steps of the cycle."""

    nodes: NodeSnapshot
    existing: ExistingPods | None
    tree: QuotaTree
    steps: SearchSteps
    _nodes_of: dict[tuple[PodShape, ...], Mask] = field(default_factory=dict)

    def demand(self, gang: PendingGang) -> Amounts:
        """Return what the minimum of a gang takes of quota."""
        return self.tree.requests(requests_of(gang.minimum))

    def nodes_of(self, groups: Iterable[Group]) -> Mask:
        """Return the nodes that could run a pod of these groups if they were empty."""
        shapes = tuple(dict.fromkeys(each.shape for each in groups))
        if shapes not in self._nodes_of:
            none = np.zeros(len(self.nodes.names), dtype=np.bool_)
            self._nodes_of[shapes] = np.logical_or.reduce([none, *map(self._could_run, shapes)])
        return self._nodes_of[shapes]

    def _could_run(self, shape: PodShape) -> Mask:
        nodes, found = self.nodes, feasible(shape, self.nodes).copy()
        for resource, amount in shape.requests:
            if resource in nodes.row:
                found &= nodes.allocatable[nodes.row[resource]] >= amount
        return found

    def running(
        self, key: GangKey, queue: str, ends: float, room: Iterable[tuple[str, Requests]]
    ) -> RunningGang:
        """Add up what a gang holds on each node, and of the quota of its queue."""
        index, row, tree = self.nodes.index, self.nodes.row, self.tree
        places = [(index[node], amounts) for node, amounts in room if node in index]
        nodes = np.unique(np.array([at for at, _ in places], dtype=np.intp))
        held = np.zeros((len(row), len(nodes)), dtype=np.int64)
        quota = np.zeros(len(tree.resources), dtype=np.int64)
        for at, amounts in places:
            column = int(np.searchsorted(nodes, at))
            for resource, amount in amounts:
                if resource in row:
                    held[row[resource], column] += min(amount, LIMIT)
                if resource in tree.column:
                    quota[tree.column[resource]] += min(amount, LIMIT)
        if queue not in tree.index:  # it is not active: its gangs end, and give no quota back
            return RunningGang(key, ends, nodes, held, 0, np.zeros_like(quota))
        return RunningGang(key, ends, nodes, held, tree.index[queue], quota)


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is free (resources x nodes) and what queues hold (queues x resources) at some time."""

    cluster: Cluster
    free: Amounts
    held: Amounts

    def after(self, ended: Iterable[RunningGang]) -> "Outlook":
        """Return the outlook once these gangs have ended."""
        free, held = self.free.copy(), self.held.copy()
        for each in ended:
            free[:, each.nodes] += each.room
            held[each.queue] -= each.quota
        return replace(self, free=free, held=held)

    def beside(self, gang: RunningGang) -> "Outlook":
        """Return the outlook with one more gang standing."""
        free, held = self.free.copy(), self.held.copy()
        free[:, gang.nodes] -= gang.room
        held[gang.queue] += gang.quota
        return replace(self, free=free, held=held)

    @cached_property
    def _available(self) -> Amounts:
        tree = self.cluster.tree
        return tree.available(tree.used(self.held))

    def short_of(self, gang: PendingGang) -> Mask:
        """Return the resources of which the quota does not cover the minimum of a gang."""
        cluster = self.cluster
        available = self._available[cluster.tree.index[gang.queue]]
        short: Mask = cluster.demand(gang) > np.maximum(available, 0)
        return short

    def lacks_own_quota(self, gang: PendingGang) -> Mask:
        """Return the resources of which less is left in the quota of a gang's own queue."""
        cluster = self.cluster
        left = cluster.tree.quota_left(self.held)[cluster.tree.index[gang.queue]]
        lacks: Mask = cluster.demand(gang) > left
        return lacks

    def fits(self, gang: PendingGang) -> bool:
        """Say whether the minimum of a gang would be admitted: quota first, then the nodes."""
        return not self.short_of(gang).any() and self.has_room_for(gang)

    def has_room_for(self, gang: PendingGang) -> bool:
        """Say whether the nodes would take the minimum of a gang, by the full verdict."""
        cluster = self.cluster
        room = FreeCapacity(cluster.nodes, self.free)
        outcome = admit(Question(gang, room, cluster.steps.at_most(STEPS), cluster.existing))
        cluster.steps.spend(outcome.steps)
        return isinstance(outcome, Accepted)

    def groups_without_room(self, gang: PendingGang) -> tuple[Group, ...]:
        """Return the groups that lack room: those too large alone, all if they do not fit together.

        Where no constraint between pods is in the way, the others have room beside each other.
        """
        room = FreeCapacity(self.cluster.nodes, self.free)
        short = [each for each in gang.minimum if room.counts(each.shape).sum() < each.count]
        fitting = tuple(each for each in gang.minimum if each not in short)
        if fitting and self.has_room_for(replace(gang, minimum=fitting, surplus=())):
            return tuple(short)
        return gang.minimum

    def spares(self, gang: RunningGang, kept_for: PendingGang, nodes: Mask) -> bool:
        """Say whether nodes have what a gang takes to spare, beside all pods of another one.

        So many of its pods as each node could run if it were empty: what ends there, and when, does
        not matter then. What the gang takes none of does not either.
        """
        contested, columns = nodes[gang.nodes], self.cluster.nodes
        at, takes = gang.nodes[contested], gang.room[:, contested]
        allocatable, row, wanted = columns.allocatable[:, at], columns.row, takes * 0
        for group in kept_for.minimum:
            requests = group.shape.requests
            pods = np.minimum(pods_per_node(requests, row, allocatable), group.count)
            for resource, amount in requests if pods.any() else ():
                wanted[row[resource]] += pods * amount
        return bool(((takes == 0) | (takes + wanted <= self.free[:, at])).all())
