"""The replay of a trace: a small one whose outcome can be worked out by hand."""

from collections.abc import Sequence

import pytest

from benchmarks.philly import Job
from benchmarks.queueing import replay

HOUR = 3600.0

JOBS = (
    Job("running", 8, 0.0, 10.0),
    Job("blocked", 16, 1.0, 1.0),
    Job("short", 8, 2.0, 8.0),
    Job("long", 8, 3.0, 20.0),
)
"""Two nodes: one is taken until 10, the next gang needs both, two more need one each."""


def waits(rule: str, jobs: Sequence[Job] = JOBS) -> float:
    """The average wait in hours."""
    return replay(jobs, 2, 8, rule, 1.0).wait / HOUR


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("Strict", (0 + 9 + 9 + 8) / 4),  # blocked at 10, the others at 11
        ("BestEffort", (0 + 29 + 0 + 7) / 4),  # short at 2, long at 10, blocked at 30
        ("Backfill", (0 + 9 + 0 + 8) / 4),  # short ends when blocked starts
        ("EASY", (0 + 9 + 0 + 8) / 4),
    ],
)
def test_each_rule_starts_the_gangs_when_it_should(rule: str, expected: float) -> None:
    assert waits(rule) == pytest.approx(expected, abs=0.01)


def test_durations_that_are_wrong_change_what_passes() -> None:
    assert replay(JOBS, 2, 8, "Backfill", 3.0).durations == "wrong"


def test_use_and_makespan_are_those_of_the_jobs() -> None:
    found = replay(JOBS[:1], 2, 8, "Strict", 1.0)
    assert (found.utilisation, found.makespan / HOUR) == (0.5, 10)


def test_gangs_that_begin_later_than_under_strict_are_late() -> None:
    strict, best = (replay(JOBS, 2, 8, rule, 1.0) for rule in ("Strict", "BestEffort"))
    assert best.delays(strict) == pytest.approx([20 * HOUR], abs=60)
