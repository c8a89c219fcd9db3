"""Holds the Gang object of a RayCluster, and the writes to it."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from coordinator.gang.attempts import Attempts
from coordinator.record.urgency import Urgency
from kube.objects.gang import Gang


class Writing(NamedTuple):
    """A write of the record that is under way."""

    replaces: bool = False
    """It changes the placement."""
    before: Urgency | None = None
    """How urgent the status was that is on its way; None where another part is written."""


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
    writing: Writing | None = None
    drops: frozenset[str] = frozenset()
    """Parts of the status ("held", "together") that the API server drops: it has the Gangs'
    definition (CRD) of a release without them."""
    attempts: Attempts = field(default_factory=Attempts)
    urgency: Urgency = field(default_factory=Urgency)
    due: float | None = None
    """When the next write of it is due."""

    @property
    def is_replaced(self) -> bool:
        """Whether a write that changes the placement in it is under way."""
        return self.writing is not None and self.writing.replaces

    def fall_behind(self, now: float) -> float:
        """Note that the record differs from what it should say; returns since when it does."""
        since = now if self.urgency.since is None else self.urgency.since
        self.urgency = replace(self.urgency, since=since)
        return since

    def write_ended(self, error: str | None, now: float) -> None:
        """Take in how a write ended; after a failed one the record is as far behind as it was."""
        before = self.writing.before if self.writing is not None else None
        self.writing = None
        if error is None:
            self.attempts.failures = 0
            return
        self.attempts.failed(now, error)
        self.urgency, self.sent = before or self.urgency, {}
