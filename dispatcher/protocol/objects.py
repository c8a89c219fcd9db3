"""Defines the written state of a gang's dispatch: the manager's record, the members' offers."""

import math
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """How far the coordinator of a member is with an offer."""

    ASKED = "Asked"
    OFFERED = "Offered"
    """There is a placement, and its room is reserved."""
    STARTED = "Started"
    """The gang was created there."""
    CLOSED = "Closed"
    """No pod of the attempt is left, and none will come. Final."""


@dataclass(frozen=True, slots=True)
class Record:
    """The dispatch of a gang as the manager's Gang has it."""

    attempt: int = 1
    cluster: str = ""
    """Where the attempt may start; empty until that is decided, then the same to its end."""
    term: int = 0
    """That of the last leader that wrote here."""
    version: int = 0
    """A write names the version that it was decided on, and fails where there is another."""
    lost_after: float = 0.0
    """Seconds without its member after which the attempt is over; 0 where it never is. That of the
    queue when the attempt was written, for as long as it lasts."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The GangOffer of one attempt on one member. Its coordinator alone moves the phase."""

    attempt: int
    uid: str
    version: int = 0
    phase: Phase = Phase.ASKED
    accepted_by: int = 0
    """The term of the leader that accepted it; 0 while none has."""
    withdrawn: bool = False
    """Its deletion was asked for; it goes once no pod is left."""
    lost_after: float = 0.0
    """Seconds without the manager until its gang stops; 0 where it never does."""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs, or ever will."""
        return self.phase is Phase.CLOSED


@dataclass(frozen=True, slots=True)
class Lease:
    """What a member knows of the manager's leaders."""

    term: int = 0
    """The newest; what an older one accepted is not started any more."""
    stamp: float = 0.0
    """When the member's coordinator wrote last, in seconds of its own clock."""
    copied: float | None = 0.0
    """The newest stamp that a leader has read and written back; None where it was not read yet."""
    read_at: float = math.inf
    """When the member's coordinator first read that one, in monotonic seconds."""
