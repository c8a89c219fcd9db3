"""Estimates when gangs end: by declared duration, default of the queue, or earlier runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from coordinator.gang.view import GangView
from coordinator.queues.history import began
from coordinator.queues.learned_durations import Learned, QueueDurations
from coordinator.state.cycle.cycle_input import expected_duration, expected_end
from coordinator.state.known import Known
from forecast.course import Basis, Running


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long gangs are taken to run.

    Where it was said, `scale` times as long; where it was learned, until this share has ended of
    those that ran as long as the gang does.
    """

    scale: float = 1.0
    share: float = 0.5


EXPECTED = Lengths()
ENDS = (Lengths(2 / 3, 0.2), Lengths(3 / 2, 0.8))
"""For the ends of ranges: people are off by more, but not all of them to the same side."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """What tells when gangs end, as one picture has it."""

    lengths: Lengths
    learned: Mapping[str, QueueDurations]
    """By queue, as their statuses say it at the beginning: what ends in a forecast teaches none."""

    def of(self, view: GangView, known: Known, wall: float) -> Running:
        """Return since when a gang runs and until when it is taken to."""
        terms, start = view.understood.terms, began(view)
        queue = terms.queue if terms is not None else ""
        if start is None:
            return Running(queue, wall, inf, inf, Basis.UNKNOWN)
        duration = expected_duration(view, known)
        if duration == inf:
            return self._as_others_ran(view, queue, start, wall)
        ends, is_late = expected_end(view, known, wall), start + duration <= wall
        ends = wall + (ends - wall) * self.lengths.scale
        declared = terms is not None and terms.expected_duration is not None
        said = Basis.DECLARED if declared else Basis.DEFAULT
        return Running(queue, start, ends, duration, Basis.OVERDUE if is_late else said)

    def _as_others_ran(self, view: GangView, queue: str, start: float, wall: float) -> Running:
        """Return until when those ran that ran as long; it outlives them all: for as long again."""
        recorded, age = self.learned.get(queue), max(0.0, wall - start)
        found = recorded.of(view.key.namespace) if recorded is not None else None
        if found is None:
            return Running(queue, start, inf, inf, Basis.UNKNOWN)
        lasts = found.durations.quantile(self.lengths.share, age)
        if lasts is not None:
            return Running(queue, start, start + lasts, lasts, Basis.LEARNED, _said(found, queue))
        longest, ends = found.durations.quantile(1) or age, wall + age * self.lengths.scale
        return Running(queue, start, ends, longest, Basis.OVERDUE, _said(found, queue))


def learned_of(known: Known) -> Mapping[str, QueueDurations]:
    """Return what the statuses of all queues say of how long their gangs ran."""
    return {name: QueueDurations.recorded(each) for name, each in known.queues.objects.items()}


def _said(found: Learned, queue: str) -> str:
    whose = f"namespace {found.namespace}" if found.namespace else f"queue {queue}"
    return f"learned from {found.durations.ended} that ended of {whose}:"
