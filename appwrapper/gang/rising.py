"""Computes the priority that an AppWrapper adds to its pods; it may grow with time."""

from typing import Protocol

from kube.codec.fields import created_at
from kube.objects.base import ObjectMeta

MINUTE = 60.0

MOST_ADDED = 2.0**31
"""That an AppWrapper can add to the priority of its pods, or take from it."""


class Rising(Protocol):
    """What says since when, and how fast."""

    @property
    def metadata(self) -> ObjectMeta:
        """When it was created."""

    @property
    def priority(self) -> int:
        """What it adds then."""

    @property
    def priority_slope(self) -> float:
        """By how much that grows in a second."""


def added_priority(form: Rising, now: float) -> int:
    """Return its priority with what its slope has added since it was created.

    MCAD adds `priorityslope` for each second. Here it is added a minute at a time: each change
    is written to the Gang.
    """
    minutes = max(0.0, now - created_at(form.metadata)) // MINUTE
    added = form.priority + form.priority_slope * minutes * MINUTE
    return int(max(-MOST_ADDED, min(MOST_ADDED, added)))


def rises_every(form: Rising) -> float:
    """Return after how many seconds it is another one; 0 where its slope is flat."""
    return MINUTE if form.priority_slope != 0 else 0.0
