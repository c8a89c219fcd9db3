"""Preemption: parts of running gangs that may be stopped for a waiting one, and chosen parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.amounts import Requests
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement


@dataclass(frozen=True, slots=True)
class GangPart:
    """What of a running gang can be taken alone: its minimum, or one replica of its surplus.

    With its minimum a gang loses all its surplus. `replica` names the replica, and is empty for the
    minimum. `room` is what the part holds by node, also of reserved slots; `admitted` is when the
    gang was admitted, in seconds since 1970. `outlived` says that it runs longer than it
    or its queue declares. `kept_because` says why the part cannot be taken, and is empty where it
    can; it counts for quota all the same. `kept_in_short` is what gangs of other namespaces are
    told of that: it names nothing. `is_ending` says that it is being taken already, or that
    its pods are being deleted: its room comes free without more being done. `devices` are those
    that claims of its pods were given; those of pods that are gone are a part without room.
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
    kept_in_short: str = ""
    devices: frozenset[TakenDevice] = frozenset()

    @property
    def is_minimum(self) -> bool:
        """Say whether to take this part is to take the whole gang."""
        return not self.replica

    @property
    def is_without_pods(self) -> bool:
        """Say whether it is nothing but devices of pods that are gone."""
        return not self.room and bool(self.devices)


@dataclass(frozen=True, slots=True)
class Preemption:
    """The parts of running gangs that are to end so that a gang can be admitted.

    Those that it waits for and that are ending already are among them, not those that are to end
    for another gang. `plan` is where the gang will be then: that room is held for it.
    """

    preemptor: GangKey
    parts: tuple[GangPart, ...]
    plan: Placement = field(default=Placement())


@dataclass(frozen=True, eq=False, slots=True)
class Promise:
    """Room and quota that are kept for a gang by request, whether it waits already or not.

    `preemption` has the gang, where it goes, and what it waits for. `held` is what it holds now of
    the quota of its `queue`, by resource: that much is not counted twice.
    """

    preemption: Preemption
    queue: str
    held: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class FailedAttempts:
    """Gangs for which nothing can be taken, and what that follows from.

    `gangs` has with each the parts that were taken by then, and what its message says. That
    stands while the `tree`, the `parts` and what queues held (`held`) are the same, and the gang
    finds no more room.
    """

    tree: object
    parts: tuple[GangPart, ...]
    held: bytes
    gangs: Mapping[GangKey, tuple[PendingGang, tuple[GangPart, ...], str]]
