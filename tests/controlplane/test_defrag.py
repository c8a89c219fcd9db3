"""`muster defrag` on the real API server: what it names, moved by hand, starts the gang."""

import json

from click.testing import CliRunner

from cli.__main__ import main
from cli.endings import FINE
from kube.objects import names
from testbed.nodes import GPU, NodeSpec, copies
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, requests


def asking(plot: Plot, name: str, gpus: int) -> Json:
    """A gang with one worker of so many GPUs, in the queue of the plot."""
    worker = group(replicas=1, resources=requests(**{GPU: str(gpus)}))
    return gang(name, worker, labels={names.QUEUE: plot.queue("parts")}, annotations={})


def muster(plot: Plot, *arguments: str) -> str:
    command = [arguments[0], "--kubeconfig", str(plot.cluster.kubeconfig), *arguments[1:]]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == FINE, done.stderr
    return done.stdout


def test_the_move_that_is_named_starts_the_gang_that_waits(plot: Plot) -> None:
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=64, memory="512Gi", gpus=8), 2))
    plot.add_queue("parts", quota={GPU: 64})
    for name in ("first", "fills", "second"):
        plot.create(asking(plot, name, 4))
        plot.wait_running(name, 2)
    plot.delete_whole("fills")
    plot.wait_no_gang("fills")
    plot.create(asking(plot, "large", 8))
    plot.wait_phase("large", "Queued")

    found = json.loads(muster(plot, "defrag", f"{plot.name}/large", "-o", "json"))
    (move,) = found["moves"]
    assert move["name"] in ("first", "second")
    assert (found["start"]["name"], found["start"]["gpus"]) == ("large", 8)
    assert f"moves for {plot.name}/large" in muster(plot, "defrag", f"{plot.name}/large")

    muster(plot, "suspend", f"{plot.name}/{move['name']}", "--yes")
    plot.wait_running("large", 2)
    muster(plot, "resume", f"{plot.name}/{move['name']}")
    plot.wait_running(move["name"], 2)
