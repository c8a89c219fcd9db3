"""Forecasts of a cluster in full use are measured, and its gangs are told when they start."""

from benchmarks import foreseen
from benchmarks.cases import CASES


def test_estimates_are_measured_with_gangs_that_are_told_a_time() -> None:
    found = foreseen.measure_foresee(1, nodes=20, waiting=3)
    (row,) = found.rows
    assert row.met
    assert row.ours[0] > 0
    assert found.notes == ["20 nodes, 3 gangs wait, 3 were told a time"]


def test_a_what_if_is_measured_at_once_and_with_delays() -> None:
    at_once, delays = foreseen.measure_what_if(2, nodes=20, waiting=3).rows
    assert len(at_once.ours) == len(delays.ours) == 2
    assert at_once.met
    assert delays.met


def test_both_are_among_the_cases() -> None:
    assert {"foresee", "what-if"} <= set(CASES)
