"""Usage over time: averages with a half-life, and what of a queue is told apart."""

from math import isclose, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.queue import FairSharing
from scheduling.queueing.average_usage import MOST, NOW, QueueUsage, Usage, averaged

DAY = 24 * 3600.0
WEEK = FairSharing()
GPU = "nvidia.com/gpu"


def test_what_was_held_counts_half_after_a_half_life() -> None:
    assert averaged({GPU: 8.0}, {}, 7 * DAY, WEEK.half_life) == {GPU: 4.0}
    assert averaged({GPU: 8.0}, {}, 14 * DAY, WEEK.half_life) == {GPU: 2.0}


def test_what_is_held_on_becomes_the_average() -> None:
    half = averaged({}, {GPU: 8}, 7 * DAY, WEEK.half_life)
    assert half == {GPU: 4.0}
    assert isclose(averaged({}, {GPU: 8}, 100 * 7 * DAY, WEEK.half_life)[GPU], 8.0)


def test_each_resource_decays_for_itself() -> None:
    found = averaged({GPU: 8.0, "cpu": 0.0}, {"cpu": 16_000}, 7 * DAY, WEEK.half_life)
    assert found == {GPU: 4.0, "cpu": 8_000.0}


@given(
    st.floats(0, 2.0**60),
    st.integers(0, 2**60),
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=5),
)
def test_an_average_is_never_beyond_what_was_ever_held(
    before: float, held: int, times: list[float]
) -> None:
    """Also where the clock jumps by thousands of years, and back."""
    usage = Usage(0.0, {GPU: before}, {GPU: held})
    for at in times:
        usage = usage.until(at, WEEK.half_life)
        average = usage.average[GPU]
        assert isfinite(average)
        assert min(before, held) * 0.999 <= average <= max(before, held) * 1.001


@given(st.integers(0, 100), st.lists(st.integers(1, 10**6), max_size=6))
def test_it_does_not_matter_how_often_it_is_worked_out(held: int, steps: list[int]) -> None:
    usage, at = Usage(0.0, {GPU: 5.0}, {GPU: held}), 0.0
    for step in steps:
        at += step
        usage = usage.until(at, WEEK.half_life)
    at_once = averaged({GPU: 5.0}, {GPU: held}, at, WEEK.half_life)
    assert isclose(usage.average[GPU], at_once[GPU], rel_tol=1e-9)


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    usage = Usage(1000.0, {GPU: 8.0}, {GPU: 8})
    assert usage.until(0.0, WEEK.half_life) == Usage(0.0, {GPU: 8.0}, {GPU: 8})


def test_what_is_held_now_counts_more_than_the_same_on_average() -> None:
    usage = QueueUsage(WEEK, 0.0)
    usage.begin_with({"a": {GPU: 4.0}, "b": {GPU: 4.0}}, {}, 0.0)
    usage.hold("b", {GPU: 8}, 0.0)
    assert usage.usage_of("a").counts[GPU] == pytest.approx(4 * (1 - NOW))
    assert usage.usage_of("b").counts[GPU] == pytest.approx(4 * (1 - NOW) + 8 * NOW)


def test_a_namespace_is_forgotten_once_its_usage_has_faded() -> None:
    usage = QueueUsage(WEEK, 0.0)
    usage.hold("a", {GPU: 8, "memory": 2**40}, 0.0)
    usage.hold("a", {}, DAY)
    usage.settle(14 * 7 * DAY)
    assert list(usage.namespaces) == ["a"]
    usage.settle(30 * 7 * DAY)
    assert not usage.namespaces


def test_beyond_so_many_namespaces_the_smallest_count_as_one() -> None:
    usage = QueueUsage(WEEK, 0.0)
    for at in range(MOST):
        usage.hold(f"ns{at:03}", {GPU: 1 + at}, 0.0)
        usage.hold(f"ns{at:03}", {}, DAY)
    usage.hold("late", {GPU: 1}, DAY)
    assert len(usage.namespaces) == MOST
    assert "late" in usage.namespaces
    assert "ns000" not in usage.namespaces, "it had the smallest usage"
    assert usage.rest.average[GPU] > 0
    assert usage.usage_of("ns000") == usage.rest == usage.usage_of("never seen")
    total = sum(each.average.get(GPU, 0) for each in usage.namespaces.values())
    assert usage.total().average[GPU] == pytest.approx(total + usage.rest.average[GPU])


def test_where_all_namespaces_hold_something_the_next_ones_count_as_one() -> None:
    usage = QueueUsage(WEEK, 0.0)
    for at in range(MOST + 2):
        usage.hold(f"ns{at:03}", {GPU: 2}, 0.0)
    assert len(usage.namespaces) == MOST
    assert usage.rest.held == {GPU: 4}
    usage.hold("ns201", {}, DAY)
    assert usage.rest.held == {GPU: 2}
    assert usage.total().held == {GPU: 2 * MOST + 2}


def test_no_more_namespaces_than_that_are_read_from_a_status_either() -> None:
    usage = QueueUsage(WEEK, 0.0)
    usage.begin_with({f"ns{at:03}": {GPU: 1.0 + at} for at in range(500)}, {GPU: 3.0}, 0.0)
    assert len(usage.namespaces) == MOST
    assert usage.total().average[GPU] == pytest.approx(sum(range(1, 501)) + 3)


def test_another_half_life_counts_from_then_on() -> None:
    usage = QueueUsage(WEEK, 0.0)
    usage.hold("a", {GPU: 8}, 0.0)
    usage.hold("a", {}, 7 * DAY)
    usage.follow(FairSharing(DAY), 7 * DAY)
    usage.settle(8 * DAY)
    assert usage.namespaces["a"].average[GPU] == pytest.approx(2.0)
