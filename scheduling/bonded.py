"""Where do the pods of a gang go whose members mind each other's company?

Each pod must be right given those before it, so units are placed one after the other, those that
are drawn to others last, each node by node. First in sweeps, in the packing rule's order, once
per home that a series could begin in; where no sweep succeeds, by trying everything within a
bound of steps.

Without spread constraints the order of pods within a unit does not matter: keeping apart is mutual,
and a pod that is drawn goes where the terms hold already, so it opens no new place for the next.
With them it does, and everything is tried pod by pod (`stepwise`). Between units a yes must hold in
whatever order kube-scheduler takes them (`_holds_in_any_order`), but for spread constraints that
the pin takes away.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.columns import Amounts, Mask
from scheduling.model import PodShape
from scheduling.neighbours import Attraction, Bonds
from scheduling.room import Room
from scheduling.search import Found, OutOfSteps
from scheduling.skew import Lack
from scheduling.stepwise import is_impossible, steps_from
from scheduling.walk import Walk

HOMES = 64
"""In how many places a series is begun in a sweep."""


@dataclass(frozen=True, slots=True)
class NoWay:
    """There is no placement; this is certain. `lacks` says per unit what the best sweep lacked."""

    lacks: tuple[Lack, ...]
    steps: int


def place_bonded(
    shapes: Sequence[PodShape],
    counts: Sequence[int],
    bonds: Bonds,
    room: Room,
    standing: Amounts,
    steps: int,
) -> Found | NoWay | OutOfSteps:
    """Place so many pods of each unit beside those that stand (units x nodes), or nobody."""
    attempt = _Attempt(Walk(shapes, counts, bonds, room, standing), steps)
    return attempt.sweeps() or attempt.everything()


class _Attempt:
    """One gang, its walk, and the best sweep so far."""

    def __init__(self, walk: Walk, steps: int) -> None:
        self._walk, self._steps = walk, steps
        self._units = range(len(walk.counts))
        self._turns = sorted(self._units, key=self._turn)
        self._lacks = tuple(Lack(count) for count in walk.counts)
        self._noted = False

    def _turn(self, at: int) -> tuple[bool, bool, int]:
        """Those who are drawn come after those who are not, those who cannot begin last."""
        near = self._walk.near.get(at)
        return near is not None and not near.may_begin, near is not None, at

    # ---- one sweep

    def sweeps(self) -> Found | OutOfSteps | None:
        """Try one sweep per home; with spread constraints, the units in the other order too."""
        orders = [self._turns]
        if self._walk.bonds.rules and len(self._units) > 1:
            orders.append(sorted(self._units, key=lambda at: (*self._turn(at)[:2], -at)))
        for turns in orders:
            for home in self._homes():
                if self._walk.spent > self._steps:
                    return OutOfSteps(self._walk.spent)
                if self._sweep(turns, home):
                    return Found(self._walk.spreads(), self._walk.spent)
        return None

    def _homes(self) -> Iterator[Mask | None]:
        """Yield the places in which a series could begin, the tightest that holds it first."""
        walk = self._walk
        walk.begin()
        beginner = next((n for n in walk.bonds.near if n.may_begin and walk.left[n.unit]), None)
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

    def _sweep(self, turns: Sequence[int], home: Mask | None) -> bool:
        """Fill unit after unit in packing order; say whether all found their place.

        One that is stuck may go on once others are placed, whose pods lift what it is held to.
        """
        self._walk.begin()
        while any(self._walk.left):
            moves = [self._fill(at, home) for at in turns]
            if not any(moves):
                self._note()
                return False
        return self._holds_in_any_order()

    def _fill(self, at: int, home: Mask | None) -> bool:
        """Place as many pods of a unit as may go now; say whether it was any."""
        near, before = self._walk.near.get(at), self._walk.left[at]
        inside = home if near is not None and near.may_begin else None
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

    def everything(self) -> Found | NoWay | OutOfSteps:
        """Go through all ways there are; a no needs all to be tried, or a sum that is too small."""
        walk = self._walk
        if walk.bonds.rules:
            if is_impossible(walk):
                return self._no_way()
            ways, order_matters = steps_from(walk), self._somebody_may_come()
        else:
            ways, order_matters = self._unit_by_unit(), self._order_matters()
        fragile = False
        for complete in ways:
            if walk.spent > self._steps:
                return OutOfSteps(walk.spent)
            if complete and self._holds_in_any_order():
                return Found(walk.spreads(), walk.spent)
            fragile = fragile or complete
        return OutOfSteps(walk.spent) if fragile or order_matters else self._no_way()

    def _somebody_may_come(self) -> bool:
        """Say whether a rule counts pods in their whole domain that only bar their node."""
        return any(rule.perhaps.any() for rule in self._walk.bonds.rules)

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
        at = next(at for at in self._turns if walk.left[at])
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
        """Say whether another order of units might succeed, which nobody could rely on.

        So it is where units are drawn to units that are drawn themselves, or where others than
        those who may begin a series are part of it.
        """
        near = self._walk.near
        return any(
            each.partners & (near.keys() - {each.unit})
            or (each.may_begin and each.partners != {each.unit})
            for each in near.values()
        )

    def _holds_in_any_order(self) -> bool:
        """Say whether kube-scheduler may take the pods as they come.

        Who is drawn to nobody is bound in any case, and so is who finds such members wherever it
        is, and who begins a series where all of it is. Nobody else may begin one. Who is deaf must
        be accepted at the first try.
        """
        sure = set(self._units) - self._walk.near.keys()
        waiting = list(self._walk.bonds.near)
        while more := {near.unit for near in waiting if self._is_bound_by(near, sure)}:
            sure |= more
            waiting = [near for near in waiting if near.unit not in sure]
        return not any(near.may_begin or near.deaf for near in waiting)

    def _is_bound_by(self, near: Attraction, sure: set[int]) -> bool:
        """Say whether a unit is bound in any case, given those that are."""
        if near.may_begin and self._walk.is_in_one_place(near):
            return True
        return self._walk.is_held(near, () if near.deaf else near.partners & sure)
