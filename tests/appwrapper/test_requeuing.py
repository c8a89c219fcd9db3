"""Requeuing waits as long as MCAD's does, and priority grows while an AppWrapper waits."""

import math

import pytest

from appwrapper.requeuing import (
    USUAL_SECONDS,
    dispatched_until,
    grown_seconds,
    has_too_few,
    is_last,
    requeue_at,
    system_priority,
    wait_seconds,
    whole_priority,
)
from kube.objects.app_wrapper import AppWrapperSpec, DispatchDuration, Requeuing, SchedulingSpec


def waits(asked: Requeuing | None, times: int = 5) -> list[int]:
    """How long it is waited each time."""
    grown, found = 0, []
    for _time in range(times):
        found.append(wait_seconds(asked, grown))
        grown = grown_seconds(asked, grown)
    return found


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (None, [300, 300, 600, 1200, 2400]),
        (Requeuing(time_in_seconds=60), [60, 60, 120, 240, 480]),
        (Requeuing(time_in_seconds=60, growth_type="exponential"), [60, 60, 120, 240, 480]),
        (Requeuing(time_in_seconds=60, growth_type="linear"), [60, 60, 120, 180, 240]),
        (Requeuing(time_in_seconds=60, growth_type="none"), [60] * 5),
        (Requeuing(time_in_seconds=60, growth_type="misspelt"), [60] * 5),
        (Requeuing(time_in_seconds=60, max_time_in_seconds=200), [60, 60, 120, 200, 200]),
        (Requeuing(initial_time_in_seconds=10, growth_type="linear"), [10, 10, 20, 30, 40]),
        (Requeuing(time_in_seconds=-5), [0] * 5),
    ],
)
def test_the_time_grows_as_asked(asked: Requeuing | None, seconds: list[int]) -> None:
    assert waits(asked) == seconds


def test_the_time_never_grows_beyond_what_a_status_holds() -> None:
    assert waits(Requeuing(time_in_seconds=2**30), 9)[-1] == 2**31 - 1
    assert USUAL_SECONDS == 300


@pytest.mark.parametrize(
    ("most", "number", "last"),
    [(None, 99, False), (0, 99, False), (3, 2, False), (3, 3, True), (3, 4, True)],
)
def test_requeuing_ends_with_the_maximum(most: int | None, number: int, last: bool) -> None:
    assert is_last(Requeuing(max_num_requeuings=most), number) is last
    assert is_last(None, number) is False


def test_requeuings_before_count_too() -> None:
    assert is_last(Requeuing(num_requeuings=2, max_num_requeuings=3), 1)


@pytest.mark.parametrize(("least", "few"), [(None, False), (3, False), (4, True)])
def test_pods_that_run_and_have_succeeded_are_held_against_the_minimum(
    least: int | None,
    few: bool,
) -> None:
    assert has_too_few(SchedulingSpec(min_available=least), 1, 2) is few


def test_deadlines_are_moments() -> None:
    scheduling = SchedulingSpec(requeuing=Requeuing(time_in_seconds=60))
    assert (requeue_at(scheduling, 0, 10.0), requeue_at(scheduling, 90, 10.0)) == (70.0, 100.0)
    assert dispatched_until(DispatchDuration(limit=10), 5.0) == 15.0
    assert dispatched_until(DispatchDuration(limit=0), 5.0) == math.inf
    assert dispatched_until(None, 5.0) == math.inf


@pytest.mark.parametrize(
    ("spec", "waited", "priority"),
    [
        (AppWrapperSpec(), 100.0, 0.0),
        (AppWrapperSpec(priority=5), 100.0, 5.0),
        (AppWrapperSpec(priority=5, priority_slope=0.5), 100.0, 55.0),
        (AppWrapperSpec(priority=5, priority_slope=-1.0), 10.0, -5.0),
        (AppWrapperSpec(priority=5, priority_slope=1.0), -3.0, 5.0),
    ],
)
def test_priority_grows_with_each_second(
    spec: AppWrapperSpec, waited: float, priority: float
) -> None:
    assert system_priority(spec, waited) == priority


@pytest.mark.parametrize(
    ("priority", "whole"),
    [(1.9, 1), (-1.1, -2), (1e300, 2**31 - 1), (-math.inf, -(2**31)), (math.nan, 0)],
)
def test_the_priority_of_a_gang_is_a_whole_number_of_32_bits(priority: float, whole: int) -> None:
    assert whole_priority(priority) == whole
