"""Keeps the held start of one gang: its phase, and the state that outlasts a phase."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor
from typing import Any

from coordinator.gang.attempts import Attempts
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.foresight import NOTHING_FORESEEN, Foresight
from coordinator.gang.held_start.learned_pods import LearnedPods
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


@dataclass(slots=True)
class SourceWrite:
    """The write that resumes or suspends the source; written by `source_writes` and `intake`."""

    asked: int = 0
    """The generation in which it was asked for; 0 where that failed, or nothing was."""
    asked_at: float = 0.0
    """When (monotonic seconds)."""
    under_way: bool = False
    attempts: Attempts = field(default_factory=Attempts)

    def ended(self, now: float, error: str | None, refusal: str) -> None:
        """Take in how it ended."""
        self.under_way = False
        if error is None:
            self.attempts = Attempts()
            return
        self.asked = 0
        self.attempts.failed(now, refusal)


@dataclass(slots=True)
class Expected:
    """The pods that do not exist yet; written by `reconcile.held_start.foreseeing`."""

    foresight: Foresight = NOTHING_FORESEEN
    """What the templates tell of them."""
    read: tuple[GangSource, int] | None = None
    """The source and the edition of the rules that this was worked out of."""
    pods: tuple[ObservedPod, ...] = ()
    """Those that the gang was decided on."""


@dataclass(slots=True)
class FailedStarts:
    """Starts in vain in a row, and what follows from them."""

    returns: int = 0
    """How often it was suspended again."""
    text: str = ""
    """Why the last time."""
    paused: NotReady | None = None
    """Why it asks for nothing for a time."""
    paused_until: float = 0.0
    """Until then (monotonic seconds)."""
    pauses: int = 0
    """How many of these; recorded, so that a new leader goes on with them."""
    set_back_until: float = 0.0
    """Until then it comes after others and stops none (seconds since 1970); recorded."""

    def setbacks(self, wall: float) -> int:
        """Count the starts in vain for which the gang comes after others for a time."""
        return self.pauses if wall < self.set_back_until else 0

    def pause(self, why: NotReady, moment: Moment, patience: Patience) -> None:
        """Ask for nothing for a time, and come after others for longer; both double.

        It may be that the pods can never be created: what stopped for them stopped in vain.
        """
        seconds = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self.pauses, 16))
        self.pauses += 1
        self.paused, self.paused_until = why, moment.now + seconds
        self.set_back_until = float(floor(moment.wall + patience.setback_after(self.pauses)))

    def paused_at(self, now: float) -> NotReady | None:
        """Say why it asks for nothing now; None where it may."""
        return self.paused if now < self.paused_until else None

    def make_way(self, why: str, now: float) -> None:
        """Count a suspension that is not its own fault: the first is free, then it pauses."""
        if self.returns:
            seconds = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self.returns - 1, 16))
            self.paused, self.paused_until = NotReady(Reason.HELD, why), now + seconds
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
            self.state.by_others = sign is Sign.TAKEN_OVER and not ours
        self.write.asked = 0
        if self.phase in (Phase.RESUMED, Phase.NONE):
            self.tries.text = ""
        if self.phase is Phase.NONE:
            self.tries.pauses, self.tries.set_back_until = 0, 0.0

    def is_behind(self, source: GangSource) -> bool:
        """Say whether the source that was seen is older than the one of the phase."""
        held = not isinstance(self.state, NotHeld)
        return held and source.metadata.generation < self.state.generation

    def expected_pods(self, source: GangSource, now: float) -> tuple[ObservedPod, ...]:
        """Return the foreseen pods in the shapes in which they came, if they came of late."""
        return self.learned.in_shapes(self.expected.foresight.pods, source.templates, now)

    def learn(self, seen: Iterable[ObservedPod], now: float) -> None:
        """Remember how pods came; each time in a row for twice as long."""
        self.learned.learn(seen, now, self.tries.returns)

    def forget_tries(self) -> None:
        """Drop what is of use only until the gang starts."""
        self.tries.returns = self.tries.pauses = 0
        self.tries.set_back_until = 0.0
        self.learned = LearnedPods()


def held_json(held: HeldStart) -> dict[str, Any]:
    """Write the phase down as the record holds it."""
    if held.phase is Phase.NONE:
        return {}
    written: dict[str, Any] = {"phase": str(held.phase), "generation": held.state.generation}
    if held.tries.pauses:
        until = stamp_of(held.tries.set_back_until)
        written |= {"failures": held.tries.pauses, "until": until}
    return written


def held_recorded(written: GangHeld | None) -> HeldStart:
    """Read the phase that a record holds; one of a later release is none."""
    known = {str(phase): state for phase, state in STATES.items()}
    if written is None or written.phase not in known:
        return HeldStart()
    tries = FailedStarts(pauses=written.failures, set_back_until=moment_of(written.until))
    return HeldStart(known[written.phase](written.generation), tries=tries)
