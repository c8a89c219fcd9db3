"""What is told of the memory of programs."""

import pytest

from tests.soak.usage import Life

MIB = 1 << 20


def life(minutes: float, a_minute: float) -> Life:
    """One that grows by so many MiB a minute, with a sample each five seconds."""
    times = [5.0 * at for at in range(int(minutes * 12) + 1)]
    return Life([(each, int((100 + a_minute * each / 60) * MIB)) for each in times])


@pytest.mark.parametrize(
    ("minutes", "told"), [(6.0, 8.0), (3.0, 0.0)], ids=["a leak", "too short to say"]
)
def test_a_growth_is_told_of_lives_that_last(minutes: float, told: float) -> None:
    assert life(minutes, 8.0).grown(90.0) / MIB == pytest.approx(told, rel=0.01)


def test_a_life_that_stays_as_it_is_has_grown_by_nothing() -> None:
    assert life(6.0, 0.0).grown(90.0) == 0.0
