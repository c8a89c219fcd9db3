"""The state of a search: the pods placed so far, and how many more pods each node takes.

It is asked of all nodes at once, by the vector fronts of plugins InterPodAffinity and
PodTopologySpread.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scheduling.filters.domain_counts import DomainLimit
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.filters.gang_affinity import AntiAffinity, InternalConstraints, RequiredAffinity
from scheduling.filters.node_ports import left
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.filters.pod_topology_spread import SpreadRule, Stop
from scheduling.model.amounts import Amounts, Mask, Positions, Requests
from scheduling.model.pod import PodShape
from scheduling.scoring.node_scores import no_cost, order_nodes
from scheduling.state.node_snapshot import NodeAttributes

STEPS_PER_LOOK = 3000
"""What looking at all nodes once costs beside their number, in steps of some 20 ns."""

STEPS_PER_PAIR = 1000
"""What looking where the pods of another group are costs beside the number of nodes."""

STEPS_PER_RULE = 2000
"""What asking one spread constraint costs beside the number of nodes."""


class PartialPlacement:
    """One attempt; pods of the gang that were placed `earlier`, and all `pods`, are groups x nodes.

    `affinity` is the required affinity of each group that has any.
    """

    def __init__(
        self,
        shapes: Sequence[PodShape],
        counts: Sequence[int],
        internal_constraints: InternalConstraints,
        room: FreeCapacity,
        earlier: Amounts,
    ) -> None:
        self.internal_constraints, self.counts = internal_constraints, counts
        self.affinity = {each.group: each for each in internal_constraints.affinity}
        self._anti_affinity = self._anti_affinity_by_group()
        self._shapes, self._room, self.earlier = shapes, room, earlier
        self._traits = room.columns.traits
        self._row, self._room_free = self._with_ports()
        self._ranks: dict[int, Positions] = {}
        self.spent = 0
        self.reset()

    def _anti_affinity_by_group(self) -> list[list[AntiAffinity]]:
        pairs = self.internal_constraints.anti_affinity
        return [[each for each in pairs if each.group == at] for at in range(len(self.counts))]

    def _with_ports(self) -> tuple[Mapping[str, int], Amounts]:
        """Return rows for the host ports that the gang asks for beside those of the room."""
        row, room = self._room.columns.row, self._room
        ports = sorted({resource for shape in self._shapes for resource, _ in shape.ports})
        if not ports:
            return row, room.free
        free = [left(port, room.ports, room.columns.index) for port in ports]
        return {name: at for at, name in enumerate((*row, *ports))}, np.vstack((room.free, *free))

    def reset(self) -> None:
        """Take all pods back."""
        self._free = self._room_free.copy()
        self.pods = self.earlier.copy()
        self.left = list(self.counts)

    def put(self, at: int, node: int, count: int) -> None:
        """Place pods of a group on a node, or with a negative count take them back."""
        self.pods[at, node] += count
        self.left[at] -= count
        for resource, amount in self._shapes[at].requests:
            self._free[self._row[resource], node] -= count * amount

    @property
    def traits(self) -> NodeAttributes:
        """What is known of the nodes."""
        return self._traits

    def distributions(self) -> tuple[Distribution, ...]:
        """Return what was placed, per group."""
        placed = self.pods - self.earlier
        found = [np.flatnonzero(row) for row in placed]
        return tuple(
            Distribution(nodes, row[nodes]) for nodes, row in zip(found, placed, strict=True)
        )

    def requests_of(self, at: int) -> Requests:
        """Return what a pod of a group asks for."""
        return self._shapes[at].requests

    def free_of(self, resource: str) -> Amounts:
        """Return what is free of a resource on each node; nothing of one that no node has."""
        at = self._row.get(resource)
        return np.zeros(self._free.shape[1], dtype=np.int64) if at is None else self._free[at]

    def room_for(self, at: int) -> Amounts:
        """Return how many pods of a group each node takes while none of the gang is placed."""
        return self._room.counts(self._shapes[at])

    def rooms_within(self, key: str, at: int) -> tuple[Amounts, int]:
        """Return how many pods of a group find room per value of a label, and without the label."""
        self.spent += STEPS_PER_PAIR + self._free.shape[1]
        column = self._traits.label(key)
        pods = np.minimum(self.room_for(at), self.counts[at])
        rooms = np.bincount(column.of, pods, len(column.values)).astype(np.int64)
        without = column.codes.get(None)
        if without is None:
            return rooms, 0
        return np.delete(rooms, without), int(rooms[without])

    def ranks(self, at: int) -> Positions:
        """Return the rank of each node in the group's packing order; -1 where it cannot go."""
        if at not in self._ranks:
            self.spent += STEPS_PER_LOOK + self._free.shape[1]
            self._ranks[at] = self._ranked(at)
        return self._ranks[at]

    def _ranked(self, at: int) -> Positions:
        ranks = np.full(self._room.free.shape[1], -1, dtype=np.intp)
        nodes = np.flatnonzero(self._room.counts(self._shapes[at]))
        order = order_nodes(self._shapes[at], self._room, nodes, no_cost, max(self.counts[at], 1))
        ranks[order] = np.arange(len(order))
        return ranks

    def in_order(self, caps: Amounts, at: int) -> Positions:
        """Return the nodes that take a pod, in packing order."""
        nodes = np.flatnonzero(caps > 0)
        return nodes[np.argsort(self.ranks(at)[nodes])]

    # ---- what the constraints leave

    def open(self, at: int) -> Amounts:
        """Return how many more pods of a group each node takes, if no other node takes any."""
        caps = self._open_by_affinity(at)
        for rule in self._rules(at):
            np.minimum(caps, rule.limit_on_nodes(at, self.pods, self.left[at]), out=caps)
        return caps

    def fill(self, at: int, inside: Mask | None) -> bool:
        """Place pods of a group that may go together, nodes in packing order; False: none may.

        Where one spread constraint is in the way, as many as ever can: its minimum is lifted first.
        """
        caps = self._open_by_affinity(at)
        if inside is not None:
            caps *= inside
        rule = self._lifted(at)
        limits = [*self._one_per_domain(at), *self._spread_limits(at, rule)]
        for limit in limits:
            np.minimum(caps, limit.on_nodes(), out=caps)
        stages = [limits]
        if rule is not None and any(limit.is_shared(caps) for limit in limits):
            limits.append(rule.limit(at, self.pods, self.left[at]))
        elif rule is not None:
            stages = [[limit] for limit in rule.lifts(self.pods, caps, self.left[at])]
        nodes = self.in_order(caps, at)
        pods = _filled(stages, nodes, caps[nodes], self.left[at])
        for node, count in zip(nodes[pods > 0].tolist(), pods[pods > 0].tolist(), strict=True):
            self.put(at, node, count)
        return bool(pods.any())

    def stop(self, at: int) -> Stop | None:
        """Say which rule keeps a group from the nodes that are open to it otherwise, if any."""
        caps = self._open_by_affinity(at)
        for rule in self.internal_constraints.spread:
            closed = (caps > 0) & (rule.limit(at, self.pods, self.left[at]).on_nodes() == 0)
            if rule.owner == at and closed.any():
                return rule.stop(self.pods, int(np.count_nonzero(closed)))
        return None

    def _open_by_affinity(self, at: int) -> Amounts:
        """Return how many more pods of a group each node takes, spread constraints aside."""
        self.spent += STEPS_PER_LOOK + self._free.shape[1]
        shape = self._shapes[at]
        caps = pods_per_node(shape.requests, self._row, self._free)
        caps *= feasible(shape, self._room.columns)
        for pair in self._anti_affinity[at]:
            self.spent += STEPS_PER_PAIR + self._free.shape[1]
            pair.restrict(caps, self.pods, self._traits)
        if at in self.affinity:
            caps *= self._suits(self.affinity[at])
        return np.minimum(caps, self.left[at])

    def _suits(self, affinity: RequiredAffinity) -> Mask:
        pairs = len(affinity.keys) * len(affinity.partners)
        self.spent += pairs * (STEPS_PER_PAIR + self._free.shape[1])
        return affinity.nodes(self.pods, self._traits)

    def _one_per_domain(self, at: int) -> Iterator[DomainLimit]:
        """Yield the limits of anti-affinity between pods of one group."""
        for pair in (each for each in self._anti_affinity[at] if each.is_with_itself):
            yield pair.limit(self.left[at], self._traits)

    def _spread_limits(self, at: int, but: SpreadRule | None = None) -> Iterator[DomainLimit]:
        """Yield what rules leave to a group: its own, and those that must outlast its pods."""
        pods = self.pods
        return (rule.limit(at, pods, self.left[at]) for rule in self._rules(at) if rule is not but)

    def _rules(self, at: int) -> Iterator[SpreadRule]:
        for rule in self.internal_constraints.spread:
            if rule.applies_to(at):
                self.spent += STEPS_PER_RULE + self._free.shape[1]
                yield rule

    def _lifted(self, at: int) -> SpreadRule | None:
        """Return the rule with the fewest domains whose minimum rises with the pods of a group."""
        own = (r for r in self.internal_constraints.spread if r.owner == at and r.counts_itself)
        rising = [rule for rule in own if rule.floor is None]
        return min(rising, key=lambda rule: len(rule.domains.names), default=None)


def _filled(
    stages: Sequence[Sequence[DomainLimit]], nodes: Positions, caps: Amounts, wanted: int
) -> Amounts:
    """Fill the nodes in order as far as the limits of each stage allow, stage after stage."""
    pods = np.zeros_like(caps)
    for limits in stages:
        more = caps - pods
        for limit in limits:
            more = limit.cut(nodes, more)
        before = np.cumsum(more) - more
        pods += np.clip(wanted - int(pods.sum()) - before, 0, more)
    return pods
