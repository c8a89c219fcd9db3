"""A node as the scheduler sees it, and its taints."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum


class Removal(IntEnum):
    """Whether a node is about to be taken away: by an autoscaler, or because it is deleted."""

    NONE = 0
    POSSIBLE = 1
    """It is a candidate, and stays where it is needed."""
    CERTAIN = 2


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node; `value` is empty where the node gives none."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class Node:
    """A node as the scheduler judges it; `allocatable` holds `pods` like any other resource."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Mapping[str, int]
    features: frozenset[str] = frozenset()
    removal: Removal = Removal.NONE
