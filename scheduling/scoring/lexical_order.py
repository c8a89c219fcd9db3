"""Orders nodes by several keys at once, and finds the first few without sorting all."""

from collections.abc import Callable, Sequence

import numpy as np

from scheduling.filters.free_capacity import BLOCK
from scheduling.model.amounts import Amounts, Positions

FEW = 500
"""Up to so many positions are sorted as they are."""

MOST_FOLDED = 2**62
"""What several keys are folded into stays below this."""

Key = Callable[[Positions], Amounts]
"""What speaks against each of some nodes; the least comes first."""


def in_lexical_order(keys: Sequence[Key], nodes: Positions, most: int | None = None) -> Positions:
    """Sort nodes by the first key, then by the next; equals stay in the order they came in.

    Only the first `most` are returned. A key is asked only of the nodes that the keys before it
    leave among them, which are few: the keys are folded into one number as they are asked.
    """
    folded: Amounts | None = None
    for key in keys:
        asked = _asked(key, nodes)
        folded = asked if folded is None else _folded(folded, asked)
        if most is not None and most < len(nodes):
            left = _among_first(folded, most)
            nodes, folded = nodes[left], folded[left] if most > 1 else None
    return nodes[:most] if folded is None else nodes[_sorted(folded)[:most]]


def _asked(key: Key, nodes: Positions) -> Amounts:
    """Ask for all nodes, in blocks small enough for what is worked out on the way to be cached."""
    if len(nodes) <= BLOCK:
        return key(nodes)
    blocks = range(0, len(nodes), BLOCK)
    return np.concatenate([key(nodes[at : at + BLOCK]) for at in blocks])


def _among_first(key: Amounts, most: int) -> Positions:
    """Return the positions of all that are no more than the `most`-th."""
    if most == 1:
        last = key.min()
    else:
        least = key.copy()
        least.partition(most - 1)
        last = least[most - 1]
    first: Positions = (key <= last).nonzero()[0]
    return first


def _folded(first: Amounts, then: Amounts) -> Amounts:
    """Return one key that orders as both do, the first before the other."""
    (low, high), (least, most) = _range(first), _range(then)
    if low == high:
        return then
    if (high - low + 1) * (most - least + 1) >= MOST_FOLDED:
        return _folded(_ranks(first), _ranks(then))
    return (first - low) * (most - least + 1) + (then - least)


def _sorted(key: Amounts) -> Positions:
    """Return the positions from the least to the largest, equals as they come.

    Many numbers are sorted faster than their positions are.
    """
    if len(key) < FEW:
        return np.argsort(key, kind="stable")
    at: Positions = np.sort(_folded(key, np.arange(len(key)))) % len(key)
    return at


def _range(key: Amounts) -> tuple[int, int]:
    return (int(key.min()), int(key.max())) if len(key) else (0, 0)


def _ranks(key: Amounts) -> Amounts:
    """Return a key with the same order that is below its length."""
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
