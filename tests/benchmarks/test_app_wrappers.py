"""AppWrappers are measured against the same Jobs, and those that wait against none."""

import json

import msgspec
import pytest

from appwrapper.spec.items import read
from benchmarks.app_wrappers import NODES
from benchmarks.cases import CASES
from benchmarks.wrapped_jobs import (
    ALL,
    COUNT,
    CPU,
    HALF,
    PLAIN,
    SECONDS,
    WRAPPED,
    Ran,
    bodies,
    rows_of,
    stages_of,
)
from benchmarks.wrapped_waiting import ASKED, FILLED_BY, Waited, deleted, rows
from kube.objects.app_wrapper import AppWrapper
from testbed.options import FAST_STAGES, SLOW_JOB_STAGES


def ran(completed: float, over: float) -> Ran:
    return Ran(completed, over, {"kube-apiserver": completed, "driver": 99.0}, {})


@pytest.mark.parametrize("fits", [ALL, HALF])
def test_the_aim_is_for_the_last_job_against_plain_kubernetes(fits: str) -> None:
    good, over, cpu = rows_of(fits, [ran(30.0, 30.0)], [ran(33.0, 36.0)])
    assert (good.ours_are, good.floor_is) == (WRAPPED, PLAIN)
    assert (good.aim, good.met) == ("≤ 1.1 times the floor", True)
    assert over.ratios == pytest.approx((1.2,))
    assert cpu.ours == (33.0,)  # without the driver's
    late, *_ = rows_of(fits, [ran(30.0, 30.0)], [ran(33.1, 33.1)])
    assert late.met is False


@pytest.mark.parametrize("fits", [ALL, HALF])
def test_both_sides_run_the_same_jobs(fits: str) -> None:
    plain, ours = bodies(PLAIN, fits, 0), bodies(WRAPPED, fits, 0)
    assert len(plain) == len(ours) == COUNT
    for one, other in zip(plain, ours, strict=True):
        job = json.loads(one)
        (component,) = json.loads(other)["spec"]["components"]
        assert component["template"]["spec"] == job["spec"]
    notes = json.loads(plain[0])["spec"]["template"]["metadata"]["annotations"]
    assert set(notes.values()) == {f"{SECONDS:g}s"}


def test_an_appwrapper_of_the_benchmark_is_one_that_muster_takes() -> None:
    found = read(msgspec.json.decode(bodies(WRAPPED, ALL, 0)[0], type=AppWrapper))
    assert not found.faults
    assert [each.count for item in found.items for each in item.pod_sets] == [1]


@pytest.mark.parametrize(("fits", "least", "most"), [(ALL, COUNT, 10**6), (HALF, 50, 55)])
def test_as_many_fit_at_once_as_is_said(fits: str, least: int, most: int) -> None:
    milli = int(CPU[fits].removesuffix("m"))
    at_once = sum(int(node.cpus) * 1000 // milli for node in NODES)
    assert least <= at_once <= most


def test_an_object_is_in_the_phase_and_the_conditions_that_it_says() -> None:
    true, false = {"type": "Complete", "status": "True"}, {"type": "Failed", "status": "False"}
    assert list(stages_of({"status": {"conditions": [true, false]}})) == ["created", "Complete"]
    assert list(stages_of({"status": {"phase": "Succeeded"}})) == ["created", "Succeeded"]
    assert list(stages_of({})) == ["created"]


def test_the_pods_of_jobs_last_by_one_stage_that_takes_the_place_of_another() -> None:
    assert set(FAST_STAGES) ^ set(SLOW_JOB_STAGES) == {
        "pod/fast/pod-complete.yaml",
        "pod/general/pod-complete.yaml",
    }


def waited(made: int, memory: float) -> Waited:
    return Waited(made, 2000, memory, memory, {"coordinator-0": 1.0, "driver": 9.0}, 12.0)


def test_those_that_wait_are_told_against_none_and_make_no_object() -> None:
    made, *others = rows([waited(0, 100.0)], [waited(0, 150.0)])
    assert (made.ours, made.met) == ((0.0,), True)
    told = {row.name: row for row in others}
    assert told["memory of the wrapper"].ratios == (1.5,)
    assert told["a cycle of the coordinator"].floor == ()
    assert told["CPU of all programs in a minute at rest"].ours == (1.0,)
    bad, *_ = rows([waited(0, 100.0)], [waited(1, 100.0)])
    assert bad.met is False


def test_the_small_pods_that_are_deleted_make_room_for_none() -> None:
    of_node = [name.rsplit("-", 1)[0] for name in deleted()]
    freed = max(of_node.count(node.name) for node in NODES) * int(FILLED_BY)
    assert 0 < freed < int(ASKED)
    assert len(set(deleted())) == len(of_node)


def test_both_are_cases() -> None:
    assert {"app-wrappers", "app-wrappers-waiting"} <= set(CASES)
