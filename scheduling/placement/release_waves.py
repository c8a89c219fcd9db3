"""Plans which pods are released at once, so that kube-scheduler binds all of them.

Pods that a gang's affinity draws to its own members go where one of those is bound, or, while none
is bound anywhere, where they begin a series. So it may matter who is bound first, and
kube-scheduler takes pods in an order of its own. Pods of one turn are bound in whatever order they
are taken, a later turn is released once all before it are bound.

What is placed is looked at by cells, the pods of a unit on a node: what lets one of them in lets in
the others. A cell that has a partner near keeps it whoever else comes; only who begins needs others
to stay away. So if there is any order at all there is one in which the beginnings come first. They
are chosen by trying (`_Plans`); all that would spoil a beginning goes into a later turn, and each
other cell goes as early as those that it needs are sure to be bound (`_Turns`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.filters.inter_pod_affinity import Attraction
from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.placement import Assignment, Placement
from scheduling.state.node_snapshot import NodeAttributes

MOST_TURNS = 8
"""More turns than that are not tried: each costs the time until all its pods are seen bound."""

MOST_LOOKS = 128
"""So many choices of beginnings are tried for one placement."""

STEPS_PER_LOOK = 2500
"""What looking once where pods of a unit are drawn costs, in steps of some 20 ns."""

MOST_STEPS = 2_000_000
"""No choice is begun after so many: units that are drawn to each other in a row cost many looks."""

LATER = -1
"""The turn of what has none yet, and of cells without pods."""


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The turn of each cell (units x nodes), how many turns there are, and the steps it took.

    No turns: there is no such order, or it needs too many turns or looks.
    """

    of: Amounts
    count: int
    steps: int


def plan_release_waves(pods: Amounts, near: Sequence[Attraction], traits: NodeAttributes) -> Plan:
    """Plan the turns for pods (units x nodes) that are placed, as few as there can be."""
    here = np.flatnonzero(pods.any(axis=0))
    cells: Mask = pods[:, here] > 0
    draws = [_Draw(each, here, traits) for each in near if cells[each.unit].any()]
    plans = _Plans(cells, draws)
    best = plans.best()
    of = np.full(pods.shape, LATER, dtype=np.int64)
    if best is not None:
        of[:, here] = best
    count = 0 if best is None else _last(best) + 1
    return Plan(of, count, plans.spent)


class _Draw:
    """One attraction over the nodes that are in use.

    Nodes that are `complete` have all the keys, on those that are `counted` one of them is enough.
    """

    def __init__(self, near: Attraction, here: Positions, traits: NodeAttributes) -> None:
        self.unit, self.is_not_requeued, self.may_begin = (
            near.unit,
            near.is_not_requeued,
            near.may_begin,
        )
        self.partners = sorted(near.partners)
        columns = [traits.label(key) for key in near.keys]
        self.codes = [column.of[here] for column in columns]
        self.known = [column.where(lambda value: value is not None)[here] for column in columns]
        self.anchored = [
            column.where(matching_values.__contains__)[here]
            for column, matching_values in zip(columns, near.matching_values, strict=True)
        ]
        self.complete: Mask = np.logical_and.reduce(self.known)
        self.counted: Mask = np.logical_or.reduce(self.known)

    def holds(self, bound: Mask) -> Mask:
        """Return the nodes where the unit has an anchor or a bound partner near for every key."""
        at = bound[self.partners].any(axis=0)
        found = self.complete.copy()
        for codes, known, anchored in zip(self.codes, self.known, self.anchored, strict=True):
            found &= anchored | (known & np.isin(codes, codes[at & known]))
        return found

    def counts(self, begun: "_Beginning") -> bool:
        """Say whether one who began is a partner, so that nobody else may begin."""
        return begun.unit in self.partners and bool(self.counted[begun.node])

    def spoilers(self, node: int, cells: Mask) -> Mask:
        """Return the cells that let nobody begin on the node, nor hold it, once they are bound."""
        same = np.logical_and.reduce([codes == codes[node] for codes in self.codes])
        found = np.zeros_like(cells)
        found[self.partners] = self.counted & ~(same & self.complete)
        return found & cells


@dataclass(frozen=True, eq=False, slots=True)
class _Beginning:
    """A pod of a unit begins a series on a node; `spoilers` must come later."""

    unit: int
    node: int
    spoilers: Mask


class _Company:
    """Who finds company; `spent` are the steps that it took to say so."""

    def __init__(self, draws: Sequence[_Draw]) -> None:
        self.draws = draws
        self.spent = 0
        self._drawn_to: defaultdict[int, list[int]] = defaultdict(list)
        for at, draw in enumerate(draws):
            for partner in draw.partners:
                self._drawn_to[partner].append(at)

    def closed(self, bound: Mask, cells: Mask, before: Mask | None = None) -> Mask:
        """Return who of the cells is bound sooner or later beside `bound`.

        Who is deaf needs partners that were bound `before`, where that is said.
        """
        bound = bound.copy()
        waiting = dict.fromkeys(range(len(self.draws)))
        while waiting:
            at = next(iter(waiting))
            del waiting[at]
            draw = self.draws[at]
            self.spent += STEPS_PER_LOOK + bound.shape[1]
            found = draw.holds(before if draw.is_not_requeued and before is not None else bound)
            more = found & cells[draw.unit] & ~bound[draw.unit]
            if more.any():
                bound[draw.unit] |= more
                waiting.update(dict.fromkeys(self._drawn_to[draw.unit]))
        return bound


class _Plans:
    """All choices of beginnings for one placement."""

    def __init__(self, cells: Mask, draws: Sequence[_Draw]) -> None:
        self._cells, self._draws = cells, draws
        self._company = _Company(draws)
        self._places = _places(draws, cells.shape[1])
        self._looks = 0

    @property
    def spent(self) -> int:
        """Return the steps that were taken."""
        return self._company.spent

    @property
    def _is_over(self) -> bool:
        return self._looks > MOST_LOOKS or self.spent > MOST_STEPS

    def best(self) -> Amounts | None:
        """Return the turns of the plan with the fewest, the first such by node; None if none."""
        best: Amounts | None = None
        for beginnings in self._choices(()):
            found = _Turns(self._cells, self._company, beginnings).found()
            if found is not None and (best is None or _last(found) < _last(best)):
                best = found
            if self._is_over or (best is not None and not _last(best)):
                break
        return best

    def _choices(self, begun: tuple[_Beginning, ...]) -> Iterator[tuple[_Beginning, ...]]:
        """Yield the sequences of beginnings after which everybody else finds a partner."""
        self._looks += 1
        bound = self._bound_after(begun)
        missing = self._cells & ~bound
        if not missing.any():
            yield begun
            return
        for draw in self._draws:
            if draw.may_begin and not any(draw.counts(each) for each in begun):
                for node in self._first_of_each_place(missing[draw.unit] & draw.complete):
                    if self._is_over:
                        return
                    spoilers = draw.spoilers(node, self._cells)
                    yield from self._choices((*begun, _Beginning(draw.unit, node, spoilers)))

    def _bound_after(self, begun: Sequence[_Beginning]) -> Mask:
        """Return who is bound once these have begun and nobody else may."""
        bound = self._cells.copy()
        for draw in self._draws:
            bound[draw.unit] = False
        for each in begun:
            bound[each.unit, each.node] = True
        return self._company.closed(bound, self._cells)

    def _first_of_each_place(self, nodes: Mask) -> list[int]:
        at = np.flatnonzero(nodes)
        return sorted(at[np.unique(self._places[at], return_index=True)[1]].tolist())


def _last(turns: Amounts) -> int:
    """Return the last turn; the first where nobody is placed, as of a gang that lacks surplus."""
    return int(turns.max(initial=0))


def _places(draws: Sequence[_Draw], nodes: int) -> Positions:
    """Return which nodes share the values of all keys that matter, as a number per node."""
    codes = [codes for draw in draws for codes in draw.codes]
    if not codes:
        return np.zeros(nodes, dtype=np.intp)
    return np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


class _Turns:
    """The turns of one placement, once it is clear who begins."""

    def __init__(self, cells: Mask, company: _Company, beginnings: Sequence[_Beginning]) -> None:
        self._cells, self._company = cells, company
        self._begin = np.full(cells.shape, LATER, dtype=np.int64)
        self._earliest = np.zeros(cells.shape, dtype=np.int64)
        for each in beginnings:
            turn = self._earliest[each.unit, each.node]
            self._begin[each.unit, each.node] = turn
            np.maximum(self._earliest, turn + 1, out=self._earliest, where=each.spoilers)

    def found(self) -> Amounts | None:
        """Return the turn of every cell; None where it takes too many."""
        turns = np.where(self._cells, LATER, 0)
        bound = np.zeros_like(self._cells)
        for turn in range(MOST_TURNS):
            now = self._now(bound, turn)
            turns[now & ~bound] = turn
            bound = now
            if (bound >= self._cells).all():
                return np.where(self._cells, turns, LATER)
        return None

    def _now(self, before: Mask, turn: int) -> Mask:
        """Return who is bound, whatever the order, by the end of a turn."""
        allowed = self._cells & (self._earliest <= turn)
        free = allowed.copy()
        for draw in self._company.draws:
            free[draw.unit] = False
        begins = self._begin == turn
        return self._company.closed(before | free | begins, allowed, before)


def first_alone(placement: Placement, pod_sets: Iterable[str]) -> Placement:
    """Return a placement in which pods of these sets wait for those on the first of their nodes.

    The first is where most of them go whose turn comes first. Where there are turns already, all
    that would have come with it or later do so one turn later.
    """
    sharers = frozenset(pod_sets)
    mine = [each for each in placement.assignments if each.pod_set in sharers]
    least = min((each.turn for each in mine), default=0)
    pods: Counter[str] = Counter()
    for each in (each for each in mine if each.turn == least):
        pods.update(dict(each.nodes))
    first = min(pods, key=lambda node: (-pods[node], node), default="")
    is_ordered = any(each.turn for each in placement.assignments)
    found: list[Assignment] = []
    for each in placement.assignments:
        shares = each.pod_set in sharers
        waits = each.turn >= least and (shares or is_ordered)
        if not waits:
            found.append(each)
            continue
        here = tuple(pair for pair in each.nodes if shares and pair[0] == first)
        rest = tuple(pair for pair in each.nodes if pair not in here)
        if each.turn > least:
            here, rest = (), each.nodes
        found += [replace(each, nodes=here)] if here else []
        found += [replace(each, nodes=rest, turn=each.turn + 1)] if rest else []
    return Placement(tuple(sorted(found, key=lambda a: (a.pod_set, a.replica, a.shape, a.turn))))
