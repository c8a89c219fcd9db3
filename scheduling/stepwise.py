"""Can the pods of a gang be placed one after the other, whatever comes next?

With spread constraints each pod may open or close domains for the next, whichever unit it is of. So
everything is tried pod by pod; what was reached before by other steps is not tried again. Before
that, sums that no order can get around may say no at once.
"""

from collections.abc import Iterator

import numpy as np

from scheduling.skew import Rule, allowed
from scheduling.walk import Walk


def steps_from(walk: Walk) -> Iterator[bool]:
    """Take all steps there are, from nothing placed; yield whether all pods are placed."""
    walk.begin()
    reached: set[tuple[bytes, bytes]] = set()
    stack = [_steps(walk)]
    while stack:
        if next(stack[-1], None) is None:
            stack.pop()
            yield False
        elif not any(walk.left):
            yield True
        elif (state := _state(walk)) not in reached:
            reached.add(state)
            stack.append(_steps(walk))
            yield False


def _steps(walk: Walk) -> Iterator[bool]:
    """Place one pod of any unit, one way after the other, and take it back."""
    for at in range(len(walk.left)):
        if not walk.left[at]:
            continue
        for node in walk.in_order(walk.open(at), at).tolist():
            walk.put(at, node, 1)
            yield True
            walk.put(at, node, -1)


def _state(walk: Walk) -> tuple[bytes, bytes]:
    cells = np.flatnonzero(walk.placed)
    return cells.tobytes(), walk.placed.ravel()[cells].tobytes()


def is_impossible(walk: Walk) -> bool:
    """Say whether some unit does not fit even with all there that its constraint could count."""
    return any(_most(rule, walk) < walk.counts[rule.owner] for rule in _own_counts(walk))


def _own_counts(walk: Walk) -> Iterator[Rule]:
    return (rule for rule in walk.bonds.rules if rule.counts_itself and walk.counts[rule.owner])


def _most(rule: Rule, walk: Walk) -> int:
    """Return how many pods of the owner fit once the least is as high as it can ever be."""
    walk.begin()
    held = walk.held(rule)
    rooms = {at: np.minimum(walk.room_for(at), walk.counts[at]) for at in sorted(rule.counted)}
    highest = held + sum(rule.domains.sums(each) for each in rooms.values())
    most = rule.least(highest) + rule.constraint.max_skew
    return int(allowed(held, rule.domains.sums(rooms[rule.owner]), most).sum())
