"""Plans which pods of a placed gang are released at once, so that kube-scheduler binds all of them.

A pod with required affinity to pods of its own gang is bound where one of those is bound, or, where
none of them is bound anywhere, on any node with the label (the first-pod rule of plugin
InterPodAffinity). So it can matter which pod is bound first, and kube-scheduler takes pods in an
order of its own. The pods of one wave are bound in whatever order they are taken; a later wave is
released once all earlier ones are bound.

A cell is the pods of one unit on one node: if one can be bound, all can. A cell with a bound
partner in its domain keeps it, whatever is bound later; only a first pod needs that others are not
bound yet. So if any order succeeds, one does in which the first pods come first. Those are chosen
by trying (`_Plans`). What would bar a first pod goes into a later wave, and each other cell goes
into the earliest wave in which its partners are certain to be bound (`_Waves`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.filters.gang_affinity import RequiredAffinity
from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.placement import Assignment, Placement
from scheduling.placement.interdependent.search import BindOrder
from scheduling.state.node_snapshot import NodeAttributes

MOST_WAVES = 8
"""More waves are not tried: each costs the time until all its pods are seen bound."""

MOST_CHOICES = 128
"""So many choices of first pods are tried for one placement."""

STEPS_PER_LOOK = 2500
"""What it costs to find the nodes that an affinity allows, in steps of some 20 ns."""

MOST_STEPS = 2_000_000
"""No choice is begun after so many: chains of units with affinity to each other cost many looks."""

LATER = -1
"""The wave of a cell that has none yet, and of cells without pods."""


def plan_release_waves(
    pods: Amounts, near: Sequence[RequiredAffinity], traits: NodeAttributes
) -> BindOrder:
    """Plan the waves for pods (units x nodes) that are placed, as few as there can be.

    No wave at all: there is no such order, or it needs too many waves or choices.
    """
    here = np.flatnonzero(pods.any(axis=0))
    cells: Mask = pods[:, here] > 0
    affinities = [_Affinity(each, here, traits) for each in near if cells[each.group].any()]
    plans = _Plans(cells, affinities)
    best = plans.best()
    of = np.full(pods.shape, LATER, dtype=np.int64)
    if best is not None:
        of[:, here] = best
    count = 0 if best is None else _last(best) + 1
    return BindOrder(of, count, plans.spent)


class _Affinity:
    """The required affinity of one unit to pods of its gang, over the nodes in use.

    Nodes that are `complete` have all the keys, those that are `counted` at least one.
    """

    def __init__(self, near: RequiredAffinity, here: Positions, traits: NodeAttributes) -> None:
        self.unit, self.is_not_requeued = near.group, near.is_not_requeued
        self.allows_first_pod = near.allows_first_pod
        self.partners = sorted(near.partners)
        labels = [traits.label(key) for key in near.keys]
        self.codes = [label.of[here] for label in labels]
        self.known = [label.where(lambda value: value is not None)[here] for label in labels]
        self.matching = [
            label.where(values.__contains__)[here]
            for label, values in zip(labels, near.matching_values, strict=True)
        ]
        self.complete: Mask = np.logical_and.reduce(self.known)
        self.counted: Mask = np.logical_or.reduce(self.known)

    def allowed(self, bound: Mask) -> Mask:
        """Return the nodes with a matching value or a bound partner in the domain of every key."""
        at = bound[self.partners].any(axis=0)
        found = self.complete.copy()
        for codes, known, matching in zip(self.codes, self.known, self.matching, strict=True):
            found &= matching | (known & np.isin(codes, codes[at & known]))
        return found

    def counts(self, first: "_First") -> bool:
        """Say whether a first pod is a partner, so that the first-pod rule holds no longer."""
        return first.unit in self.partners and bool(self.counted[first.node])

    def barring(self, node: int, cells: Mask) -> Mask:
        """Return the cells that bar a first pod from the node once they are bound."""
        same = np.logical_and.reduce([codes == codes[node] for codes in self.codes])
        found = np.zeros_like(cells)
        found[self.partners] = self.counted & ~(same & self.complete)
        return found & cells


@dataclass(frozen=True, eq=False, slots=True)
class _First:
    """A pod of a unit is bound on a node by the first-pod rule; cells `barring` it come later."""

    unit: int
    node: int
    barring: Mask


class _Binding:
    """Works out which cells get bound; `spent` are the steps that this took."""

    def __init__(self, affinities: Sequence[_Affinity]) -> None:
        self.affinities = affinities
        self.spent = 0
        self._waiting_for: defaultdict[int, list[int]] = defaultdict(list)
        for at, affinity in enumerate(affinities):
            for partner in affinity.partners:
                self._waiting_for[partner].append(at)

    def closure(self, bound: Mask, cells: Mask, before: Mask | None = None) -> Mask:
        """Return which of the cells are bound sooner or later beside `bound`.

        Units that are not requeued need partners that were bound `before`, where that is given.
        """
        bound = bound.copy()
        waiting = dict.fromkeys(range(len(self.affinities)))
        while waiting:
            at = next(iter(waiting))
            del waiting[at]
            affinity = self.affinities[at]
            unit = affinity.unit
            self.spent += STEPS_PER_LOOK + bound.shape[1]
            partners = bound if before is None or not affinity.is_not_requeued else before
            found = affinity.allowed(partners)
            more = found & cells[unit] & ~bound[unit]
            if more.any():
                bound[unit] |= more
                waiting.update(dict.fromkeys(self._waiting_for[unit]))
        return bound


class _Plans:
    """All choices of first pods for one placement."""

    def __init__(self, cells: Mask, affinities: Sequence[_Affinity]) -> None:
        self._cells, self._affinities = cells, affinities
        self._binding = _Binding(affinities)
        self._places = _places(affinities, cells.shape[1])
        self._choices = 0

    @property
    def spent(self) -> int:
        """Return the steps that were taken."""
        return self._binding.spent

    @property
    def _is_over(self) -> bool:
        return self._choices > MOST_CHOICES or self.spent > MOST_STEPS

    def best(self) -> Amounts | None:
        """Return the waves of the plan with the fewest, the first such by node; None if none."""
        best: Amounts | None = None
        for firsts in self._choices_after(()):
            found = _Waves(self._cells, self._binding, firsts).found()
            if found is not None and (best is None or _last(found) < _last(best)):
                best = found
            if self._is_over or (best is not None and not _last(best)):
                break
        return best

    def _choices_after(self, firsts: tuple[_First, ...]) -> Iterator[tuple[_First, ...]]:
        """Yield the sequences of first pods after which every other cell finds a partner."""
        self._choices += 1
        missing = self._cells & ~self._bound_after(firsts)
        if not missing.any():
            yield firsts
            return
        for affinity in self._affinities:
            if affinity.allows_first_pod and not any(affinity.counts(each) for each in firsts):
                for node in self._one_per_place(missing[affinity.unit] & affinity.complete):
                    if self._is_over:
                        return
                    barring = affinity.barring(node, self._cells)
                    yield from self._choices_after((*firsts, _First(affinity.unit, node, barring)))

    def _bound_after(self, firsts: Sequence[_First]) -> Mask:
        """Return the cells that are bound once these first pods are and no other may be first."""
        bound = self._cells.copy()
        for affinity in self._affinities:
            bound[affinity.unit] = False
        for each in firsts:
            bound[each.unit, each.node] = True
        return self._binding.closure(bound, self._cells)

    def _one_per_place(self, nodes: Mask) -> list[int]:
        at = np.flatnonzero(nodes)
        return sorted(at[np.unique(self._places[at], return_index=True)[1]].tolist())


def _last(waves: Amounts) -> int:
    """Return the last wave; the first where nothing is placed, as of a gang that lacks surplus."""
    return int(waves.max(initial=0))


def _places(affinities: Sequence[_Affinity], nodes: int) -> Positions:
    """Return which nodes share the values of all keys that matter, as a number per node."""
    codes = [codes for affinity in affinities for codes in affinity.codes]
    if not codes:
        return np.zeros(nodes, dtype=np.intp)
    return np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


class _Waves:
    """The waves of one placement, once its first pods are chosen."""

    def __init__(self, cells: Mask, binding: _Binding, firsts: Sequence[_First]) -> None:
        self._cells, self._binding = cells, binding
        self._first = np.full(cells.shape, LATER, dtype=np.int64)
        self._earliest = np.zeros(cells.shape, dtype=np.int64)
        for each in firsts:
            wave = self._earliest[each.unit, each.node]
            self._first[each.unit, each.node] = wave
            np.maximum(self._earliest, wave + 1, out=self._earliest, where=each.barring)

    def found(self) -> Amounts | None:
        """Return the wave of every cell; None where it takes too many."""
        waves = np.where(self._cells, LATER, 0)
        bound = np.zeros_like(self._cells)
        for wave in range(MOST_WAVES):
            now = self._bound_by(bound, wave)
            waves[now & ~bound] = wave
            bound = now
            if (bound >= self._cells).all():
                return np.where(self._cells, waves, LATER)
        return None

    def _bound_by(self, before: Mask, wave: int) -> Mask:
        """Return the cells that are bound by the end of a wave, whatever the order within it."""
        allowed = self._cells & (self._earliest <= wave)
        free = allowed.copy()
        for affinity in self._binding.affinities:
            free[affinity.unit] = False
        return self._binding.closure(before | free | (self._first == wave), allowed, before)


def first_alone(placement: Placement, pod_sets: Iterable[str]) -> Placement:
    """Return a placement in which pods of these sets wait for those on the first of their nodes.

    The first is the node with most of their pods in the earliest wave. Where several waves exist
    already, all that would have come with this one or later comes one wave later.
    """
    sharers = frozenset(pod_sets)
    mine = [each for each in placement.assignments if each.pod_set in sharers]
    least = min((each.wave for each in mine), default=0)
    pods: Counter[str] = Counter()
    for each in (each for each in mine if each.wave == least):
        pods.update(dict(each.nodes))
    first = min(pods, key=lambda node: (-pods[node], node), default="")
    is_ordered = any(each.wave for each in placement.assignments)
    found: list[Assignment] = []
    for each in placement.assignments:
        if each.wave < least or not (each.pod_set in sharers or is_ordered):
            found.append(each)
        elif each.pod_set in sharers and each.wave == least:
            found += _parted(each, first)
        else:
            found.append(replace(each, wave=each.wave + 1))
    return Placement.of(found)


def _parted(assignment: Assignment, first: str) -> Iterator[Assignment]:
    """Yield the part of an assignment on its first node, and the rest one wave later."""
    here = tuple(pair for pair in assignment.nodes if pair[0] == first)
    rest = tuple(pair for pair in assignment.nodes if pair[0] != first)
    if here:
        yield replace(assignment, nodes=here)
    if rest:
        yield replace(assignment, nodes=rest, wave=assignment.wave + 1)
