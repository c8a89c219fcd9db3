"""What a gang that runs waits for is told against the same without gates."""

import pytest

from benchmarks import alive
from benchmarks.lifetime import Sample, rows


def test_lost_workers_and_growth_are_told_with_their_aims() -> None:
    stock, ours = [Sample(0.02, 2.0), Sample(0.04, 4.0)], [Sample(0.1, 3.0), Sample(0.12, 6.0)]
    replaced, tail, grown = rows(stock, ours)
    assert (round(replaced.beyond, 3), replaced.met) == (0.08, True)
    assert (tail.ours, tail.floor) == ((0.12,), (0.04,))
    assert (grown.ratios, grown.met) == ((1.5,), False)


def test_each_lost_worker_of_gangs_that_run_is_released_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alive, "GANGS", 10)
    monkeypatch.setattr(alive, "SECONDS", 1)
    found = alive.Alive()
    found.run()
    assert len(found.reached) == len(found.took) == 20
    assert max(found.took) > 0
