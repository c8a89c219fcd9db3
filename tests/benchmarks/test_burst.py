"""Each kind of burst is compared with the right one, and every program is counted."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from benchmarks.burst import GATINGS, KINDS, Burst, gating_rows, rows
from benchmarks.kinds import FLOOR, MUSTER, STOCK, WEBHOOK, Kind
from benchmarks.kuberay import Reconciles
from benchmarks.measure import all_in_turn
from benchmarks.policies import ALL, ALL_TRACKED, LABELLED
from benchmarks.processes import DRIVER, CpuMeter
from benchmarks.releaser import RoundRobin
from testbed.cluster import Cluster
from testbed.processes import Process, Watchdog
from testbed.waiting import WAIT_SECONDS, wait_until


def burst(seconds: float) -> Burst:
    cpu = {"kube-apiserver": 2 * seconds, DRIVER: 99.0}
    return Burst(seconds / 2, seconds, cpu, cpu, 3 * seconds)


FOUND = {kind: [burst(seconds)] for kind, seconds in zip(KINDS, (10, 12, 13, 12.5), strict=True)}


def test_the_aims_are_against_the_floor_on_the_clock_and_in_cpu() -> None:
    clock, cpu, *others = rows(FOUND)
    for row in (clock, cpu):
        assert (row.ours_are, row.floor_is) == ("Muster", "floor")
        assert row.ratios == pytest.approx((12.5 / 12,))
        assert row.met is True
    assert not any(row.aim for row in others)
    assert cpu.ours == (25.0,)  # without the driver's


def test_an_aim_that_is_missed_says_so() -> None:
    slow = {**FOUND, MUSTER: [burst(12.7)]}
    assert [row.met for row in rows(slow)[:2]] == [False, False]


def test_the_distance_of_the_floor_to_stock_is_told() -> None:
    pairs = [(row.ours_are, row.floor_is, row.name) for row in rows(FOUND) if row.stated]
    assert ("floor", "stock", "first create to all Running") in pairs
    assert ("floor", "stock", "CPU of all programs until all Running") in pairs


def test_a_webhook_is_compared_with_a_policy_both_tracked_and_not() -> None:
    found = {kind: [burst(1.0)] for kind in GATINGS}
    pairs = {(row.ours_are, row.floor_is) for row in gating_rows(found)}
    tracked = ("webhook, owners tracked", "policy, owners tracked")
    assert {("webhook", "floor"), tracked, ("policy by owner", "webhook")} <= pairs


def test_kinds_are_labelled_where_muster_is_to_see_them() -> None:
    assert {kind.labelled for kind in (FLOOR, WEBHOOK, MUSTER)} == {True}
    assert STOCK.labelled is False
    assert len({kind.prefix for kind in {*KINDS, *GATINGS}}) == len({*KINDS, *GATINGS})


@pytest.mark.parametrize("kind", {*KINDS, *GATINGS})
def test_a_prefix_may_begin_the_name_of_an_object(kind: Kind) -> None:
    assert kind.prefix.replace("-", "").isalnum()
    assert kind.prefix == kind.prefix.lower()


def test_sides_take_turns_and_none_is_always_last() -> None:
    """Value i of each side belongs to round i, wherever in the round it ran."""
    order: list[str] = []

    def run(name: str, number: int) -> int:
        order.append(f"{name}{number}")
        return len(order)

    sides = [partial(run, name) for name in "abc"]
    assert all_in_turn(4, sides) == [[1, 6, 8, 10], [2, 4, 9, 11], [3, 5, 7, 12]]
    assert " ".join(order) == "a0 b0 c0 b1 c1 a1 c2 a2 b2 a3 b3 c3"
    assert all_in_turn(0, sides) == [[], [], []]


# ---- the floor


def test_a_policy_gates_and_removes_field_owners_in_one_patch() -> None:
    (_, policy), (_, binding) = ALL.objects()
    (mutation,) = policy["spec"]["mutations"]
    assert "muster.dev/gang" in mutation["jsonPatch"]["expression"]
    assert "/metadata/managedFields" in mutation["jsonPatch"]["expression"]
    assert binding["spec"] == {"policyName": policy["metadata"]["name"]}


def test_a_policy_may_leave_field_owners_or_ask_for_the_owner() -> None:
    tracked = next(ALL_TRACKED.objects())[1]["spec"]
    assert "managedFields" not in str(tracked)
    (_, by_owner), (_, binding) = LABELLED.objects()
    assert by_owner["spec"]["paramKind"]["kind"] == "RayCluster"
    assert binding["spec"]["paramRef"]["selector"]["matchLabels"] == {"muster.dev/gang": "true"}


def told(kind: str, name: str, version: str, *, gated: bool = True) -> bytes:
    gates = [{"name": "muster.dev/gang"}] if gated else []
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
    pod = {"metadata": metadata, "spec": {"schedulingGates": gates}}
    return msgspec.json.encode({"type": kind, "object": pod})


def test_each_gated_pod_gets_the_next_node() -> None:
    turns = RoundRobin(2)
    lines = [told("ADDED", name, "1") for name in "abc"]
    assert [(pod.metadata.name, node) for pod, node in turns.take(lines)] == [
        ("a", "node-0"),
        ("b", "node-1"),
        ("c", "node-0"),
    ]


def test_a_version_of_a_pod_is_released_once_and_a_new_one_again() -> None:
    turns = RoundRobin(9)
    assert len(list(turns.take([told("ADDED", "a", "1"), told("ADDED", "a", "1")]))) == 1
    assert len(list(turns.take([told("MODIFIED", "a", "2")]))) == 1


def test_pods_without_our_gate_and_pods_that_left_are_let_be() -> None:
    lines = [told("ADDED", "a", "1", gated=False), told("DELETED", "b", "1")]
    assert list(RoundRobin(9).take(lines)) == []


# ---- the use of each program


METRICS = """\
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="raycluster",result="error"} 1
controller_runtime_reconcile_total{controller="raycluster",result="requeue_after"} 40
controller_runtime_reconcile_total{controller="rayjob",result="success"} 7
controller_runtime_reconcile_time_seconds_bucket{controller="raycluster",le="0.005"} 9
controller_runtime_reconcile_time_seconds_sum{controller="raycluster"} 0.5
"""


def test_reconciles_are_those_of_rayclusters_whatever_came_of_them() -> None:
    seen = Reconciles.read(METRICS)
    assert seen == Reconciles(41.0, 0.5)
    assert Reconciles(50.0, 0.75).since(seen) == Reconciles(9.0, 0.25)


BUSY = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"


def test_a_program_that_was_restarted_counts_from_its_start(tmp_path: Any) -> None:
    guard = Watchdog()
    argv = [sys.executable, "-c", f"{BUSY}print('done', flush=True)\ntime.sleep(600)"]
    program = Process("busy", argv, {}, tmp_path / "log", guard)
    try:
        wait_for(program, 1)
        meter = CpuMeter(cast(Cluster, SimpleNamespace(processes={"busy": program})))
        assert meter.used().get("busy", 0.0) < 0.2
        program.restart()
        wait_for(program, 2)
        assert meter.used()["busy"] > 0.1  # the kernel counts in hundredths, and rounds down
    finally:
        program.kill()
        guard.close()


def wait_for(program: Process, lines: int) -> None:
    def done() -> bool:
        program.expect_running()
        return program.log.read_text().count("done") >= lines

    wait_until(done, "the program to have used its time")


def test_a_restart_may_change_the_environment(tmp_path: Any) -> None:
    guard = Watchdog()
    argv = [sys.executable, "-c", "import os; print(os.environ['A'] + os.environ['B'])"]
    program = Process("says", argv, {"A": "a", "B": "b"}, tmp_path / "log", guard)
    try:
        program.wait(WAIT_SECONDS)
        program.restart({"B": "c"})
        program.wait(WAIT_SECONDS)
        program.restart()
        program.wait(WAIT_SECONDS)
        assert program.log.read_text().split() == ["ab", "ac", "ac"]
    finally:
        program.kill()
        guard.close()
