"""Tries all orders of placing pods one by one.

With spread constraints each pod may open or close domains for the next, whichever group it is of.
So everything is tried pod by pod; what was reached before by other steps, or on equivalent nodes,
is not tried again, nor what cannot end well (`checks`).
"""

from collections.abc import Hashable, Iterator

from scheduling.placement.interdependent.exhaustive.moves import Moves
from scheduling.placement.interdependent.partial_placement import PartialPlacement


def ways_by_pod(partial: PartialPlacement) -> Iterator[bool]:
    """Take all steps there are, from nothing placed; yield whether all pods are placed.

    Of steps that differ in nothing but which of several equivalent nodes they take, one is taken.
    """
    moves = Moves(partial)
    reached: set[Hashable] = set()
    stack = [_steps(moves)]
    while stack:
        if next(stack[-1], None) is None:
            stack.pop()
        elif not any(moves.left):
            moves.hand_over()
            yield True
            continue
        elif (state := moves.state()) not in reached:
            reached.add(state)
            if not moves.is_hopeless():
                stack.append(_steps(moves))
        yield False


def _steps(moves: Moves) -> Iterator[bool]:
    """Place one pod of any group, one way after the other, and take it back."""
    for at in range(len(moves.left)):
        if not moves.left[at]:
            continue
        for node in moves.open(at):
            moves.put(at, node, 1)
            yield True
            moves.put(at, node, -1)
