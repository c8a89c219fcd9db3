"""How many pods that ask for this much fit into that much room, node by node?"""

from collections.abc import Mapping

import numpy as np

from scheduling.columns import Amounts

Requests = tuple[tuple[str, int], ...]

MOST = 2**31
"""No node runs more pods; counts are cut off here so that sums over nodes stay in 64 bits."""

_ALWAYS_ADDS_UP = 2**62


def pods_per_node(
    requests: Requests, row: Mapping[str, int], free: Amounts, beside: Requests = ()
) -> Amounts:
    """Return min over the requested resources of free // request, never below zero.

    One division of a contiguous row by a scalar per resource. A resource that no node has
    fits nowhere; what is not asked for is not looked at, even where it is overcommitted
    (plugin NodeResourcesFit). Pods that ask for nothing fit MOST times. `beside` is what another
    pod has taken before on each node.
    """
    fitting = np.full(free.shape[1], MOST, dtype=np.int64)
    taken = dict(beside)
    for resource, amount in requests:
        at = row.get(resource)
        if at is None:
            return np.zeros(free.shape[1], dtype=np.int64)
        left = free[at] - taken[resource] if resource in taken else free[at]
        np.minimum(fitting, left // amount, out=fitting)
    return np.maximum(fitting, 0, out=fitting)


def exact_sum(amounts: Amounts) -> int:
    """Add up amounts whose sum may pass 64 bits: high and low halves apart."""
    if int(amounts.max(initial=0)) < _ALWAYS_ADDS_UP // max(len(amounts), 1):
        return int(amounts.sum())
    return (int((amounts >> 31).sum()) << 31) + int((amounts & (2**31 - 1)).sum())
