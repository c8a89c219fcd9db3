"""Estimates of a small trace made here are held against what came, beside two baselines."""

from collections.abc import Sequence
from math import nan
from pathlib import Path

import pytest

from benchmarks import foresee, traces
from benchmarks.cases import CASES
from benchmarks.philly import Job
from benchmarks.slurm_plan import Asked, Holding, Plan

JOBS = [
    Job("a", 8, 0.0, 2.0),
    Job("b", 8, 0.1, 1.0),
    Job("c", 4, 0.2, 3.0),
    Job("d", 8, 0.3, 1.0),
]
"""Hours: on one node of 8 GPUs each waits for those before it."""


@pytest.mark.parametrize("rule", foresee.RULES)
def test_with_exact_durations_and_nothing_to_come_an_estimate_is_what_comes(rule: str) -> None:
    found = foresee.replay(JOBS, 1, 8, 10, (rule, "exact"))
    assert len(found.told) == 3
    last = found.told[-1]
    assert last.first == pytest.approx(last.wait, abs=2)
    assert last.is_inside
    assert found.inside == 100


@pytest.mark.long
def test_half_way_is_asked_about_and_baselines_stand_beside() -> None:
    found = foresee.replay(JOBS, 1, 8, 10, ("Strict", "exact"))
    first = found.told[0]
    assert first.wait == pytest.approx(1.9 * 3600, abs=2)
    assert first.half == pytest.approx(first.wait, abs=2)
    assert first.planned == pytest.approx(first.wait, abs=2)
    assert first.mean_of_ten == pytest.approx(0, abs=2)
    assert foresee.row(found).startswith("| exact | Strict | 3 | 3 | 0.0 | 0 | 0.0 | 0 | 100 |")


def test_what_nobody_declared_is_learned_or_not_told() -> None:
    found = foresee.replay(JOBS, 1, 8, 10, ("Strict", "learned"))
    assert found.errors("first") == []
    assert str(found.inside) == str(nan)
    assert all(each.planned is None for each in found.told)


def test_a_plan_gives_each_gang_the_earliest_time_that_those_before_it_leave() -> None:
    plan = Plan(0.0, [8, 0], [Holding(100.0, [1], 8)])
    assert plan.add(Asked(2, 8, 50.0)) == 100.0
    assert plan.add(Asked(1, 8, 100.0)) == 0.0
    assert plan.add(Asked(1, 8, 101.0)) == 150.0
    assert plan.add(Asked(1, 4, 10.0)) == 150.0
    assert plan.add(Asked(3, 8, 10.0)) is None


def one_replay(jobs: Sequence[Job], nodes: int, gpus: int, most: int) -> list[foresee.Found]:
    return [foresee.replay(jobs, nodes, gpus, most, ("Strict", "exact"))]


def test_it_is_among_the_cases_and_says_what_it_aims_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "job_id,num_gpu,submit_time,duration\n"
    text += "".join(f"{at},64,{at * 60000},7200000\n" for at in range(3))
    for file, _ in traces.PHILLY:
        (tmp_path / file).write_text(text)
    monkeypatch.setenv(traces.VARIABLE, str(tmp_path))
    monkeypatch.setattr(foresee, "replays", one_replay)  # without processes, which take seconds
    outcome = traces.measure_estimates(1)
    assert "estimates" in CASES
    assert all(row.aim for row in outcome.rows)
    assert [row.met for row in outcome.rows if "p90" in row.name] == [True, True]


@pytest.mark.long
def test_a_plot_shows_what_was_told_against_what_came(tmp_path: Path) -> None:
    found = foresee.replay(JOBS, 1, 8, 10, ("Strict", "exact"))
    foresee.plot([found], tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
