"""NodeResourcesFit: how many pods with these requests each node takes."""

from collections.abc import Mapping

import numpy as np

from scheduling.model.amounts import MOST, Amounts, Requests


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
