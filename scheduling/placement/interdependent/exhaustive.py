"""Tries all orders of placing pods one by one, until its steps run out.

With spread constraints each pod may open or close domains for the next, whichever unit it is of. So
everything is tried pod by pod; what was reached before by other steps, or on nodes alike, is not
tried again, nor what cannot end well (`checks`). Before that, sums that no order can get around may
say no at once.
"""

from collections.abc import Hashable, Iterator

import numpy as np

from scheduling.filters.inter_pod_affinity import RequiredAffinity
from scheduling.filters.pod_topology_spread import Rule, allowed
from scheduling.placement.interdependent.moves import Moves
from scheduling.placement.interdependent.partial_placement import PartialPlacement


def steps_from(walk: PartialPlacement) -> Iterator[bool]:
    """Take all steps there are, from nothing placed; yield whether all pods are placed.

    Of steps that differ in nothing but which of several equal nodes they take, one is taken.
    """
    tallies = Moves(walk)
    reached: set[Hashable] = set()
    stack = [_steps(tallies)]
    while stack:
        if next(stack[-1], None) is None:
            stack.pop()
        elif not any(tallies.left):
            tallies.hand_over()
            yield True
            continue
        elif (state := tallies.state()) not in reached:
            reached.add(state)
            if not tallies.is_hopeless():
                stack.append(_steps(tallies))
        yield False


def _steps(tallies: Moves) -> Iterator[bool]:
    """Place one pod of any unit, one way after the other, and take it back."""
    for at in range(len(tallies.left)):
        if not tallies.left[at]:
            continue
        for node in tallies.open(at):
            tallies.put(at, node, 1)
            yield True
            tallies.put(at, node, -1)


def is_impossible(walk: PartialPlacement) -> bool:
    """Say whether some unit does not fit even if each of its terms or constraints stood alone.

    With all there, besides, that a constraint could count.
    """
    internal_constraints, counts = walk.internal_constraints, walk.counts
    alone = ((at, key) for at, other, key in internal_constraints.anti_affinity if at == other)
    return (
        any(_most_apart(at, key, walk) < counts[at] for at, key in alone)
        or any(
            _most_drawn(near, walk) < counts[near.unit] for near in internal_constraints.affinity
        )
        or any(_most(rule, walk) < counts[rule.owner] for rule in _own_counts(walk))
    )


def _most_apart(at: int, key: str, walk: PartialPlacement) -> int:
    """Return how many pods of a unit find room, one within each value of the label."""
    rooms, elsewhere = walk.rooms_within(key, at)
    return int(np.minimum(rooms, 1).sum()) + elsewhere


def _most_drawn(near: RequiredAffinity, walk: PartialPlacement) -> int:
    """Return how many pods of a unit find room near its first, and near each of those it follows.

    All do where something else stands that they are drawn to.
    """
    if any(near.matching_values) or walk.has_begun(near):
        return walk.counts[near.unit]
    others = near.partners - {near.unit}
    begun = int(near.allows_first_pod) + sum(walk.counts[at] for at in others)
    rooms = [np.sort(walk.rooms_within(key, near.unit)[0])[::-1] for key in near.keys]
    return min(int(each[:begun].sum()) for each in rooms)


def _own_counts(walk: PartialPlacement) -> Iterator[Rule]:
    return (
        rule
        for rule in walk.internal_constraints.spread
        if rule.counts_itself and walk.counts[rule.owner]
    )


def _most(rule: Rule, walk: PartialPlacement) -> int:
    """Return how many pods of the owner fit once the least is as high as it can ever be."""
    walk.begin()
    held = walk.held(rule)
    rooms = {at: np.minimum(walk.room_for(at), walk.counts[at]) for at in sorted(rule.counted)}
    highest = held + sum(rule.domains.sums(each) for each in rooms.values())
    most = rule.least(highest) + rule.constraint.max_skew
    return int(allowed(held, rule.domains.sums(rooms[rule.owner]), most).sum())
