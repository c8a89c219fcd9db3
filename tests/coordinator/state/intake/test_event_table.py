"""Every event of the state machine has a function that takes it in."""

from typing import get_args

from coordinator.messages.events import Event
from coordinator.state.intake.event_table import _HANDLERS


def test_each_event_is_taken_in() -> None:
    assert set(_HANDLERS) == set(get_args(Event))
