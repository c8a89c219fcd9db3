"""The agenda tells which gangs are to be looked at, and when."""

from coordinator.record.urgency import QUIET_DELAY
from coordinator.state.agenda import AT_ONCE, LATER, Agenda
from tests.coordinator.world import key

A, B = key("a"), key("b")


def test_a_gang_that_is_put_off_is_looked_at_a_moment_later_or_before_the_next_cycle() -> None:
    agenda = Agenda()
    agenda.put_off(A, 10.0)
    agenda.put_off(A, 10.2)
    assert (agenda.wake_at, agenda.late, agenda.dirty) == ({A: 10.0 + LATER}, {A}, set())
    agenda.pass_time(10.0 + LATER)
    assert (agenda.wake_at, agenda.dirty) == ({}, {A})


def test_the_earlier_moment_counts_and_a_look_sets_the_next() -> None:
    agenda = Agenda(wake_at={A: 5.0, B: 3.0})
    agenda.wake_by(A, 4.0)
    agenda.wake_by(A, 9.0)
    agenda.wake(B, None)
    assert agenda.wake_at == {A: 4.0}


def test_numbers_are_renewed_once_they_are_old_and_a_cycle_is_wanted_then() -> None:
    agenda = Agenda(cycled_at=100.0)
    agenda.renew_soon()
    agenda.pass_time(100.0 + QUIET_DELAY - 1)
    assert not agenda.cycle_wanted
    agenda.pass_time(100.0 + QUIET_DELAY)
    assert (agenda.cycle_wanted, agenda.refresh_at) == (True, None)


def test_many_gangs_are_looked_at_a_few_at_a_time() -> None:
    agenda = Agenda()
    agenda.look_in_turn([key(f"g{at}") for at in range(2 * AT_ONCE + 1)], 5.0)
    for left, due in ((AT_ONCE + 1, 5.0), (1, 6.0), (0, None)):
        assert (len(agenda.in_turn), agenda.turn_at) == (left, due)
        assert len(agenda.dirty) == (AT_ONCE if left else 1)
        agenda.dirty.clear()
        agenda.pass_time(6.0)
    assert agenda == Agenda(), "nothing is due any more"


def test_the_end_of_a_term_drops_what_was_planned_and_keeps_what_happened() -> None:
    agenda = Agenda({A}, {B}, {B: 1.0}, {B: None}, 1.0, cycle_wanted=True, refresh_at=2.0)
    agenda.forget_term()
    assert agenda == Agenda({A})
