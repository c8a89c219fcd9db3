"""Asks for forecasts of one picture: the one that is expected, and those with other durations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from coordinator.messages.events import Event
from coordinator.state_machine import CoordinatorState
from forecast.course import Course
from forecast.estimates import estimates, stamp
from forecast.expected import ForecastReport
from forecast.forward import Budget, Forward
from forecast.lengths import ENDS, EXPECTED, Lengths
from forecast.waiting_statuses import leave_out_waiting_statuses
from forecast.world import World
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

Change = Callable[[CoordinatorState, Moment], Sequence[Event]]
"""Says what else is seen, beside what a picture shows."""


def no_change(state: CoordinatorState, moment: Moment) -> Sequence[Event]:  # noqa: ARG001
    """Leave the picture as it is."""
    return ()


@dataclass(frozen=True, slots=True)
class Pictured:
    """A picture as events, when it was taken, and what makes a state machine that knows nothing.

    `spent` counts CPU seconds; one forecast may take `seconds` of them, and each end of a range
    `again` times as many.
    """

    events: Sequence[Event]
    moment: Moment
    build: Callable[[], CoordinatorState]
    spent: Callable[[], float]
    seconds: float = inf
    starts: float = inf
    again: float = 2.0

    def course(
        self,
        change: Change = no_change,
        lengths: Lengths = EXPECTED,
        until: GangKey | None = None,
    ) -> Course:
        """Run the picture forward once, after a change."""
        state = self.build()
        leave_out_waiting_statuses(state.known)
        state.handle(self.events, self.moment)
        state.handle(change(state, self.moment), self.moment)
        budget = self._budget(until)
        return Forward(World(state, self.moment), budget, lengths).run()

    def _budget(self, until: GangKey | None) -> Budget:
        began = self.spent()
        return Budget(self.seconds, lambda: self.spent() - began, starts=self.starts, until=until)


def forecast(pictured: Pictured, until: GangKey | None = None) -> ForecastReport:
    """Return when the waiting gangs of a picture start; until one of them, where it is named.

    A range needs all of it again twice, so there is none where the time did not suffice once.
    """
    began = pictured.spent()
    return with_range(pictured, pictured.course(until=until), began, until)


def with_range(
    pictured: Pictured, course: Course, began: float, until: GangKey | None = None
) -> ForecastReport:
    """Report on a course that `began` at so many CPU seconds, with the ends of its range."""
    return report_of(pictured, course, tuple(_others(pictured, course, until)), began)


def report_of(
    pictured: Pictured, course: Course, others: Sequence[Course], began: float
) -> ForecastReport:
    """Report on a course; on its range where there are `others`, with shorter and longer ones."""
    shorter, longer = (each.scale for each in ENDS) if others else (0.0, 0.0)
    return ForecastReport(
        taken=stamp(course.began),
        reached=stamp(course.reached),
        finished=course.finished,
        cpu_seconds=round(pictured.spent() - began, 3),
        gangs=tuple(estimates(course, others)),
        shorter=round(shorter, 2),
        longer=round(longer, 2),
    )


def _others(pictured: Pictured, course: Course, until: GangKey | None) -> Iterator[Course]:
    """Yield the forecasts with other durations, for as many starts as the first one came to."""
    if any(each.at > course.began for each in course.starts.values()):
        longest = pictured.again * pictured.seconds
        limited = replace(pictured, starts=max(1, len(course.starts)), seconds=longest)
        yield from (limited.course(lengths=each, until=until) for each in ENDS)
