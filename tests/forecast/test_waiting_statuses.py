"""A forecast without the statuses of gangs that wait comes to the same starts as one with them."""

from collections.abc import Iterable

import pytest

from coordinator.messages.actions import Action, WriteGangStatus
from coordinator.messages.events import Event
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from forecast import asking
from forecast.asking import Pictured
from forecast.course import Course
from runtime.controller.moment import Moment
from tests.coordinator.builders import Json, node
from tests.forecast.pictures import lasting, pictured, world_of

GANGS = 6


class Counted(CoordinatorState):
    """Counts the writes of statuses that say that a gang waits."""

    def __init__(self) -> None:
        super().__init__(Known())
        self.waits = 0

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:
        actions = super().handle(events, moment)
        written = (each.status for each in actions if isinstance(each, WriteGangStatus))
        self.waits += sum(each["phase"] == "Queued" for each in written)
        return actions


def in_line(rule: str) -> Pictured:
    """One gang runs, and others wait for its end one after another, with room for one at a time."""
    spec: Json = {"namespaceSelector": {}, "quota": {"cpu": 100}, "whenBlocked": rule}
    queue = {"kind": "GangQueue", "metadata": {"name": "q"}, "spec": spec}
    gangs = [lasting(f"gang-{at}", 3, 1 + at % 3) for at in range(GANGS)]
    return pictured(world_of(node("a", cpu=4), queue, gangs=gangs))


def run(picture: Pictured) -> tuple[Course, int]:
    """The forecast, and how often it was written that a gang waits."""
    state = Counted()
    course = Pictured(picture.events, picture.moment, lambda: state, picture.spent).course()
    return course, state.waits


@pytest.mark.parametrize("rule", ["Strict", "BestEffort", "Backfill"])
def test_the_starts_are_those_of_a_run_that_writes_all(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = in_line(rule)
    without, few = run(picture)
    monkeypatch.setattr(asking, "leave_out_waiting_statuses", lambda _: None)
    with_them, many = run(picture)
    assert len(without.starts) == GANGS - 1
    assert without == with_them
    assert few == 0
    assert many > GANGS
