"""`muster why --expected` and `muster what-if` on the real API server, of what really waits."""

import json
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cli.__main__ import main
from cli.endings import FINE, NO
from kube.objects import names
from testbed.nodes import GPU, NodeSpec, copies
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, requests

HOUR = 3600.0


def answer(plot: Plot, *arguments: str) -> Json:
    """The answer of a command that may read everything, as data."""
    command = ["--kubeconfig", str(plot.cluster.kubeconfig), *arguments, "-o", "json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code in (FINE, NO), done.stderr
    found: Json = json.loads(done.stdout)
    return found


def asking(plot: Plot, name: str, workers: int, duration: str) -> Json:
    """A gang of workers with 8 GPUs each, in the queue of the plot, and how long it runs."""
    workers_of_8 = group(replicas=workers, resources=requests(**{GPU: "8"}))
    labels, said = {names.QUEUE: plot.queue("line")}, {names.EXPECTED_DURATION: duration}
    return gang(name, workers_of_8, labels=labels, annotations=said)


@pytest.fixture
def line(plot: Plot) -> Plot:
    """Two nodes of 8 GPUs and room for three: one gang runs, and two wait for one another."""
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=64, memory="512Gi", gpus=8), 2))
    plot.add_queue("line", quota={GPU: 64}, whenBlocked="Strict")
    plot.create(asking(plot, "first", 2, "6h"))
    plot.wait_running("first", 3)
    for name, duration in (("second", "2h"), ("third", "1h")):
        plot.create(asking(plot, name, 2, duration))
        plot.wait_phase(name, "Queued")
    return plot


def expected(plot: Plot, name: str) -> tuple[Json, float]:
    """What `why --expected` says of a gang, and in how many seconds after the first one began."""
    report = answer(plot, "why", f"{plot.name}/{name}", "--expected")
    (found,) = (each for each in report["forecast"]["gangs"] if each["name"] == name)
    began = max(_seconds(each["metadata"]["creationTimestamp"]) for each in plot.pods("first"))
    return found, _seconds(found["at"]) - began


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def effects(plot: Plot, *changes: str) -> dict[str, Json]:
    """What changes would do to the gangs of the plot."""
    found = answer(plot, "what-if", *changes)["effects"]
    return {each["name"]: each for each in found if each["namespace"] == plot.name}


def asked_for(plot: Plot) -> dict[str, tuple[str, int]]:
    """The Ray clusters that there are, with the versions of what is asked of them."""
    there = (each["metadata"] for each in plot.all("RayCluster"))
    return {each["name"]: (each["uid"], each["generation"]) for each in there}


@pytest.mark.variant
def test_why_tells_when_a_gang_that_waits_is_expected_to_start(line: Plot) -> None:
    second, after = expected(line, "second")
    assert abs(after - 6 * HOUR) < 120
    assert second["earliest"] < second["at"] < second["latest"]
    assert second["sure"] == "Forward"
    assert f"after RayCluster {line.name}/first ends (declared 6h" in second["why"]
    third, after = expected(line, "third")
    assert abs(after - 8 * HOUR) < 120
    assert f"after RayCluster {line.name}/second ends (waits too, declared 2h)" in third["why"]


def test_what_if_tells_what_changes_would_do_and_makes_none(line: Plot, tmp_path: Path) -> None:
    before = asked_for(line)
    stopped = effects(line, "--stop", f"{line.name}/first")
    assert {name: each["effect"] for name, each in stopped.items()} == {
        "first": "Ends",
        "second": "StartsNow",
        "third": "Sooner",
    }

    more = effects(line, "--add-nodes", f"2={line.node('gpu-0')}")
    assert {name: each["effect"] for name, each in more.items()} == {
        "second": "StartsNow",
        "third": "Sooner",
    }
    assert abs(more["third"]["laterSeconds"] + 6 * HOUR) < 120

    fourth = tmp_path / "fourth.yaml"
    manifest = asking(line, "fourth", 1, "1h")
    manifest["metadata"]["namespace"] = line.name
    fourth.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    (submitted,) = effects(line, "-f", str(fourth)).values()
    assert (submitted["name"], submitted["sure"]) == ("fourth", "Forward")
    assert f"after RayCluster {line.name}/third ends" in submitted["why"]

    assert asked_for(line) == before
