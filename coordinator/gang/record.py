"""Holds the Gang object of a RayCluster, and the writes to it."""

from dataclasses import dataclass, field
from typing import Any

from coordinator.gang.attempts import Attempts
from coordinator.record.urgency import Urgency
from kube.objects.gang import Gang


@dataclass(slots=True)
class Record:
    """The Gang object of the RayCluster, and the writes to it.

    Written by `reconcile.record.recording`, and by `intake`, which hears how a write ended.
    """

    gang: Gang | None = None
    outlived: str = ""
    """Says that the Gang of an earlier RayCluster of this name is deleted and still there."""
    written: dict[str, Any] = field(default_factory=dict)
    """The status that the record holds."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The status that was written to it last."""
    writing: bool = False
    replacing: bool = False
    """A write that changes the placement in it is under way."""
    drops_held: bool = False
    """The API server has the Gangs' definition (CRD) of a release without held starts."""
    drops_together: bool = False
    """It has that of a release without gangs that start together."""
    attempts: Attempts = field(default_factory=Attempts)
    urgency: Urgency = field(default_factory=Urgency)
    due: float | None = None
    """When the next write of it is due."""
