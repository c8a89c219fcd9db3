"""Places a gang whose own pods constrain each other.

Each pod must be right given those before it, so units are placed one after the other, those that
are drawn to others last, each node by node. First in sweeps, in the packing rule's order, once
per home that a series could begin in; where no sweep succeeds, by trying everything within a
bound of steps.

Without spread constraints the order of pods within a unit does not matter: keeping apart is mutual,
and a pod that is drawn goes where the terms hold already, so it opens no new place for the next.
With them it does, and where units are drawn to each other the order of units does: then everything
is tried pod by pod (`exhaustive`). A placement is worth something only if its pods can be bound: an
`Objective` says in how many rounds, and a part of the steps is spent on a way that needs fewer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.filters.inter_pod_affinity import InternalConstraints, RequiredAffinity
from scheduling.filters.pod_topology_spread import Lack
from scheduling.model.amounts import Amounts, Mask
from scheduling.model.pod import PodShape
from scheduling.placement.exact_search import OutOfSteps
from scheduling.placement.interdependent.exhaustive import is_impossible, steps_from
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.state.node_snapshot import NodeAttributes

HOMES = 64
"""In how many places a series is begun in a sweep."""

FEWER_ROUNDS = 8
"""Which share of the steps left is spent on a way with fewer rounds than that which is found."""


@dataclass(frozen=True, eq=False, slots=True)
class BindOrder:
    """The round in which each cell (units x nodes) is bound, whatever the order within a round.

    Without any rounds (`count` is 0) no order is known in which all pods can be bound. `steps` is
    what it took to say so.
    """

    of: Amounts
    count: int
    steps: int


Objective = Callable[[Amounts, Sequence[RequiredAffinity], NodeAttributes], BindOrder]
"""Rates what is placed (units x nodes) by how it can be bound: the fewer rounds the better."""


@dataclass(frozen=True, eq=False, slots=True)
class Ordered:
    """A spread per unit, and the order in which all pods are bound, also those that stood."""

    spreads: tuple[Distribution, ...]
    order: BindOrder
    steps: int


@dataclass(frozen=True, slots=True)
class NoWay:
    """There is no placement; this is certain. `lacks` says per unit what the best sweep lacked."""

    lacks: tuple[Lack, ...]
    steps: int


def place_interdependent(
    shapes: Sequence[PodShape],
    counts: Sequence[int],
    internal_constraints: InternalConstraints,
    room: FreeCapacity,
    standing: Amounts,
    steps: int,
    objective: Objective,
) -> Ordered | NoWay | OutOfSteps:
    """Place so many pods of each unit beside those that stand (units x nodes), or none.

    The order of binding is for all of them, those that stand included.
    """
    walk = PartialPlacement(shapes, counts, internal_constraints, room, standing)
    attempt = _Attempt(walk, steps, objective)
    return attempt.sweeps() or attempt.everything()


class _Attempt:
    """One gang, its walk, the best placement so far, and the best sweep until there is one."""

    def __init__(self, walk: PartialPlacement, steps: int, objective: Objective) -> None:
        self._walk, self._steps, self._objective = walk, steps, objective
        self._units = range(len(walk.counts))
        self._order = sorted(self._units, key=self._rank)
        self._lacks = tuple(Lack(count) for count in walk.counts)
        self._noted = False
        self._best: Ordered | None = None
        self._unordered = False

    def _rank(self, at: int) -> tuple[bool, bool, int]:
        """Those who are drawn come after those who are not, those who cannot begin last."""
        drawn = at in self._walk.affinity
        return drawn and not self._may_begin(at), drawn, at

    def _may_begin(self, at: int) -> bool:
        near = self._walk.affinity.get(at)
        return near is not None and near.allows_first_pod

    def _offer(self) -> bool:
        """Keep what is placed if it is bound in the fewest rounds so far; say whether in one."""
        walk = self._walk
        order = self._objective(walk.everyone, walk.internal_constraints.affinity, walk.traits)
        walk.spent += order.steps
        if not order.count:
            self._unordered = True
        elif self._best is None or order.count < self._best.order.count:
            self._best = Ordered(walk.spreads(), order, walk.spent)
            self._steps = min(self._steps, walk.spent + (self._steps - walk.spent) // FEWER_ROUNDS)
        return order.count == 1

    def _or_best(self, otherwise: NoWay | OutOfSteps) -> Ordered | NoWay | OutOfSteps:
        """Return the best placement with all the steps that were spent, or what is said without."""
        return replace(self._best, steps=self._walk.spent) if self._best else otherwise

    # ---- one sweep

    def sweeps(self) -> Ordered | NoWay | OutOfSteps | None:
        """Try one sweep per home and order; None where none found a way in one round."""
        for order in self._orders():
            for home in self._homes():
                if self._walk.spent > self._steps:
                    return self._or_best(OutOfSteps(self._walk.spent))
                if self._sweep(order, home):
                    return self._best
        return None

    def _orders(self) -> Iterator[Sequence[int]]:
        """Yield orders of units: with spread constraints also backwards, or beginners first."""
        yield self._order
        if len(self._units) == 1:
            return
        if self._walk.internal_constraints.spread:
            yield sorted(self._units, key=lambda at: (*self._rank(at)[:2], -at))
        if any(map(self._may_begin, self._units)):
            yield sorted(self._units, key=lambda at: (not self._may_begin(at), self._rank(at)))

    def _homes(self) -> Iterator[Mask | None]:
        """Yield the places in which a series could begin, the tightest that holds it first."""
        walk = self._walk
        walk.begin()
        beginner = next(
            (
                n
                for n in walk.internal_constraints.affinity
                if n.allows_first_pod and walk.left[n.unit]
            ),
            None,
        )
        if beginner is None or walk.has_begun(beginner):
            yield None
            return
        caps = walk.open(beginner.unit)
        which = walk.places_of(beginner)
        held = np.bincount(which, weights=caps)
        enough = [at for at in np.argsort(held, kind="stable") if held[at] > 0]
        enough.sort(key=lambda at: bool(held[at] < walk.left[beginner.unit]))
        for at in enough[:HOMES]:
            yield which == at

    def _sweep(self, order: Sequence[int], home: Mask | None) -> bool:
        """Fill unit after unit in packing order; say whether all are placed, for one round.

        One that is stuck may go on once others are placed, whose pods lift what it is held to.
        """
        self._walk.begin()
        while any(self._walk.left):
            moves = [self._fill(at, home) for at in order]
            if not any(moves):
                self._note()
                return False
        return self._offer()

    def _fill(self, at: int, home: Mask | None) -> bool:
        """Place as many pods of a unit as may go now; say whether it was any."""
        near, before = self._walk.affinity.get(at), self._walk.left[at]
        inside = home if near is not None and near.allows_first_pod else None
        while self._walk.left[at] and self._walk.spent <= self._steps:
            if not self._walk.fill(at, inside):
                break
        return self._walk.left[at] < before

    def _note(self) -> None:
        """Keep what the sweep lacked, if none before lacked less."""
        left = self._walk.left
        if not self._noted or sum(left) < sum(lack.pods for lack in self._lacks):
            self._lacks = tuple(
                Lack(count, self._walk.stop(at) if count else None) for at, count in enumerate(left)
            )
        self._noted = True

    # ---- everything

    def everything(self) -> Ordered | NoWay | OutOfSteps:
        """Go through all ways there are; a no needs all to be tried, or a sum that is too small."""
        walk = self._walk
        if is_impossible(walk):
            return self._no_way()
        for complete in self._all_ways():
            if walk.spent > self._steps:
                return self._or_best(OutOfSteps(walk.spent))
            if complete and self._offer():
                break
        if self._unordered or self._somebody_may_come():
            return self._or_best(OutOfSteps(walk.spent))
        return self._or_best(self._no_way())

    def _all_ways(self) -> Iterator[bool]:
        """Take all ways; yield whether all pods are placed."""
        if not self._walk.internal_constraints.spread:
            yield from self._unit_by_unit()
        if self._walk.internal_constraints.spread or self._order_matters():
            yield from steps_from(self._walk)

    def _somebody_may_come(self) -> bool:
        """Say whether a rule counts pods that may come as if they were there already."""
        return any(
            rule.perhaps.any() or (rule.lasting and rule.nominated.any())
            for rule in self._walk.internal_constraints.spread
        )

    def _no_way(self) -> NoWay:
        return NoWay(self._lacks, self._walk.spent)

    def _unit_by_unit(self) -> Iterator[bool]:
        """Take all ways, nodes of a unit in rising order; yield whether all pods are placed."""
        walk = self._walk
        walk.begin()
        last = [-1] * len(self._units)
        stack = [self._ways(last)]
        while stack:
            if next(stack[-1], None) is None:
                stack.pop()
                yield False
            elif any(walk.left):
                stack.append(self._ways(last))
                yield False
            else:
                yield True

    def _ways(self, last: list[int]) -> Iterator[bool]:
        """Put pods of the next unit on a node, one way after the other, and take them back.

        `last` holds per unit the rank of the node it was put on last.
        """
        walk = self._walk
        at = next(at for at in self._order if walk.left[at])
        caps = walk.open(at) * (walk.ranks(at) > last[at])
        nodes = walk.in_order(caps, at)
        rest = np.cumsum(caps[nodes][::-1])[::-1]
        before = last[at]
        for node, possible in zip(nodes.tolist(), rest.tolist(), strict=True):
            if possible < walk.left[at]:
                break
            last[at] = int(walk.ranks(at)[node])
            for count in range(int(caps[node]), 0, -1):
                walk.put(at, node, count)
                yield True
                walk.put(at, node, -count)
        last[at] = before

    def _order_matters(self) -> bool:
        """Say whether another order of units might succeed.

        So it is where units are drawn to units that are drawn themselves, or where others than
        those who may begin a series are part of it.
        """
        near = self._walk.affinity
        return any(
            each.partners & (near.keys() - {each.unit})
            or (each.allows_first_pod and each.partners != {each.unit})
            for each in near.values()
        )
