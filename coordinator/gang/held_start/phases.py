"""States the phases of a held start: one table of transitions, and what is kept in each phase.

    ┌──────── taken over ───────┬─────── taken over ──────┐
    ▼                           │                         │
    "" ──created held──▶ Waiting ──resumed──▶ Resumed ──given back, makes way──▶ Suspending
    │                       ▲                    ▲                                ▲  │  │
    └───────────────────────┼────── makes way ───┼────────────────────────────────┘  │  │
                            │                    └──────────────── runs ─────────────┘  │
                            └────────────────────────── suspended ──────────────────────┘

The phase stands in the Gang, and is written before the source is suspended; what else is kept in it
is lost with the term, and found out again. A source that is suspended while its phase says Resumed,
or has none, was suspended by others. Where another program creates and deletes the objects, the
stage that it says decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import ClassVar

from coordinator.gang.demand import NotReady
from kube.gang.source import Stage


class Phase(StrEnum):
    """How far the held start has come; NONE of gangs that are not held."""

    NONE = ""
    WAITING = "Waiting"
    RESUMED = "Resumed"
    SUSPENDING = "Suspending"


class Sign(Enum):
    """What leads to another phase, of a source that Muster itself suspends and resumes."""

    RESUMED = "its pods may be made, and it has a placement"
    TAKEN_OVER = "others resumed it without one, or suspended it"
    GIVEN_BACK = "it has to give its placement back"
    SUSPENDED = "it is suspended, as was asked for"
    MAKES_WAY = "another gang comes before it in a ResourceQuota"
    RUNS = "others took a gate off"
    UNRECORDED = "its phase cannot be written"
    OPTED_OUT = "it is no gang any more"


_STAGES: Mapping[Sign | Stage, Phase] = {
    Sign.OPTED_OUT: Phase.NONE,
    Stage.OVER: Phase.NONE,
    Stage.QUEUED: Phase.WAITING,
    Stage.CREATING: Phase.RESUMED,
    Stage.ACTIVE: Phase.RESUMED,
    Stage.LEAVING: Phase.SUSPENDING,
}

TRANSITIONS: Mapping[Phase, Mapping[Sign | Stage, Phase]] = {
    Phase.NONE: {**_STAGES, Sign.MAKES_WAY: Phase.SUSPENDING},
    Phase.WAITING: {
        **_STAGES,
        Sign.RESUMED: Phase.RESUMED,
        Sign.TAKEN_OVER: Phase.NONE,
    },
    Phase.RESUMED: {
        **_STAGES,
        Sign.GIVEN_BACK: Phase.SUSPENDING,
        Sign.MAKES_WAY: Phase.SUSPENDING,
        Sign.TAKEN_OVER: Phase.NONE,
        Sign.UNRECORDED: Phase.NONE,
    },
    Phase.SUSPENDING: {
        **_STAGES,
        Stage.CREATING: Phase.SUSPENDING,  # the other program has not seen yet what it is to do
        Stage.ACTIVE: Phase.SUSPENDING,
        Sign.SUSPENDED: Phase.WAITING,
        Sign.RUNS: Phase.RESUMED,
        Sign.UNRECORDED: Phase.NONE,
    },
}


@dataclass(frozen=True, slots=True)
class NotHeld:
    """The pods of the gang exist, or are made as ever."""

    phase: ClassVar = Phase.NONE
    generation: int = 0
    """Of the source when the phase began, as in each phase; an older source is not judged by it."""
    by_others: bool = False
    """Others resumed or suspended it while it was held: it is not suspended again."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The source is suspended; no pod of it is wanted."""

    phase: ClassVar = Phase.WAITING
    generation: int = 0
    problem: NotReady | None = None
    """Why the pods cannot be created, as far as that can be foreseen."""
    is_short: bool = False
    """That is a ResourceQuota alone, without room for them now."""
    refused_since: float | None = None
    """Since when it fails to be resumed for its placement."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a gang that was resumed may have to be suspended again, and since when."""

    kind: str
    since: float


@dataclass(frozen=True, slots=True)
class Resumed:
    """The source was resumed for its placement; its pods come, or run."""

    phase: ClassVar = Phase.RESUMED
    generation: int = 0
    doubt: Doubt | None = None
    came: int = 0
    """How many of its pods existed at most."""
    came_at: float = 0.0
    """Since when so many (monotonic seconds); 0 before the first look."""

    def with_pods(self, pods: int, now: float) -> "Resumed":
        """Take in how many pods exist: the time for those to come begins anew with each more."""
        more = pods > self.came or not self.came_at
        return replace(self, came=pods, came_at=now) if more else self

    def doubted(self, kind: str | None, now: float) -> "Resumed":
        """Keep since when there is this doubt, and no other."""
        if kind is None or self.doubt is None or self.doubt.kind != kind:
            return replace(self, doubt=Doubt(kind, now) if kind is not None else None)
        return self


@dataclass(frozen=True, slots=True)
class Suspending:
    """The source is about to be suspended again."""

    phase: ClassVar = Phase.SUSPENDING
    generation: int = 0


State = NotHeld | Waiting | Resumed | Suspending

STATES: Mapping[Phase, type[State]] = {
    each.phase: each for each in (NotHeld, Waiting, Resumed, Suspending)
}


def entered(before: State, sign: Sign | Stage, generation: int) -> State:
    """Return the state that a sign leads to; the same one where it leads nowhere else."""
    phase = TRANSITIONS[before.phase][sign]
    return before if phase is before.phase else STATES[phase](generation)
