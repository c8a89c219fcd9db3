"""The replay of gangs, on a trace made here."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.philly import (
    GPU,
    RULES,
    Job,
    gang_of,
    holes_of,
    main,
    measured,
    read_jobs,
    stranded,
)

TRACE = "job_id,num_gpu,submit_time,duration\n1,16,3600000,7200000\n0,1,0,3600000\n"


def test_jobs_come_in_order_of_arrival_in_hours(tmp_path: Path) -> None:
    """The trace has milliseconds."""
    (tmp_path / "jobs.csv").write_text(TRACE)
    assert read_jobs(tmp_path / "jobs.csv") == [
        Job("job-00000", 1, 0.0, 1.0),
        Job("job-00001", 16, 1.0, 2.0),
    ]


@pytest.mark.parametrize(
    ("gpus", "workers", "each"),
    [(1, 1, 1), (4, 1, 4), (8, 1, 8), (12, 2, 8), (32, 4, 8)],
)
def test_a_job_is_a_head_and_workers(gpus: int, workers: int, each: int) -> None:
    """Whole nodes from eight GPUs on."""
    head, group = gang_of(Job("a", gpus, 0.0, 1.0)).minimum
    assert head.count == 1
    assert (group.count, dict(group.shape.requests)[GPU]) == (workers, each)


def test_holes_and_stranded_gpus() -> None:
    """Seven idle are 4 + 2 + 1; of seven and three, perfect packing makes a node and a rest."""
    idle = np.array([8, 7, 3, 0])
    assert holes_of(idle) == {8: 1, 4: 1, 2: 2, 1: 2}
    assert stranded(idle) == 8
    assert stranded(np.array([8, 7, 0])) == 0


@pytest.mark.parametrize(("rule", "kept_out"), [("spread", 1), ("Muster", 0)])
def test_a_rule_that_spreads_small_jobs_keeps_large_ones_out(rule: str, kept_out: int) -> None:
    """Two small jobs on two nodes leave no whole one."""
    jobs = [Job(name, gpus, at, 5.0) for at, (name, gpus) in enumerate([("a", 1), ("b", 1)])]
    result = measured("made", [*jobs, Job("c", 8, 2.0, 1.0), Job("d", 1, 3.0, 1.0)], 2, rule)
    assert result.kept_out == kept_out


def test_from_file_to_table_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every rule has its line."""
    (tmp_path / "jobs.csv").write_text(TRACE)
    picture = tmp_path / "out.png"
    main(["--traces", str(tmp_path), "--runs", "jobs.csv:2", "--plot", str(picture)])
    printed = capsys.readouterr().out
    assert all(f"| jobs (2) | {rule} |" in printed for rule in RULES)
    assert picture.stat().st_size > 0
