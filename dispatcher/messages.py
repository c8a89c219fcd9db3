"""Defines the events and actions of the dispatcher's state machine.

An action belongs to one Ray object, named by its uid, and to one lane: the writes about it on the
manager, or the writes for it on one member. Each lane has at most one action under way. The result
carries the `ticket` of its action; another ticket means an earlier term or connection.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from dispatcher.reading import Answer, Copy, Original, Thing, Turn
from kube.objects.clusters.dispatch import GangDispatch

RECORD, STATUS, EVENT = "record of the gang", "status of the object", "event of the object"
"""Lanes of the manager. Those of members have their names, which have no blanks."""

HERE = ""
"""Where the manager's own objects are seen; other places are names of members."""

Json = dict[str, Any]

# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """An object is there, or not what it was."""

    where: str
    thing: Thing


@dataclass(frozen=True, slots=True)
class Gone:
    """An object is there no more."""

    where: str
    thing: Thing


@dataclass(frozen=True, slots=True)
class MemberUp:
    """All that a member has of ours was seen, and it can be written to."""

    member: str


@dataclass(frozen=True, slots=True)
class MemberDown:
    """A member cannot be read or written, or must not be; what was seen there is old now."""

    member: str
    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """An action was carried out; what came back with its answers."""

    things: tuple[tuple[str, Thing], ...] = ()
    """Each with where it is."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An action was not carried out, or that is not known."""

    error: str


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """An action was not carried out: a member does not let the creator of the object."""

    why: str
    offer: str
    """The uid of the GangOffer that was to be accepted; empty where there is none yet."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An action is over."""

    uid: str
    lane: str
    ticket: int
    result: Done | Failed | NotAllowed


@dataclass(frozen=True, slots=True)
class LeaseTaken:
    """The leader's term stands on its Lease of a member, or could not be written."""

    member: str
    ticket: int
    term: int
    error: str = ""
    renewed: bool = False
    """Whether a newer stamp of the member was written back."""


@dataclass(frozen=True, slots=True)
class TermStarted:
    """This replica leads; `manager` is the uid of the manager's kube-system."""

    term: int
    manager: str


@dataclass(frozen=True, slots=True)
class TermEnded:
    """It leads no more."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A moment that something waited for has come."""


Event: TypeAlias = (
    Seen | Gone | MemberUp | MemberDown | Ended | LeaseTaken | TermStarted | TermEnded | TimePassed
)

# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write where the gang is sent, on the version of its Gang that this was decided on."""

    turn: Turn
    dispatch: GangDispatch
    informs: bool = False
    """Whether it but says what members say."""


@dataclass(frozen=True, slots=True)
class CloseRecord:
    """The same for an attempt that is over on its member, which is read afresh before."""

    member: str
    turn: Turn
    dispatch: GangDispatch
    namespace: str
    offer: str
    """The name of its GangOffer."""


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Write the leader's term on its Lease of a member, and the stamp that is there back."""

    member: str
    ticket: int
    manager: str
    term: int


@dataclass(frozen=True, slots=True)
class AskMember:
    """Create a GangOffer."""

    member: str
    namespace: str
    body: Json
    creator_of: Original | None = None
    """The object whose creator is asked for before; None where users are not the same there."""


@dataclass(frozen=True, slots=True)
class PatchOffer:
    """Accept a GangOffer."""

    member: str
    answer: Answer
    operations: list[Json]
    creator_of: Original | None = None
    """As of `AskMember`."""


@dataclass(frozen=True, slots=True)
class GiveLeave:
    """Let a member stop gangs for an offer, for a time."""

    member: str
    answer: Answer
    until: float
    """That of the record (the manager's time of day, in seconds)."""
    ends: float
    """When the member may no longer (monotonic seconds)."""


@dataclass(frozen=True, slots=True)
class WithdrawOffer:
    """Delete a GangOffer by its uid."""

    member: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class CreateCopy:
    """Create the copy for an offer that was started."""

    member: str
    namespace: str
    body: Json


@dataclass(frozen=True, slots=True)
class PatchCopy:
    """Carry later wishes of its user to a copy."""

    member: str
    copy: Copy
    operations: list[Json]


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """Write how the copy is into the status of its original."""

    original: Original
    status: Json


@dataclass(frozen=True, slots=True)
class TellWarning:
    """Write an Event on the original."""

    original: Original
    reason: str
    message: str


Deed: TypeAlias = (
    WriteRecord
    | CloseRecord
    | AskMember
    | PatchOffer
    | GiveLeave
    | WithdrawOffer
    | CreateCopy
    | PatchCopy
    | MirrorStatus
    | TellWarning
)


@dataclass(frozen=True, slots=True)
class Act:
    """A deed, and the lane that it is of."""

    uid: str
    lane: str
    ticket: int
    deed: Deed


Action: TypeAlias = Act | TakeLease


Written: TypeAlias = tuple[str, Deed]
"""A write, and its lane."""


def place_of(deed: Deed) -> str:
    """Name the member whose answers a deed waits for; that of the manager is empty."""
    return HERE if isinstance(deed, WriteRecord | MirrorStatus | TellWarning) else deed.member
