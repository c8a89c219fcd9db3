"""What a search has placed of a gang so far, and what that leaves to the next pod.

The state of an attempt to place a gang pod by pod: what is free, what is placed, what is left to
place, and where the rules between its members (`InternalConstraints`) let the next pod of a unit
go.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.filters.inter_pod_affinity import InternalConstraints, RequiredAffinity
from scheduling.filters.node_ports import left
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.filters.pod_topology_spread import Limit, Rule, Stop, allowed, level_for, stop_of
from scheduling.model.amounts import Amounts, Mask, Positions, Requests
from scheduling.model.pod import PodShape
from scheduling.scoring.stranded_devices import no_cost, order_nodes
from scheduling.state.node_snapshot import NodeAttributes

STEPS_PER_LOOK = 3000
"""What looking at all nodes once costs beside their number, in steps of some 20 ns."""

STEPS_PER_PAIR = 1000
"""What looking where the pods of another unit are costs beside the number of nodes."""

STEPS_PER_RULE = 2000
"""What asking one spread constraint costs beside the number of nodes."""


class PartialPlacement:
    """One attempt; `placed` and `standing` (of the same gang, from before) are units x nodes."""

    def __init__(
        self,
        shapes: Sequence[PodShape],
        counts: Sequence[int],
        internal_constraints: InternalConstraints,
        room: FreeCapacity,
        standing: Amounts,
    ) -> None:
        self.internal_constraints, self.counts = internal_constraints, counts
        self.affinity = {each.unit: each for each in internal_constraints.affinity}
        self._shapes, self._room, self._standing = shapes, room, standing
        self._traits = room.columns.traits
        self._row, self._room_free = self._with_ports()
        self._ranks: dict[int, Positions] = {}
        self.spent = 0
        self.begin()

    def _with_ports(self) -> tuple[Mapping[str, int], Amounts]:
        """Return rows for the host ports that the gang asks for beside those of the room."""
        row, room = self._room.columns.row, self._room
        ports = sorted({resource for shape in self._shapes for resource, _ in shape.ports})
        if not ports:
            return row, room.free
        free = [left(port, room.ports, room.columns.index) for port in ports]
        return {name: at for at, name in enumerate((*row, *ports))}, np.vstack((room.free, *free))

    def begin(self) -> None:
        """Take all pods back."""
        self._free = self._room_free.copy()
        self.placed = np.zeros_like(self._standing)
        self.left = list(self.counts)

    def put(self, at: int, node: int, count: int) -> None:
        """Place pods of a unit on a node, or with a negative count take them back."""
        self.placed[at, node] += count
        self.left[at] -= count
        for resource, amount in self._shapes[at].requests:
            self._free[self._row[resource], node] -= count * amount

    @property
    def traits(self) -> NodeAttributes:
        """What is known of the nodes."""
        return self._traits

    @property
    def everyone(self) -> Amounts:
        """Return the pods of the gang, those that stand and those placed (units x nodes)."""
        everyone: Amounts = self.placed + self._standing
        return everyone

    def spreads(self) -> tuple[Distribution, ...]:
        """Return what was placed, per unit."""
        found = [np.flatnonzero(row) for row in self.placed]
        return tuple(
            Distribution(nodes, row[nodes]) for nodes, row in zip(found, self.placed, strict=True)
        )

    def asked(self, at: int) -> Requests:
        """Return what a pod of a unit asks for."""
        return self._shapes[at].requests

    def free_of(self, resource: str) -> Amounts:
        """Return what is free of a resource on each node; nothing of one that no node has."""
        at = self._row.get(resource)
        return np.zeros(self._free.shape[1], dtype=np.int64) if at is None else self._free[at]

    def room_for(self, at: int) -> Amounts:
        """Return how many pods of a unit each node takes while none of the gang is placed."""
        return self._room.counts(self._shapes[at])

    def rooms_within(self, key: str, at: int) -> tuple[Amounts, int]:
        """Return how many pods of a unit find room per value of a label, and where it has none."""
        self.spent += STEPS_PER_PAIR + self._free.shape[1]
        column = self._traits.label(key)
        pods = np.minimum(self.room_for(at), self.counts[at])
        rooms = np.bincount(column.of, pods, len(column.values)).astype(np.int64)
        without = column.codes.get(None)
        if without is None:
            return rooms, 0
        return np.delete(rooms, without), int(rooms[without])

    def ranks(self, at: int) -> Positions:
        """Return the rank of each node in the unit's packing order; -1 where it cannot go."""
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

    # ---- what the rules leave

    def open(self, at: int) -> Amounts:
        """Return how many more pods of a unit each node takes, if no other node takes any."""
        caps = self._open_in_company(at)
        for rule in self._rules(at):
            np.minimum(caps, self._limit_on_nodes(rule, at), out=caps)
        return caps

    def fill(self, at: int, inside: Mask | None) -> bool:
        """Place pods of a unit that may go together, nodes in packing order; False: none may.

        Where one spread constraint is in the way, as many as ever can: its least is lifted first.
        """
        caps = self._open_in_company(at)
        if inside is not None:
            caps *= inside
        rule = self._lifted(at)
        limits = [*self._alone(at), *self._spread_limits(at, rule)]
        for limit in limits:
            np.minimum(caps, limit.on_nodes(), out=caps)
        stages = [limits]
        if rule is not None and any(limit.is_shared(caps) for limit in limits):
            limits.append(self._limit(rule, at))
        elif rule is not None:
            stages = [[limit] for limit in self._lifts(rule, at, caps)]
        nodes = self.in_order(caps, at)
        pods = _filled(stages, nodes, caps[nodes], self.left[at])
        for node, count in zip(nodes[pods > 0].tolist(), pods[pods > 0].tolist(), strict=True):
            self.put(at, node, count)
        return bool(pods.any())

    def _open_in_company(self, at: int) -> Amounts:
        """Return how many more pods of a unit each node takes, spread constraints aside."""
        self.spent += STEPS_PER_LOOK + self._free.shape[1]
        shape = self._shapes[at]
        caps = pods_per_node(shape.requests, self._row, self._free)
        caps *= feasible(shape, self._room.columns)
        for unit, other, key in self.internal_constraints.anti_affinity:
            if unit == at:
                caps *= ~self._near_to(other, key)
                if other == at:
                    np.minimum(caps, 1, out=caps, where=self._has(key))
        if at in self.affinity:
            caps *= self._drawn(self.affinity[at])
        return np.minimum(caps, self.left[at])

    def _alone(self, at: int) -> Iterator[Limit]:
        """Yield the labels within each value of which a unit has one pod."""
        for key in (
            key
            for unit, other, key in self.internal_constraints.anti_affinity
            if unit == other == at
        ):
            column = self._traits.label(key)
            most = [self.left[at] if value is None else 1 for value in column.values]
            yield Limit(column.of, np.array(most, dtype=np.int64))

    # ---- spread constraints

    def held(self, rule: Rule) -> Amounts:
        """Return the pods that a rule counts per domain as things stand."""
        return rule.held(self.everyone)

    def _spread_limits(self, at: int, but: Rule | None = None) -> Iterator[Limit]:
        """Yield what rules leave to a unit: its own, and those that must last once it is there."""
        return (self._limit(rule, at) for rule in self._rules(at) if rule is not but)

    def _rules(self, at: int) -> Iterator[Rule]:
        for rule in self.internal_constraints.spread:
            if at == rule.owner or (rule.lasting and at in rule.counted):
                self.spent += STEPS_PER_RULE + self._free.shape[1]
                yield rule

    def _limit_on_nodes(self, rule: Rule, at: int) -> Amounts:
        """Return what a rule leaves to a unit on each node, exactly where it need not last."""
        if rule.lasting or not rule.nominated.any():
            return self._limit(rule, at).on_nodes()
        spare = rule.spare_on_nodes(self.everyone)
        most = (
            np.maximum(spare, 0) if at in rule.counted else np.where(spare >= 0, self.left[at], 0)
        )
        most *= rule.domains.of < len(rule.domains.names)
        return most

    def _limit(self, rule: Rule, at: int) -> Limit:
        everyone = self.everyone
        spare, any_number = rule.spare(everyone), self.left[at]
        if at not in rule.counted:
            return rule.limit(np.where(spare >= 0, any_number, 0), 0)
        if at == rule.owner:
            return rule.limit(np.maximum(spare, 0), 0)
        minded = rule.domains.sums(everyone[rule.owner]) > 0
        return rule.limit(np.where(minded, np.maximum(spare, 0), any_number), any_number)

    def _lifted(self, at: int) -> Rule | None:
        """Return the rule with the fewest domains whose least rises with the pods of a unit."""
        own = (r for r in self.internal_constraints.spread if r.owner == at and r.counts_itself)
        rising = [rule for rule in own if rule.floor is None]
        return min(rising, key=lambda rule: len(rule.domains.names), default=None)

    def _lifts(self, rule: Rule, at: int, caps: Amounts) -> tuple[Limit, Limit]:
        """Return what each domain must get to lift the least, and what it may get then."""
        held, skew = self.held(rule), rule.constraint.max_skew
        in_the_way = rule.in_the_way
        room = np.where(in_the_way < skew, rule.domains.sums(caps), 0)
        level = level_for(held, in_the_way, room, skew, self.left[at])
        must = allowed(held, room, level)
        may = allowed(held + in_the_way, room, level + skew)
        return rule.limit(must, 0), rule.limit(may - must, 0)

    def stop(self, at: int) -> Stop | None:
        """Say which rule keeps a unit from the nodes that are open to it otherwise, if one does."""
        caps = self._open_in_company(at)
        for rule in self.internal_constraints.spread:
            closed = (caps > 0) & (self._limit(rule, at).on_nodes() == 0)
            if rule.owner == at and closed.any():
                held = self.held(rule)
                return stop_of(rule, held, int(np.count_nonzero(closed)))
        return None

    # ---- affinity

    def _near_to(self, other: int, key: str) -> Mask:
        """Return the nodes that share a value of the label with a pod of the other unit."""
        self.spent += STEPS_PER_PAIR + self._free.shape[1]
        column = self._traits.label(key)
        taken = np.zeros(len(column.values), dtype=np.bool_)
        taken[column.of[(self.placed[other] + self._standing[other]) > 0]] = True
        return taken[column.of] & self._has(key)

    def _has(self, key: str) -> Mask:
        return self._traits.remembered(
            ("has a value", key),
            lambda: self._traits.label(key).where(lambda value: value is not None),
        )

    def _drawn(self, near: RequiredAffinity) -> Mask:
        mask = np.ones(self._free.shape[1], dtype=np.bool_)
        begun = any(near.matching_values)
        for key, matching_values in zip(near.keys, near.matching_values, strict=True):
            place = self.anchored(key, matching_values)
            for partner in near.partners:
                place = place | self._near_to(partner, key)
            begun = begun or bool(place.any())
            mask &= place
        if not begun and near.allows_first_pod:
            for key in near.keys:
                mask = self._has(key) if key == near.keys[0] else mask & self._has(key)
        return mask

    def anchored(self, key: str, matching_values: frozenset[str]) -> Mask:
        """Return the nodes whose label has one of these values."""
        return self._traits.remembered(
            ("anchored", key, matching_values),
            lambda: self._traits.label(key).where(matching_values.__contains__),
        )

    def has_begun(self, near: RequiredAffinity) -> bool:
        """Say whether pods of the series stand already."""
        return any(self._standing[partner].any() for partner in near.partners)

    def places_of(self, near: RequiredAffinity) -> Positions:
        """Return which nodes share the values of all the keys, as a number per node."""
        codes = np.stack([self._traits.label(key).of for key in near.keys], axis=1)
        return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)


def _filled(
    stages: Sequence[Sequence[Limit]], nodes: Positions, caps: Amounts, wanted: int
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
