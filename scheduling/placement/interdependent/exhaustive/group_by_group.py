"""Tries all ways to place groups one after the other, the nodes of a group in rising order."""

from collections.abc import Iterator, Sequence

import numpy as np

from scheduling.placement.interdependent.partial_placement import PartialPlacement


def ways_by_group(partial: PartialPlacement, order: Sequence[int]) -> Iterator[bool]:
    """Take all ways; yield whether all pods are placed."""
    partial.reset()
    last = [-1] * len(order)
    stack = [_next_ways(partial, order, last)]
    while stack:
        if next(stack[-1], None) is None:
            stack.pop()
            yield False
        elif any(partial.left):
            stack.append(_next_ways(partial, order, last))
            yield False
        else:
            yield True


def _next_ways(partial: PartialPlacement, order: Sequence[int], last: list[int]) -> Iterator[bool]:
    """Put pods of the next group on a node, one way after the other, and take them back.

    `last` holds per group the rank of the node that it was put on last.
    """
    at = next(at for at in order if partial.left[at])
    caps = partial.open(at) * (partial.ranks(at) > last[at])
    nodes = partial.in_order(caps, at)
    rest = np.cumsum(caps[nodes][::-1])[::-1]
    before = last[at]
    for node, possible in zip(nodes.tolist(), rest.tolist(), strict=True):
        if possible < partial.left[at]:
            break
        last[at] = int(partial.ranks(at)[node])
        for count in range(int(caps[node]), 0, -1):
            partial.put(at, node, count)
            yield True
            partial.put(at, node, -count)
    last[at] = before
