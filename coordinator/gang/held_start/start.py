"""Keeps the held start of one gang: its phase, and the state that outlasts a phase."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor
from typing import Any, NamedTuple

from coordinator.gang.attempts import Attempts
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.foresight import NOTHING_FORESEEN, Foresight
from coordinator.gang.held_start.learned_pods import LearnedPods, learned
from coordinator.gang.held_start.phases import (
    STATES,
    NotHeld,
    Phase,
    Sign,
    State,
    Suspending,
    Waiting,
    entered,
)
from coordinator.gang.setbacks.late_starts import stamp_of
from coordinator.messages.clock import Patience
from kube.codec.fields import moment_of
from kube.codec.observed_pod import ObservedPod
from kube.gang.source import GangSource, Stage
from kube.objects.gang import GangHeld
from runtime.controller.moment import Moment
from scheduling.model.verdict import Reason

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds until a gang asks for room again that was suspended again in vain."""

TEXT_LIMIT = 600
"""Characters of what is said of the last try, beside why the gang waits now."""


class Asked(NamedTuple):
    """The generation of the source in which a write was asked for, and when (monotonic)."""

    generation: int
    at: float


@dataclass(slots=True)
class SourceWrite:
    """The write that resumes or suspends the source; written by `source_writes` and `intake`."""

    asked: Asked | None = None
    """None where it failed, or nothing was asked for."""
    under_way: bool = False
    attempts: Attempts = field(default_factory=Attempts)

    def was_asked(self, generation: int) -> bool:
        """Whether it was asked for in this generation of the source."""
        return self.asked is not None and self.asked.generation == generation

    def ended(self, now: float, error: str | None, refusal: str) -> None:
        """Take in how it ended."""
        self.under_way = False
        if error is None:
            self.attempts = Attempts()
            return
        self.asked = None
        self.attempts.failed(now, refusal)


@dataclass(frozen=True, slots=True)
class Expected:
    """The pods that do not exist yet; written by `reconcile.held_start.foreseeing`."""

    foresight: Foresight = NOTHING_FORESEEN
    """What the templates tell of them."""
    read: tuple[GangSource, int] | None = None
    """The source and the edition of the rules that this was worked out of."""
    pods: tuple[ObservedPod, ...] = ()
    """Those that the gang was decided on."""


class Pause(NamedTuple):
    """Why a gang asks for nothing for a time."""

    why: NotReady
    until: float
    """Monotonic seconds."""


class Setback(NamedTuple):
    """The pauses of a gang; recorded, so that a new leader goes on with them."""

    pauses: int = 0
    until: float = 0.0
    """Until then it comes after others and stops none (seconds since 1970)."""


NO_SETBACK = Setback()


@dataclass(slots=True)
class FailedStarts:
    """Starts in vain in a row, and what follows from them."""

    returns: int = 0
    """How often it was suspended again."""
    text: str = ""
    """Why the last time."""
    paused: Pause | None = None
    setback: Setback = NO_SETBACK

    def setbacks(self, wall: float) -> int:
        """Count the starts in vain for which the gang comes after others for a time."""
        return self.setback.pauses if wall < self.setback.until else 0

    def pause(self, why: NotReady, moment: Moment, patience: Patience) -> None:
        """Ask for nothing for a time, and come after others for longer; both double.

        It may be that the pods can never be created: what stopped for them stopped in vain.
        """
        pauses = self.setback.pauses + 1
        self.paused = Pause(why, moment.now + _pause_of(pauses))
        until = float(floor(moment.wall + patience.setback_after(pauses)))
        self.setback = Setback(pauses, until)

    def paused_at(self, now: float) -> NotReady | None:
        """Say why it asks for nothing now; None where it may."""
        return self.paused.why if self.paused is not None and now < self.paused.until else None

    def make_way(self, why: str, now: float) -> None:
        """Count a suspension that is not its own fault: the first is free, then it pauses."""
        if self.returns:
            self.paused = Pause(NotReady(Reason.HELD, why), now + _pause_of(self.returns))
        self.returns, self.text = self.returns + 1, why[:TEXT_LIMIT]


@dataclass(slots=True)
class HeldStart:
    """The held start of one gang. Written by `reconcile.held_start`, `opening` and `intake`."""

    state: State = field(default_factory=NotHeld)
    write: SourceWrite = field(default_factory=SourceWrite)
    expected: Expected = field(default_factory=Expected)
    learned: LearnedPods = field(default_factory=LearnedPods)
    tries: FailedStarts = field(default_factory=FailedStarts)

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        return self.state.phase

    @property
    def holds(self) -> bool:
        """Whether the source is suspended by Muster, or about to be."""
        return isinstance(self.state, Waiting | Suspending)

    @property
    def problem(self) -> NotReady | None:
        """Why the pods of a gang that waits cannot be created."""
        return self.state.problem if isinstance(self.state, Waiting) else None

    def enter(self, sign: Sign | Stage, generation: int) -> None:
        """Enter the phase that a sign leads to."""
        before, self.state = self.state, entered(self.state, sign, generation)
        if self.state is before:
            return
        if isinstance(self.state, NotHeld):
            # It may also be a resumption of ours that was given up before it arrived.
            ours = bool(self.write.attempts.failures)
            self.state = NotHeld(generation, sign is Sign.TAKEN_OVER and not ours)
        self.write.asked = None
        if self.phase in (Phase.RESUMED, Phase.NONE):
            self.tries.text = ""
        if self.phase is Phase.NONE:
            self.tries.setback = NO_SETBACK

    def is_behind(self, source: GangSource) -> bool:
        """Say whether the source that was seen is older than the one of the phase."""
        held = not isinstance(self.state, NotHeld)
        return held and source.metadata.generation < self.state.generation

    def expected_pods(self, source: GangSource, now: float) -> tuple[ObservedPod, ...]:
        """Return the foreseen pods in the shapes in which they came, if they came of late."""
        self.learned = self.learned.at(source.templates, now)
        return self.learned.in_shapes(self.expected.foresight.pods)

    def learn(self, seen: Iterable[ObservedPod], now: float) -> None:
        """Remember how pods came; each time in a row for twice as long."""
        self.learned = learned(seen, now, self.tries.returns)

    def forget_tries(self) -> None:
        """Drop what is of use only until the gang starts."""
        self.tries.returns, self.tries.setback = 0, NO_SETBACK
        self.learned = LearnedPods()


def held_json(held: HeldStart) -> dict[str, Any]:
    """Write the phase down as the record holds it."""
    if held.phase is Phase.NONE:
        return {}
    written: dict[str, Any] = {"phase": str(held.phase), "generation": held.state.generation}
    pauses, until = held.tries.setback
    if pauses:
        written |= {"failures": pauses, "until": stamp_of(until)}
    return written


def held_recorded(written: GangHeld | None) -> HeldStart:
    """Read the phase that a record holds; one of a later release is none."""
    known = {str(phase): state for phase, state in STATES.items()}
    if written is None or written.phase not in known:
        return HeldStart()
    tries = FailedStarts(setback=Setback(written.failures, moment_of(written.until)))
    return HeldStart(known[written.phase](written.generation), tries=tries)


def _pause_of(count: int) -> float:
    """Return the seconds of the so-many-th pause in a row."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(count - 1, 16))
