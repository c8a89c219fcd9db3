"""The cases of `make bench` that need the published traces, on a small trace made here."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import packing, traces
from benchmarks.__main__ import main
from benchmarks.openb import read_machines, read_pods

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "\n".join(
    f"p{at},4000,8192,1,{500 + 500 * (at % 2)}" for at in range(8)
)
JOBS = "job_id,num_gpu,submit_time,duration\n0,4,0,7200000\n1,8,3600000,3600000\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the cases read, the cluster a fraction of the real one."""
    (tmp_path / traces.NODES).write_text(
        "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,8,G2\nb,64000,262144,2,T4\n"
    )
    for name in traces.LISTS:
        (tmp_path / f"openb_pod_list_{name}.csv").write_text(PODS)
    for file, _ in traces.PHILLY:
        (tmp_path / file).write_text(JOBS)
    monkeypatch.setenv(traces.VARIABLE, str(tmp_path))
    return tmp_path


def test_packing_has_a_pair_for_each_seed_and_the_published_figures(folder: Path) -> None:
    """Ours and the floor are those that a single run gives."""
    outcome = traces.measure_packing(3)
    default, multigpu = outcome.rows
    machines = read_machines(folder / traces.NODES)
    pods = read_pods(folder / "openb_pod_list_default.csv")
    second = packing.run(machines, pods, traces.FIRST_SEED + 1, packing.RULES["Muster"])
    assert len(default.ours) == len(default.floor) == 3
    assert default.ours[1] == second.curve[packing.ARRIVED]
    assert (default.aim, multigpu.aim) == ("mean ≥ 95.8 %", "mean ≥ 95.65 %")
    assert default.met is (sum(default.ours) / 3 >= traces.ON_DEFAULT)
    assert any("FGD 95.39 %" in note for note in outcome.notes)


@pytest.mark.usefixtures("folder")
def test_philly_counts_the_hours_of_gangs_that_are_kept_out() -> None:
    """Two small jobs on many nodes keep no job out."""
    outcome = traces.measure_philly(1)
    assert [(row.ours, row.floor, row.met) for row in outcome.rows] == [((0.0,), (0.0,), True)] * 2


def test_without_the_traces_the_other_cases_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which variable is missing and what it may hold."""
    monkeypatch.delenv(traces.VARIABLE, raising=False)
    result = CliRunner().invoke(main, ["packing", "philly"])
    assert result.exit_code == 0
    assert result.stderr.count(f'not measured: {traces.VARIABLE}: "" is not a folder') == 2
