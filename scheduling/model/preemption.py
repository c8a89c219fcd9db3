"""Preemption: what may be taken from running gangs for a waiting one, and what was chosen."""

from dataclasses import dataclass

from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey


@dataclass(frozen=True, slots=True)
class GangPart:
    """What of a running gang can be taken alone: its minimum, or one replica of its surplus.

    With its minimum a gang loses all its surplus. `replica` names the replica, and is empty for the
    minimum. `room` is what the part holds by node, also of reserved slots; `admitted` is when the
    gang was admitted, in seconds since 1970. `outlived` says that it runs longer than was declared
    when it passed others. `kept_because` says why the part cannot be taken, and is empty where it
    can; it counts for quota all the same. `is_ending` says that it is being taken already, or that
    its pods are being deleted: its room comes free without more being done.
    """

    gang: GangKey
    replica: str
    queue: str
    priority: int
    admitted: float
    room: tuple[tuple[str, Requests], ...]
    outlived: bool = False
    kept_because: str = ""
    is_ending: bool = False

    @property
    def is_minimum(self) -> bool:
        """Say whether to take this part is to take the whole gang."""
        return not self.replica


@dataclass(frozen=True, slots=True)
class Preemption:
    """The parts of running gangs that are to end so that a gang can be admitted."""

    preemptor: GangKey
    parts: tuple[GangPart, ...]
