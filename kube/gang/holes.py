"""Judges whether a gang fits into the holes that the status of its queue shows. Pure."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from kube.objects.queues.queue import QueueHole

Need = tuple[Mapping[str, int], int]
"""What one pod takes, by resource, and how many such pods must start at once."""


class Room(IntEnum):
    """What holes show of a gang; a smaller one is better."""

    AMPLE = 0
    """All of it fits by GPUs, with the CPU and memory that is typical beside one; or not known."""
    TIGHT = 1
    """All of it fits by GPUs alone."""
    NONE = 2


def pods_needed(hole: QueueHole, needs: Iterable[Need]) -> int:
    """Count the pods of the size of a hole that these come to, each pod by itself."""
    if not hole.size:
        return 0
    return sum(amounts.get(hole.resource, 0) // hole.size * count for amounts, count in needs)


def room_for(needs: Iterable[Need], holes: Iterable[QueueHole]) -> Room:
    """Judge a gang by holes: the worst of them counts."""
    asked = tuple(needs)
    return max((_room(pods_needed(each, asked), each) for each in holes), default=Room.AMPLE)


def _room(pods: int, hole: QueueHole) -> Room:
    if pods <= hole.pods:
        return Room.AMPLE
    return Room.TIGHT if pods <= hole.at_most else Room.NONE
