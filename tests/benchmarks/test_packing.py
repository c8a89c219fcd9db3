"""The packing experiment, on a cluster and pods made here."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks import packing
from benchmarks.openb import Cluster, Machine, Pod, arrivals, read_machines, read_pods
from benchmarks.packing import ARRIVED, RULES, main, measured, run, seeds_of
from scheduling.scoring.node_scores import PARTS

GIB = 2**30
MACHINES = [
    *(Machine(96_000, 384 * GIB, 8, "G2") for _ in range(4)),
    *(Machine(32_000, 128 * GIB, 2, "T4") for _ in range(4)),
]
WHOLE = Pod(8_000, 32 * GIB, 1, PARTS, ())
SHARE = Pod(4_000, 16 * GIB, 1, 300, ())
PODS = [WHOLE] * 16 + [SHARE] * 20 + [Pod(4_000, GIB, 0, 0, ())] * 6 + [Pod(0, 0, 2, PARTS, ())]


def test_arrivals_ask_for_the_target_and_no_more() -> None:
    """Pods are drawn again until the next would pass it; each of the list comes first once."""
    come = arrivals(PODS, 52 * PARTS, random.Random(1))
    assert 51 * PARTS < sum(pod.asks for pod in come) <= 52 * PARTS
    assert sorted(come[: len(PODS)], key=str) == sorted(PODS, key=str)


def test_a_list_that_asks_for_too_much_is_cut() -> None:
    """Pods are taken out at random."""
    come = arrivals(PODS, 10 * PARTS, random.Random(1))
    assert sum(pod.asks for pod in come) <= 10 * PARTS
    assert len(come) < len(PODS)


def test_a_share_goes_to_the_device_that_it_fills_best() -> None:
    """Whole devices stay whole for pods that need them."""
    cluster = Cluster([Machine(64_000, GIB, 3, "T4")])
    for parts in (700, 500, 300):
        cluster.put(Pod(0, 0, 1, parts, ()), 0)
    assert cluster.devices[0].tolist() == [0, 500, PARTS]
    assert cluster.idle.tolist() == [1500]
    assert cluster.whole.tolist() == [1]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(Pod(0, 0, 2, PARTS, ()), [0], id="two whole devices"),
        pytest.param(Pod(0, 0, 1, 200, ()), [0, 1], id="a share"),
        pytest.param(Pod(0, 0, 1, 600, ()), [0], id="a larger share"),
        pytest.param(Pod(0, 0, 1, 100, ("T4", "A10")), [1], id="one of the models"),
        pytest.param(Pod(9_000, 0, 0, 0, ()), [1], id="processors"),
        pytest.param(Pod(0, 2 * GIB, 0, 0, ()), [], id="memory"),
    ],
)
def test_fitting(pod: Pod, expected: list[int]) -> None:
    """A share fits where one device has enough left; k devices are k whole ones."""
    cluster = Cluster([Machine(8_000, GIB, 2, "G2"), Machine(10_000, GIB, 1, "T4")])
    cluster.put(Pod(0, 0, 1, 500, ("T4",)), 1)
    assert cluster.fitting(pod).tolist() == expected


@pytest.mark.parametrize("rule", RULES)
def test_a_run_says_what_was_in_use(rule: str) -> None:
    """Equal runs are equal; nothing is in use that has not come."""
    first, again = (run(MACHINES, PODS, 42, RULES[rule]) for _ in range(2))
    assert np.array_equal(first.curve, again.curve, equal_nan=True)
    known = ~np.isnan(first.curve)
    assert known[ARRIVED - 3 :].any()
    assert (first.curve[known] <= np.flatnonzero(known) + 1).all()
    assert first.failed > 0


def test_the_rule_strands_less_than_the_first_node_that_fits() -> None:
    """Frugal and hungry pods, on nodes with little and with much CPU."""
    machines = [Machine(cpu, 999 * GIB, 4, "G2") for cpu in (16_000, 48_000) for _ in range(20)]
    pods = [Pod(cpu, GIB, 1, PARTS, ()) for cpu in (4_000, 12_000) for _ in range(80)]
    results = {rule: measured("made", machines, pods, range(3), rule) for rule in RULES}
    assert results["Muster"].allocation[ARRIVED] > results["first fit"].allocation[ARRIVED] + 1


def test_seeds_of() -> None:
    """Ranges and lists."""
    assert seeds_of("42-44") == [42, 43, 44]
    assert seeds_of("42,50-51") == [42, 50, 51]


def test_from_files_to_table_json_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists with and without a column for models are read."""
    (tmp_path / "nodes.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,8,G2\nb,64000,262144,2,T4\n"
    )
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
    rows = [f"p{at},4000,8192,1,{500 + 500 * (at % 2)}" for at in range(8)]
    (tmp_path / "openb_pod_list_default.csv").write_text("\n".join([header, *rows]))
    (tmp_path / "openb_pod_list_made.csv").write_text(
        "\n".join([f"{header},gpu_spec", *(f"{row},{'G2|T4' * (row[1] > '4')}" for row in rows)])
    )
    out = tmp_path / "out.json"
    written = f"--json {out} --plot {tmp_path / 'out.png'}"
    lists = "--pods openb_pod_list_default.csv openb_pod_list_made.csv"
    main(f"--traces {tmp_path} --nodes nodes.csv --seeds 42-43 {lists} {written}".split())
    printed = capsys.readouterr().out
    assert "| default | FGD (published) |" in printed
    assert {(r["pods"], r["rule"]) for r in json.loads(out.read_text())} == {
        (pods, rule) for pods in ("default", "made") for rule in RULES
    }
    assert (tmp_path / "out.png").stat().st_size > 0


def test_what_is_read_is_in_the_units_of_the_core(tmp_path: Path) -> None:
    """Memory in bytes; names sort the pods."""
    (tmp_path / "n").write_text("sn,cpu_milli,memory_mib,gpu,model\na,1,2,3,G2\n")
    (tmp_path / "p").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nb,1,1,1,1000,\na,2,1,1,10,G2|T4\n"
    )
    assert read_machines(tmp_path / "n") == [Machine(1, 2 * 2**20, 3, "G2")]
    assert [pod.models for pod in read_pods(tmp_path / "p")] == [("G2", "T4"), ()]
    assert packing.PUBLISHED["default"]["FGD"] == 95.39
