"""Yields the subsets of items that have a cost, the cheapest subset first."""

import heapq
from collections.abc import Iterator, Sequence

Cost = tuple[int, int]
"""What is lost, in millionths, and of how many things."""


def cheapest_first(costs: Sequence[Cost]) -> Iterator[tuple[int, ...]]:
    """Yield the subsets of positions by the sum of their costs; `costs` must not fall.

    After a subset come those with one more at the end, and with the last one replaced by the next:
    each subset has one parent, and costs no less than it.
    """
    if not costs:
        return
    heap: list[tuple[Cost, tuple[int, ...]]] = [(costs[0], (0,))]
    while heap:
        cost, chosen = heapq.heappop(heap)
        yield chosen
        after = chosen[-1] + 1
        if after < len(costs):
            more = _sum(cost, costs[after])
            heapq.heappush(heap, (more, (*chosen, after)))
            heapq.heappush(heap, (_without(more, costs[after - 1]), (*chosen[:-1], after)))


def _sum(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def _without(one: Cost, other: Cost) -> Cost:
    return one[0] - other[0], one[1] - other[1]
