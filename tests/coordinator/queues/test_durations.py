"""Durations that are remembered: close to what was, few, and told as quantiles."""

from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.queues.durations import (
    LONGEST,
    MOST,
    SHORTEST,
    Durations,
    seconds_of,
    step_of,
)

HOUR = 3600


def of(*seconds: float) -> Durations:
    found = Durations()
    for each in seconds:
        found = found.with_one(each)
    return found


@given(st.floats(0, 10.0**12))
@example(0.0)
@example(float(LONGEST))
def test_a_time_is_within_a_tenth_of_what_is_kept_of_it(seconds: float) -> None:
    kept, within = seconds_of(step_of(seconds)), min(max(seconds, SHORTEST), LONGEST)
    assert abs(kept - within) <= max(1.0, within / 10)
    assert step_of(kept) == step_of(seconds), "written and read again it moves"


def test_quantiles_are_of_those_that_ran_beyond_an_age() -> None:
    found = of(*[60] * 6, *[10 * HOUR] * 4)
    assert found.quantile(0.5) == seconds_of(step_of(60))
    assert found.quantile(0.5, beyond=HOUR) == seconds_of(step_of(10 * HOUR))
    assert found.quantile(0.9) == seconds_of(step_of(10 * HOUR))
    assert found.quantile(0.5, beyond=11 * HOUR) is None
    assert Durations().quantile(0.5) is None


def test_what_ended_long_ago_is_forgotten() -> None:
    found = of(*[60] * 200)
    assert found.ended <= MOST
    for _ in range(400):
        found = found.with_one(10 * HOUR)
    assert found.quantile(0.05) == seconds_of(step_of(10 * HOUR))


@given(st.lists(st.floats(1, 10.0**8), min_size=1, max_size=300))
def test_it_stays_small_and_never_empty(seconds: list[float]) -> None:
    found = of(*seconds)
    assert 0 < found.ended <= MOST
    median = found.quantile(0.5)
    assert median is not None
    assert SHORTEST <= median <= LONGEST
