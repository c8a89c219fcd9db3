"""Checks one more pod against the counts of a search that goes pod by pod.

`partial_placement` asks that of all nodes at once, which is right for filling them and dear for a
search that places one pod and takes it back, time after time: most of what it works out did not
change. Here a pod changes a few counts, and each bond looks one up for one node. A gang is given up
before it is placed to its end where the room left, or one rule taken alone, cannot let in all that
are left.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from operator import ge, mul, sub

import numpy as np

from scheduling.filters.inter_pod_affinity import RequiredAffinity
from scheduling.filters.pod_topology_spread import Rule
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions
from scheduling.placement.interdependent.domain_counts import DomainCounts, Prospect
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.state.node_snapshot import NodeAttributes

STEPS_PER_CELL = 15
"""What telling nodes apart by one thing costs, for each node, in steps of some 20 ns."""

MOST_DOMAINS = 64
"""What a rule will let in is not foreseen where it has more domains than that."""

Load = tuple[int, ...]
"""The pods of each unit on one node."""

Caps = tuple[int, ...]
"""How many more pods of each unit one node holds."""

Check = Callable[[int], bool]
"""Whether one bond lets one more pod of a unit go to a node, as things stand."""


class Checks:
    """What is counted of a gang that is placed pod by pod, and the checks made of it.

    Two nodes that are equal in all rows of `_apart` are of one kind.
    """

    def __init__(self, walk: PartialPlacement) -> None:
        self._walk, self._standing = walk, walk.everyone
        self._units = range(len(walk.counts))
        self._tallies: list[list[DomainCounts]] = [[] for _ in self._units]
        self._made: dict[Hashable, DomainCounts] = {}
        self._apart: list[Amounts | Mask] = [walk.ranks(at) >= 0 for at in self._units]
        self._asked = [dict(walk.asked(at)) for at in self._units]
        names = {name for asked in self._asked for name in asked}
        self._free = {name: self._capped(name) for name in sorted(names)}
        rows = [np.minimum(walk.room_for(at), walk.left[at]) for at in self._units]
        self._most: list[Caps] = list(zip(*(row.tolist() for row in rows), strict=True))
        self._caps = list(self._most)
        self._known: dict[tuple[int, Load], Caps] = {}
        self._room = [int(row.sum()) for row in rows]
        self._prospects: dict[Hashable, Prospect] = {}

    def _capped(self, resource: str) -> list[int]:
        """Return what is free on each node, as far as the gang could ask for it."""
        most = min(self._taken(resource, tuple(self._walk.left)), LIMIT)
        free = np.minimum(self._walk.free_of(resource), most)
        self._apart.append(free)
        found: list[int] = free.tolist()
        return found

    @property
    def prospects(self) -> Collection[Prospect]:
        """Return what the rules will let in."""
        return self._prospects.values()

    def lets_in(self, left: Sequence[int]) -> bool:
        """Say whether what is left of each unit could have room, and pass each rule taken alone."""
        return all(map(ge, self._room, left)) and all(
            each.most() >= sum(left[at] for at in each.owners) for each in self.prospects
        )

    def put(self, at: int, node: int, count: int, load: Load) -> None:
        """Count pods of a unit that are placed on a node, or taken back, which then has a load."""
        for tally in self._tallies[at]:
            tally.put(node, count)
        before, now = self._caps[node], self._caps_under(load, node)
        self._caps[node] = now
        for unit, more in enumerate(map(sub, now, before)):
            if more:
                self._room[unit] += more
                for each in self.prospects:
                    each.find_room(unit, node, more)

    def _caps_under(self, load: Load, node: int) -> Caps:
        """Return how many more pods of each unit a node holds under a load, worked out once."""
        known = node, load
        if known not in self._known:
            self._known[known] = tuple(self._cap(at, load, node) for at in self._units)
        return self._known[known]

    def _cap(self, at: int, load: Load, node: int) -> int:
        fitting = [
            (self._free[name][node] - self._taken(name, load)) // amount
            for name, amount in self._walk.asked(at)
        ]
        return max(0, min((self._most[node][at], *fitting)))

    def _taken(self, resource: str, load: Load) -> int:
        amounts = (asked.get(resource, 0) for asked in self._asked)
        return sum(map(mul, amounts, load))

    def kinds(self) -> Positions:
        """Return the kind of each node, as a number."""
        kinds = np.zeros(self._walk.placed.shape[1], dtype=np.int64)
        for row in self._apart:
            self._walk.spent += STEPS_PER_CELL * len(kinds)
            values = np.unique(row, return_inverse=True)[1]
            both = kinds * (int(values.max(initial=0)) + 1) + values
            kinds = np.unique(both, return_inverse=True)[1]
        return kinds

    # ---- the checks of a unit

    def of(self, at: int) -> list[Check]:
        """Return what must let a pod of a unit go to a node that it has a rank for."""
        internal_constraints = self._walk.internal_constraints
        shunned = sorted(
            (other, key) for unit, other, key in internal_constraints.anti_affinity if unit == at
        )
        drawn = [self._drawn(each) for each in internal_constraints.affinity if each.unit == at]
        even = [self._even(rule, at) for rule in internal_constraints.spread if _speaks(rule, at)]
        return [self._holds(at), *(self._away(*each) for each in shunned), *drawn, *even]

    def _holds(self, at: int) -> Check:
        caps = self._caps
        return lambda node: caps[node][at] > 0

    def _away(self, other: int, key: str) -> Check:
        there = self._counted_by(key, (other,))
        return lambda node: not there.holds_any(node)

    def _drawn(self, near: RequiredAffinity) -> Check:
        anchored = [
            self._telling(self._walk.anchored(key, matching_values))
            for key, matching_values in zip(near.keys, near.matching_values, strict=True)
        ]
        partners = [self._counted_by(key, near.partners) for key in near.keys]
        pairs = list(zip(anchored, partners, strict=True))
        has_anchors, allows_first_pod = any(near.matching_values), near.allows_first_pod

        def lets(node: int) -> bool:
            if has_anchors or any(tally.anywhere() for tally in partners):
                return all(anchor[node] or tally.holds_any(node) for anchor, tally in pairs)
            return allows_first_pod and all(tally.of[node] != tally.outside for tally in partners)

        return lets

    def _even(self, rule: Rule, at: int) -> Check:
        if at != rule.owner:
            minding, within = self._counted_in(rule, (rule.owner,)), self._within(rule, at)
            return lambda node: not minding.holds_any(node) or within(node)
        if rule.counts_itself:
            self._look_ahead(rule)
        if rule.lasting or not rule.nominated.any():
            return self._within(rule, at)
        return self._beside_nominated(rule)

    def _within(self, rule: Rule, at: int) -> Check:
        """Ask whether a domain, with all who are in the way, is within the skew."""
        held, least = self._counted_in(rule, rule.counted), self._least(rule)
        way = self._per_domain(rule, rule.in_the_way)
        most = rule.constraint.max_skew - int(at in rule.counted)

        def lets(node: int) -> bool:
            domain = held.of[node]
            return (
                domain != held.outside and held.held[domain] + way[domain] - least(domain) <= most
            )

        return lets

    def _beside_nominated(self, rule: Rule) -> Check:
        """Ask as kube-scheduler does: with the pods nominated to the node, and without."""
        held, least = self._counted_in(rule, rule.counted), self._least(rule)
        elsewhere = held.least_but if rule.floor is None else least
        perhaps = self._per_domain(rule, rule.perhaps)
        nominated = self._telling(rule.nominated)
        most = rule.constraint.max_skew - int(rule.counts_itself)

        def lets(node: int) -> bool:
            domain = held.of[node]
            if domain == held.outside:
                return False
            there = held.held[domain] + perhaps[domain]
            with_them = there + nominated[node]
            return there - least(domain) <= most and (
                not nominated[node] or with_them - elsewhere(domain) <= most
            )

        return lets

    def _least(self, rule: Rule) -> Callable[[int], int]:
        """Return what the skew of each domain is measured from, as things stand."""
        held = self._counted_in(rule, rule.counted)
        if rule.floor is None:
            return lambda _domain: held.least()
        return self._per_domain(rule, rule.floor).__getitem__

    def _look_ahead(self, rule: Rule) -> None:
        """Have an eye on how many pods of its owner a rule lets in, with all that are like it."""
        counted, max_skew = self._counted_in(rule, rule.counted), rule.constraint.max_skew
        if counted.outside > MOST_DOMAINS:
            return
        floor = None if rule.floor is None else tuple(rule.floor.tolist())
        alike = counted, max_skew, floor
        if alike not in self._prospects:
            self._prospects[alike] = Prospect(counted, floor, max_skew, self._caps)
        self._prospects[alike].own(rule.owner, [caps[rule.owner] for caps in self._caps])

    # ---- counts, and what they tell apart

    def _counted_by(self, key: str, units: Iterable[int]) -> DomainCounts:
        """Count the pods of some units by the values of a label."""
        of, domains = _places(key, self._walk.traits)
        return self._tally(of, np.zeros(domains, dtype=np.int64), units)

    def _counted_in(self, rule: Rule, units: Iterable[int]) -> DomainCounts:
        """Count the pods of some units by a rule's domains, with whom it counts around."""
        chosen = frozenset(units)
        around = rule.standing if chosen == rule.counted else np.zeros_like(rule.standing)
        return self._tally(rule.domains.of, around, chosen)

    def _tally(self, of: Positions, around: Amounts, units: Iterable[int]) -> DomainCounts:
        rows = sorted(units)
        before = np.append(around, 0)
        np.add.at(before, of, self._standing[rows].sum(axis=0))
        before[-1] = 0
        alike = tuple(rows), of.tobytes(), before.tobytes()
        if alike not in self._made:
            self._made[alike] = self._new_tally(rows, of, before)
        return self._made[alike]

    def _new_tally(self, rows: Collection[int], of: Positions, before: Amounts) -> DomainCounts:
        tally = DomainCounts(rows, of, before)
        for at in rows:
            self._tallies[at].append(tally)
        sizes = np.bincount(of, minlength=len(before))
        alone = (sizes[of] == 1) & (of < tally.outside)
        self._telling(np.where(alone, -1, of))
        self._telling(before[of])
        return tally

    def _per_domain(self, rule: Rule, amounts: Amounts) -> list[int]:
        self._telling(rule.domains.on_nodes(amounts))
        found: list[int] = amounts.tolist()
        return found

    def _telling(self, row: Amounts | Mask) -> list[int]:
        """Note a row over the nodes that tells them apart, if it does; return it."""
        if (row != row[:1]).any():
            self._apart.append(row)
        found: list[int] = row.tolist()
        return found


def _speaks(rule: Rule, at: int) -> bool:
    """Say whether a rule is asked about a pod of a unit: its own, or one that it must outlast."""
    return at == rule.owner or (rule.lasting and at in rule.counted)


def _places(key: str, traits: NodeAttributes) -> tuple[Positions, int]:
    """Return the domain of each node by a label, one past the last where it has none; how many."""
    column = traits.label(key)
    of = column.of.copy()
    without = column.codes.get(None)
    if without is not None:
        of[of == without] = len(column.values)
    return of, len(column.values)
