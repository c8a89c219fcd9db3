"""Pairs are measured beside the same gangs apart, and all of both start and end."""

from benchmarks import together
from benchmarks.cases import CASES


def test_pairs_are_measured_beside_the_same_gangs_apart() -> None:
    (row,) = together.measure(2, nodes=2, pairs=2).rows
    assert (row.ours_are, row.floor_is) == ("pairs", "apart")
    assert len(row.ratios) == 2
    assert min(row.ours) > 0


def test_it_is_among_the_cases() -> None:
    assert "together" in CASES
