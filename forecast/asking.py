"""Runs forecasts of one picture: the expected one, and others with different durations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from coordinator.messages.events import Event
from coordinator.state_machine import CoordinatorState
from forecast.course import Course
from forecast.estimates import estimates, stamp
from forecast.expected import ForecastReport
from forecast.forward import Budget, Forward
from forecast.lengths import ENDS, EXPECTED
from forecast.waiting_statuses import leave_out_waiting_statuses
from forecast.world import World
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


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

    def course(self, until: GangKey | None = None) -> Course:
        """Run the picture forward once; until a gang starts, where it is named."""
        return self.begun(until).go_on()

    def begun(self, until: GangKey | None = None) -> Forward:
        """Return a forecast that is to go on from its beginning."""
        return self.begun_in(self.led(), until)

    def led(self) -> World:
        """Return the world of the picture: its leader has looked at each gang and decided none."""
        state = self.build()
        leave_out_waiting_statuses(state.known)
        state.handle(self.events, self.moment)
        world = World(state, self.moment)
        world.lead()
        return world

    def begun_in(self, world: World, until: GangKey | None = None) -> Forward:
        """Return a forecast of a world that is led, such as one that was changed since."""
        found = Forward(world, self.budget(until))
        found.begin()
        return found

    def budget(self, until: GangKey | None = None) -> Budget:
        """Return the budget of one forecast, which begins now."""
        began = self.spent()
        return Budget(self.seconds, lambda: self.spent() - began, starts=self.starts, until=until)


def forecast(pictured: Pictured, until: GangKey | None = None) -> ForecastReport:
    """Return when the waiting gangs of a picture start; until one of them, where it is named.

    A range needs the most of it again twice, so there is none where the time did not suffice once.
    """
    began = pictured.spent()
    begun = pictured.begun(until=until)
    course = begun.with_lengths(EXPECTED, begun.budget).go_on()
    return report_of(pictured, course, ends_of_range(pictured, begun, course), began)


def ends_of_range(pictured: Pictured, begun: Forward, course: Course) -> tuple[Course, ...]:
    """Run on with shorter and with longer durations, for as many starts as a course came to.

    Nothing goes on from this beginning after that.
    """
    if not any(each.at > course.began for each in course.starts.values()):
        return ()
    longest = pictured.again * pictured.seconds
    limited = replace(pictured, starts=max(1, len(course.starts)), seconds=longest)
    until, (shorter, longer) = begun.budget.until, ENDS
    first = begun.with_lengths(shorter, limited.budget(until)).go_on()
    return first, begun.turned_to(longer, limited.budget(until)).go_on()


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
