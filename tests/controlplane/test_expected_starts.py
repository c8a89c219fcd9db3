"""The forecaster tells Gangs when they start, beside a coordinator that writes the same status."""

from __future__ import annotations

import http
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner

from cli.__main__ import main
from kube.objects import names
from testbed.muster import Muster
from testbed.nodes import GPU, NodeSpec, copies
from tests.controlplane.attacks import JSON_PATCH
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, requests

HURRIED = {"REST_SECONDS": "0.3", "CPU_SHARE": "1", "MOVED_SECONDS": "1", "REFRESH_SECONDS": "1"}
ACCOUNT = f"system:serviceaccount:{names.DEFAULT_NAMESPACE}:muster-forecaster"
HOUR = 3600.0


@pytest.fixture(scope="module", autouse=True)
def forecaster(muster: Muster) -> Iterator[None]:
    process = muster.start_forecaster(HURRIED)
    yield
    process.stop()


def asking(plot: Plot, name: str, duration: str, **more: Any) -> Json:
    """A gang that takes both nodes, in the queue of the plot, and how long it runs."""
    workers = group(replicas=2, resources=requests(**{GPU: "8"}), **more)
    labels, said = {names.QUEUE: plot.queue("line")}, {names.EXPECTED_DURATION: duration}
    return gang(name, workers, labels=labels, annotations=said)


@pytest.fixture
def line(plot: Plot) -> Plot:
    """Two nodes of 8 GPUs in use by `first`."""
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=64, memory="512Gi", gpus=8), 2))
    plot.add_queue("line", quota={GPU: 64}, whenBlocked="Strict")
    return plot


def told(plot: Plot, name: str) -> Json:
    found: Json = plot.status(name).get("expectedStart") or {}
    return found


def starts(muster: Muster) -> float:
    """How many gangs started that had been told when, wherever in the range that was."""
    lines = (each for each in muster.forecaster_metrics().splitlines() if '"untold"' not in each)
    found = (each for each in lines if each.startswith("muster_forecaster_starts_total{"))
    return sum(float(each.rpartition(" ")[2]) for each in found)


def is_misconfigured(plot: Plot, name: str) -> bool:
    return bool(plot.status(name).get("reason") == "Misconfigured")


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def test_estimates_come_move_when_a_gang_overruns_and_go_when_theirs_starts(
    line: Plot, muster: Muster
) -> None:
    before = starts(muster)
    line.create(asking(line, "first", "3s"))
    line.wait_running("first", 3)
    line.create(asking(line, "second", "1h"))
    moved = line.wait(lambda: told(line, "second").get("moved"), "an estimate that moved")
    assert f"RayCluster {line.name}/first outlived the 3s it had" in moved
    found = told(line, "second")
    assert found["basis"] == "Forward"
    assert found["first"]["asOf"] <= found["asOf"] <= found["time"]
    assert found["reason"].startswith(f"after RayCluster {line.name}/first ends (declared 3s")

    line.delete_whole("first")
    line.wait_running("second", 3)
    line.wait(lambda: not told(line, "second"), "the estimate to go")
    line.wait(lambda: starts(muster) > before, "the start to be counted")


@pytest.fixture
def waiting(line: Plot) -> Plot:
    """Two gangs wait for `first` and for one another, and are told when they start."""
    line.create(asking(line, "first", "6h"))
    line.wait_running("first", 3)
    for name in ("second", "third"):
        line.create(asking(line, name, "1h"))
        line.wait_phase(name, "Queued")
    line.wait(lambda: told(line, "third").get("time"), "the estimate")
    return line


@pytest.mark.variant
def test_neither_writer_takes_the_fields_of_the_other(waiting: Plot) -> None:
    before = waiting.status("third")
    waiting.delete_whole("second")
    waiting.wait(
        lambda: waiting.status("third")["reason"] != before["reason"], "the coordinator to write"
    )
    after = waiting.status("third")
    assert after["expectedStart"]["first"] == before["expectedStart"]["first"]
    earlier = seconds(before["expectedStart"]["time"]) - HOUR

    def has_moved() -> bool:
        return abs(seconds(told(waiting, "third")["time"]) - earlier) < 60

    waiting.wait(has_moved, "the estimate to follow")
    kept = waiting.status("third")
    assert kept.keys() >= after.keys()
    assert (kept["epoch"], kept["phase"], kept["reason"]) == (
        after["epoch"],
        "Queued",
        after["reason"],
    )


@pytest.mark.long
def test_a_new_leader_leaves_estimates_as_they_are(waiting: Plot, muster: Muster) -> None:
    before = waiting.status("third")
    muster.coordinators[0].restart()
    muster.wait_ready()
    waiting.delete_whole("second")
    waiting.wait(
        lambda: waiting.status("third")["epoch"] > before["epoch"], "the new leader to write"
    )
    assert told(waiting, "third")["first"] == before["expectedStart"]["first"]


@pytest.mark.variant
def test_kubectl_and_why_show_what_was_told(waiting: Plot) -> None:
    kubectl = ("get", "gang", "third", "-n", waiting.name, "-o", "wide")
    waiting.wait(  # it may be written anew between
        lambda: told(waiting, "third")["time"] in waiting.cluster.kubectl(*kubectl),
        "the same time in a column",
    )
    command = ["--kubeconfig", str(waiting.cluster.kubeconfig), "why", f"{waiting.name}/third"]
    done = CliRunner().invoke(main, command)
    assert "expected start: about " in done.stdout
    assert "told by the forecaster at " in done.stdout


@pytest.mark.variant
def test_a_gang_whose_duration_is_no_time_is_told_nothing_and_others_are(line: Plot) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    line.create(asking(line, "first", "6h"))
    line.wait_running("first", 3)
    for name, said in (("nothing", "0s"), ("parsecs", "7 parsecs")):
        line.create(asking(line, name, said))
    line.wait(
        lambda: is_misconfigured(line, "nothing") and is_misconfigured(line, "parsecs"),
        "both to be told why",
    )
    line.create(asking(line, "mounts", "8760h", volumes=[claim]))
    line.create(asking(line, "year", "8760h"))
    line.wait(lambda: told(line, "year").get("time"), "the estimate")
    assert not told(line, "nothing")
    assert not told(line, "parsecs")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"expectedStart": {"basis": "Unknown", "asOf": "2026-01-01T00:00:00Z"}}, 200),
        ({"expectedStart": None, "phase": "Running"}, 403),
        ({"placement": {"epoch": 9}}, 403),
        ({"reason": None}, 403),
    ],
    ids=["an-estimate", "a-phase-beside-it", "a-placement", "a-field-taken-away"],
)
def test_the_account_may_write_estimates_and_nothing_else(
    line: Plot, change: Json, status: int
) -> None:
    line.create(asking(line, "huge", "1h"))
    line.create(asking(line, "waits", "1h"))
    line.wait(lambda: line.status("waits").get("reason"), "a status")
    by = replace(line.cluster.api, impersonated=ACCOUNT)
    steps = [
        {"op": "remove", "path": f"/status/{key}"}
        if value is None
        else {"op": "add", "path": f"/status/{key}", "value": value}
        for key, value in change.items()
        if value is not None or line.status("waits").get(key)
    ]
    path = f"{line.path('Gang', 'waits')}/status?dryRun=All"
    with by.session() as session:
        found, answer = session.request("PATCH", path, json.dumps(steps).encode(), JSON_PATCH)
    assert found == status, answer
    if status == http.HTTPStatus.FORBIDDEN:
        assert "muster-gangs" in str(answer)
