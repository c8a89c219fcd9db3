"""The writes of the dispatcher: each names its basis, because it may arrive late, or twice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TakeRecord:
    """Write the leader's term on the manager's Gang."""

    term: int
    version: int


@dataclass(frozen=True, slots=True)
class TakeMember:
    """Write the leader's term on its Lease of a member; refused where a newer one is there."""

    cluster: str
    term: int


@dataclass(frozen=True, slots=True)
class CopyStamp:
    """Write a member's own stamp back, so that its gangs may run on."""

    cluster: str
    stamp: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Create a GangOffer. It is never created accepted: the creation may come late."""

    cluster: str
    attempt: int
    lost_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Choose:
    """Write on the manager's Gang where the attempt may start."""

    cluster: str
    attempt: int
    version: int


@dataclass(frozen=True, slots=True)
class Accept:
    """Ask the member to start an offer, if it is still the one that was read."""

    cluster: str
    attempt: int
    term: int
    uid: str
    version: int


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Delete a GangOffer by its uid."""

    cluster: str
    attempt: int
    uid: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Write the next attempt on the manager's Gang."""

    attempt: int
    version: int


Step = TakeRecord | TakeMember | Ask | Choose | Accept | Withdraw | Retry
