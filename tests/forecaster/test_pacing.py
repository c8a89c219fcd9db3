"""The forecaster takes no more of a core than its share, whatever a round costs."""

import pytest

from forecaster.pacing import Pace

PACE = Pace(share=0.05, rest=30.0, round_cpu=5.0)


@pytest.mark.parametrize("rounds", [[0.1] * 50, [5.0] * 50, [12.0, 0.1, 7.5, 60.0] * 10])
def test_over_time_it_takes_its_share_of_a_core_at_most(rounds: list[float]) -> None:
    """By a clock that is given: each round takes as long as its CPU, and rests after it."""
    clock = sum(used + PACE.pause(used) for used in rounds)
    assert sum(rounds) <= 0.05 * clock * (1 + 1e-9)


def test_between_two_rounds_there_are_thirty_seconds_at_least() -> None:
    assert PACE.pause(0.0) == 30.0
    assert PACE.pause(1.0) == 30.0
    assert PACE.pause(5.0) == pytest.approx(95.0)


def test_ranges_are_worked_out_where_a_round_can_pay_for_them_and_now_and_then_else() -> None:
    assert PACE.takes_range(used=2.0, one=1.5, without=0)
    assert not PACE.takes_range(used=2.0, one=1.6, without=0)
    assert PACE.takes_range(used=9.0, one=6.0, without=10)


@pytest.mark.parametrize("reading", [0.0, 2.0, 4.3])
def test_no_estimate_grows_older_than_the_seconds_of_a_round_allow(reading: float) -> None:
    pace = Pace(share=0.05, rest=30.0, round_cpu=6.0)
    used = reading + pace.left(reading) + 0.5  # what the writes take
    assert used + pace.pause(used) <= 120.0


def test_a_forecast_has_a_second_whatever_reading_took() -> None:
    assert PACE.left(used=60.0) == 1.0


def test_a_whole_core_may_be_given_to_it() -> None:
    assert Pace(share=1.0, rest=0.1, round_cpu=5.0).pause(9.0) == 0.1
