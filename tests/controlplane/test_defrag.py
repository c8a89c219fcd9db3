"""`muster defrag` on the real API server: what it names, and what it does with --apply."""

import json

import pytest
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import FINE, NO
from kube.objects import names
from testbed.nodes import GPU, NodeSpec, copies
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, requests


def asking(plot: Plot, name: str, gpus: int) -> Json:
    """A gang with one worker of so many GPUs, in the queue of the plot."""
    worker = group(replicas=1, resources=requests(**{GPU: str(gpus)}))
    return gang(name, worker, labels={names.QUEUE: plot.queue("parts")}, annotations={})


def called(plot: Plot, *arguments: str) -> Result:
    command = [arguments[0], "--kubeconfig", str(plot.cluster.kubeconfig), *arguments[1:]]
    return CliRunner().invoke(main, command)


def muster(plot: Plot, *arguments: str) -> str:
    done = called(plot, *arguments)
    assert done.exit_code == FINE, done.stderr
    return done.stdout


def scattered(plot: Plot) -> None:
    """Two nodes with 4 of 8 GPUs free each, and a gang that waits for 8 on one."""
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=64, memory="512Gi", gpus=8), 2))
    plot.add_queue("parts", quota={GPU: 64})
    for name in ("first", "fills", "second"):
        plot.create(asking(plot, name, 4))
        plot.wait_running(name, 2)
    plot.delete_whole("fills")
    plot.wait_no_gang("fills")
    plot.create(asking(plot, "large", 8))
    plot.wait_phase("large", "Queued")


def test_a_plan_is_carried_out_and_all_run(plot: Plot) -> None:
    scattered(plot)
    found = json.loads(muster(plot, "defrag", f"{plot.name}/large", "-o", "json"))
    (move,) = found["moves"]
    assert move["name"] in ("first", "second")
    assert (found["start"]["name"], found["start"]["gpus"]) == ("large", 8)
    assert f"moves for {plot.name}/large" in muster(plot, "defrag", f"{plot.name}/large")

    done = json.loads(
        muster(plot, "defrag", f"{plot.name}/large", "--apply", "--yes", "-o", "json")
    )["done"]
    became = {(each["name"], each["became"]) for each in done}
    name = done[0]["name"]
    assert became == {(name, "stopped"), (name, "runs again"), ("large", "started")}
    assert "moves" not in plot.status("large")
    plot.wait_running("large", 2)
    plot.wait_running(name, 2)


@pytest.mark.variant
def test_a_budget_that_holds_a_pod_back_is_named_and_nothing_moves(plot: Plot) -> None:
    scattered(plot)
    spec = {"minAvailable": 4, "selector": {"matchLabels": {"ray.io/is-ray-node": "yes"}}}
    plot.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all-stay", "namespace": plot.name},
            "spec": spec,
        }
    )
    done = called(plot, "defrag", f"{plot.name}/large", "--apply", "--yes")
    assert done.exit_code == NO, done.stdout
    assert "cannot be evicted: " in done.stderr
    assert "disruption budget" in done.stderr
    assert "nothing was done" in done.stderr
    assert "moves" not in plot.status("large")
    for name in ("first", "second"):
        plot.wait_running(name, 2)
