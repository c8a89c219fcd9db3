"""Places a gang whose own pods constrain each other (affinity, anti-affinity, spread).

Each pod must be right given those before it, so groups are placed one after the other, those with
affinity to others last, each node by node. First in sweeps, in the packing rule's order, once per
domain in which the first-pod rule could place the first pod; where no sweep succeeds, by trying
every way within a bound of steps (`exhaustive`).

A placement is worth something only if its pods can be bound: an `Objective` says in how many
rounds, and a part of the steps is spent on a way that needs fewer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.filters.gang_affinity import InternalConstraints, RequiredAffinity
from scheduling.filters.pod_topology_spread import Lack
from scheduling.model.amounts import Amounts, Mask
from scheduling.model.pod import PodShape
from scheduling.placement.exact_search import OutOfSteps
from scheduling.placement.interdependent.exhaustive.ways import all_ways
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.placement.interdependent.upper_bounds import is_impossible
from scheduling.state.node_snapshot import NodeAttributes

FIRST_DOMAINS = 64
"""In how many domains the first pod of a group with affinity to itself is tried in a sweep."""

FEWER_ROUNDS = 8
"""Which share of the steps left is spent on a way with fewer rounds than that which is found."""


@dataclass(frozen=True, eq=False, slots=True)
class BindOrder:
    """The round in which each cell (groups x nodes) is bound, whatever the order within a round.

    Without any rounds (`count` is 0) no order is known in which all pods can be bound. `steps` is
    what it took to say so.
    """

    of: Amounts
    count: int
    steps: int


Objective = Callable[[Amounts, Sequence[RequiredAffinity], NodeAttributes], BindOrder]
"""Rates what is placed (groups x nodes) by how it can be bound: the fewer rounds the better."""


@dataclass(frozen=True, eq=False, slots=True)
class Ordered:
    """A distribution per group, and the order in which all pods are bound, earlier ones too."""

    distributions: tuple[Distribution, ...]
    order: BindOrder
    steps: int


@dataclass(frozen=True, slots=True)
class NoWay:
    """There is no placement; this is certain. `lacks` says per group what the best sweep lacked."""

    lacks: tuple[Lack, ...]
    steps: int


def place_interdependent(
    shapes: Sequence[PodShape],
    counts: Sequence[int],
    internal_constraints: InternalConstraints,
    room: FreeCapacity,
    earlier: Amounts,
    steps: int,
    objective: Objective,
) -> Ordered | NoWay | OutOfSteps:
    """Place so many pods of each group, beside those placed `earlier` (groups x nodes), or none.

    The order of binding is for all of them, those placed earlier included.
    """
    partial = PartialPlacement(shapes, counts, internal_constraints, room, earlier)
    attempt = _Attempt(partial, steps, objective)
    return attempt.sweeps() or attempt.everything()


class _Attempt:
    """One gang, what is placed of it, the best placement so far, and the best sweep until then."""

    def __init__(self, partial: PartialPlacement, steps: int, objective: Objective) -> None:
        self._partial, self._steps, self._objective = partial, steps, objective
        self._groups = range(len(partial.counts))
        self._order = sorted(self._groups, key=self._rank)
        self._lacks = tuple(Lack(count) for count in partial.counts)
        self._noted = False
        self._best: Ordered | None = None
        self._unordered = False

    def _rank(self, at: int) -> tuple[bool, bool, int]:
        """Groups with affinity come after the others; last those that need a partner first."""
        has_affinity = at in self._partial.affinity
        return has_affinity and not self._allows_first_pod(at), has_affinity, at

    def _allows_first_pod(self, at: int) -> bool:
        affinity = self._partial.affinity.get(at)
        return affinity is not None and affinity.allows_first_pod

    def _offer(self) -> bool:
        """Keep what is placed if it is bound in the fewest rounds so far; say whether in one."""
        partial = self._partial
        affinity = partial.internal_constraints.affinity
        order = self._objective(partial.pods, affinity, partial.traits)
        partial.spent += order.steps
        if not order.count:
            self._unordered = True
        elif self._best is None or order.count < self._best.order.count:
            self._best = Ordered(partial.distributions(), order, partial.spent)
            left = self._steps - partial.spent
            self._steps = min(self._steps, partial.spent + left // FEWER_ROUNDS)
        return order.count == 1

    def _or_best(self, otherwise: NoWay | OutOfSteps) -> Ordered | NoWay | OutOfSteps:
        """Return the best placement with all the steps that were spent, or what is said without."""
        return replace(self._best, steps=self._partial.spent) if self._best else otherwise

    # ---- one sweep

    def sweeps(self) -> Ordered | NoWay | OutOfSteps | None:
        """Try one sweep per order and first domain; None where none found a way in one round."""
        for order in self._orders():
            for domain in self._first_domains():
                if self._partial.spent > self._steps:
                    return self._or_best(OutOfSteps(self._partial.spent))
                if self._sweep(order, domain):
                    return self._best
        return None

    def _orders(self) -> Iterator[Sequence[int]]:
        """Yield orders of groups.

        With spread constraints also backwards; groups to which the first-pod rule applies also
        first.
        """
        yield self._order
        if len(self._groups) == 1:
            return
        if self._partial.internal_constraints.spread:
            yield sorted(self._groups, key=lambda at: (*self._rank(at)[:2], -at))
        if any(map(self._allows_first_pod, self._groups)):
            yield sorted(
                self._groups, key=lambda at: (not self._allows_first_pod(at), self._rank(at))
            )

    def _first_domains(self) -> Iterator[Mask | None]:
        """Yield the domains for a first pod, the tightest that holds its whole group first.

        None where there is no such pod: nodes are not restricted then.
        """
        partial = self._partial
        partial.reset()
        affinity = partial.internal_constraints.affinity
        waiting = (each for each in affinity if each.allows_first_pod and partial.left[each.group])
        first = next(waiting, None)
        if first is None or first.has_partner(partial.earlier):
            yield None
            return
        caps = partial.open(first.group)
        domain_of = first.domains(partial.traits)
        held = np.bincount(domain_of, weights=caps)
        enough = [at for at in np.argsort(held, kind="stable") if held[at] > 0]
        enough.sort(key=lambda at: bool(held[at] < partial.left[first.group]))
        for at in enough[:FIRST_DOMAINS]:
            yield domain_of == at

    def _sweep(self, order: Sequence[int], domain: Mask | None) -> bool:
        """Fill group after group in packing order; say whether all are placed, for one round.

        A group that is stuck may go on once others are placed, whose pods lift its limits.
        """
        self._partial.reset()
        while any(self._partial.left):
            moves = [self._fill(at, domain) for at in order]
            if not any(moves):
                self._note()
                return False
        return self._offer()

    def _fill(self, at: int, domain: Mask | None) -> bool:
        """Place as many pods of a group as may go now; say whether it was any."""
        before = self._partial.left[at]
        inside = domain if self._allows_first_pod(at) else None
        while self._partial.left[at] and self._partial.spent <= self._steps:
            if not self._partial.fill(at, inside):
                break
        return self._partial.left[at] < before

    def _note(self) -> None:
        """Keep what the sweep lacked, if none before lacked less."""
        left = self._partial.left
        if not self._noted or sum(left) < sum(lack.pods for lack in self._lacks):
            self._lacks = tuple(
                Lack(count, self._partial.stop(at) if count else None)
                for at, count in enumerate(left)
            )
        self._noted = True

    # ---- everything

    def everything(self) -> Ordered | NoWay | OutOfSteps:
        """Go through all ways there are; a no needs all to be tried, or a sum that is too small."""
        partial = self._partial
        if is_impossible(partial):
            return self._no_way()
        for complete in all_ways(partial, self._order):
            if partial.spent > self._steps:
                return self._or_best(OutOfSteps(partial.spent))
            if complete and self._offer():
                break
        if self._unordered or self._counts_possible_pods():
            return self._or_best(OutOfSteps(partial.spent))
        return self._or_best(self._no_way())

    def _counts_possible_pods(self) -> bool:
        """Say whether a rule counts pods that may come as if they were there already."""
        return any(
            rule.possible.any() or (rule.any_order and rule.nominated.any())
            for rule in self._partial.internal_constraints.spread
        )

    def _no_way(self) -> NoWay:
        return NoWay(self._lacks, self._partial.spent)
