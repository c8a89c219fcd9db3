"""Amounts: names of resources, requests, arrays over nodes, and sums that stay exact."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
OF_CLASS = "deviceclass.resource.kubernetes.io/"
"""Kubernetes offers each DeviceClass as an extended resource of this name and its own."""

Requests = tuple[tuple[str, int], ...]

MOST = 2**31
"""No node runs more pods; counts are cut off here so that sums over nodes stay in 64 bits."""

_ALWAYS_ADDS_UP = 2**62
Amounts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]

LIMIT = 2**52
"""Amounts are cut off here in the columns (4 Pi), so that a thousand add up in 64 bits."""


def sorted_requests(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return amounts in the form of PodShape.requests: sorted by name, without zeros."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


def exact_sum(amounts: Amounts) -> int:
    """Add up amounts whose sum may pass 64 bits: high and low halves separately."""
    if int(amounts.max(initial=0)) < _ALWAYS_ADDS_UP // max(len(amounts), 1):
        return int(amounts.sum())
    return (int((amounts >> 31).sum()) << 31) + int((amounts & (2**31 - 1)).sum())


def is_device(resource: str) -> bool:
    """Say whether the resource is an extended one, as device plugins offer them."""
    domain, slash, _ = resource.partition("/")
    made_up = ":" in domain
    return bool(slash) and not made_up and not domain.endswith("kubernetes.io")


def is_extended(resource: str) -> bool:
    """Say whether a node may give the resource by a DeviceClass: extended ones, those of classes.

    As IsDRAExtendedResourceName of kube-scheduler says it.
    """
    return resource.startswith(OF_CLASS) or is_device(resource)
