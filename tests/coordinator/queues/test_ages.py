"""Which gangs have aged, kept up as they come, wait and go."""

from math import inf

from coordinator.queues.ages import Ages
from tests.coordinator.world import key

A, B = key("a"), key("b")


def test_a_gang_is_overdue_from_its_time_on() -> None:
    ages = Ages()
    ages.note(A, 100.0, 5)
    ages.pass_time(99.0)
    assert not ages.aged
    ages.pass_time(100.0)
    assert (ages.aged, ages.overdue) == ({A}, {A})


def test_a_gang_that_was_passed_too_often_is_aged_and_not_overdue() -> None:
    ages = Ages()
    ages.note(A, inf, 2)
    ages.passed([A, B])
    assert not ages.aged
    ages.passed([A])
    assert (ages.aged, ages.overdue) == ({A}, set())


def test_a_gang_that_waits_no_more_is_forgotten_with_its_passes() -> None:
    ages = Ages()
    ages.note(A, 100.0, 1)
    ages.passed([A])
    ages.pass_time(100.0)
    ages.drop(A)
    assert (ages.aged, ages.overdue) == (set(), set())
    ages.note(A, 300.0, 1)
    ages.pass_time(200.0)
    assert not ages.aged


def test_another_rule_counts_at_once() -> None:
    ages = Ages()
    ages.note(A, 100.0, 9)
    ages.passed([A, A])
    ages.pass_time(100.0)
    ages.note(A, 500.0, 9)
    assert not ages.aged
    ages.note(A, 500.0, 2)
    assert (ages.aged, ages.overdue) == ({A}, set())


def test_what_was_planned_for_a_gang_before_does_not_pile_up() -> None:
    ages = Ages()
    for at in range(1000):
        ages.note(A, 1000.0 + at, 9)
    assert len(ages._coming) < 200
    ages.pass_time(1998.0)
    assert not ages.aged
    ages.pass_time(1999.0)
    assert ages.aged == {A}
