"""What the commands and the page show of a plot, and a count of the same over plain objects."""

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from testbed.nodes import GPU
from testbed.ports import PortAllocator
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json
from tests.controlplane.test_cli import answer, gpus_of

SIZES = (1, 2, 4, 8)
WAITING = "Queued"


@contextmanager
def page(plot: Plot) -> Iterator[int]:
    """Run `muster dashboard`; gives its port."""
    ports = PortAllocator()
    port = ports.allocate()
    command = [sys.executable, "-m", "cli", "dashboard", "--port", str(port), "--period", "1"]
    process = subprocess.Popen([*command, "--kubeconfig", str(plot.cluster.kubeconfig)])
    try:
        yield port
    finally:
        process.terminate()
        process.wait(timeout=60)
        ports.close()


def counted(plot: Plot, queue: str, nodes: dict[str, int]) -> Json:
    """Count over what the API server has; `nodes` are those with GPUs, with how many."""
    pods = [each for each in plot.all("Pod") if each["spec"].get("nodeName")]
    used = Counter[str]()
    for pod in pods:
        used[pod["spec"]["nodeName"]] += gpus_of(pod)
    left = [whole - used[plot.node(name)] for name, whole in nodes.items()]
    gangs = {name: each["status"] for name, each in plot.gangs().items() if "status" in each}
    return {
        "phases": Counter(each["phase"] for each in gangs.values()),
        "waiting": {name for name, each in gangs.items() if each["phase"] == WAITING},
        "pending": sum(each["phase"] == WAITING for each in gangs.values()),
        "admitted": sum("placement" in each for each in gangs.values()),
        "cpu": str(plot.queue_status(queue).get("usage", {}).get("cpu", 0)),
        "holding": {
            name: sum(map(gpus_of, plot.pods(name)))
            for name, each in gangs.items()
            if "placement" in each
        },
        "used": sum(used[plot.node(name)] for name in nodes),
        "free": sum(left),
        "holes": {str(size): sum(each // size for each in left) for size in SIZES},
        "nodes": {plot.node(name): used[plot.node(name)] for name in nodes},
    }


def by_commands(plot: Plot, queue: str) -> Json:
    """The same as `muster status`, `queue` and `nodes` show it."""
    status = answer(plot, "status", "-n", plot.name)
    one = answer(plot, "queue", plot.queue(queue))
    room = answer(plot, "nodes")
    mine = [each for each in room["nodes"] if each["pool"] == plot.name]
    return {
        "phases": status["phases"],
        "waiting": {each["name"] for each in status["waiting"]},
        **_of_queue(one["queue"]),
        "holding": {each["name"]: int(each["holds"].get(GPU, 0)) for each in one["holding"]},
        **_of_pool(plot, room["pools"]),
        "nodes": {each["name"]: each["used"] for each in mine},
    }


def by_page(plot: Plot, queue: str, port: int) -> Json | None:
    """The same as the page shows it; None before its first reading."""
    gangs, queues = _asked(port, f"{plot.name}/"), _asked(port, plot.queue(queue))
    nodes = _asked(port, plot.name)
    if gangs is None or queues is None or nodes is None:
        return None
    rows = [*gangs["waiting"]["items"], *gangs["placed"]["items"]]
    (found,) = (e for e in queues["queues"]["items"] if e["name"] == plot.queue(queue))
    holds = {each["name"]: each["holds"] for each in gangs["placed"]["items"]}
    return {
        "phases": Counter(each["phase"] for each in rows),
        "waiting": {each["name"] for each in gangs["waiting"]["items"]},
        **_of_queue(found),
        "holding": {name: int(each.get(GPU, 0)) for name, each in holds.items() if each},
        **_of_pool(plot, gangs["pools"]),
        "nodes": {each["name"]: each["used"] for each in nodes["nodes"]["items"]},
    }


def _of_queue(found: Json) -> Json:
    used = {each["resource"]: each.get("used") for each in found["resources"]}
    return {"pending": found["pending"], "admitted": found["admitted"], "cpu": used["cpu"]}


def _of_pool(plot: Plot, pools: list[Json]) -> Json:
    (pool,) = (each for each in pools if each["name"] == plot.name)
    return {key: pool[key] for key in ("used", "free", "holes")}


def _asked(port: int, text: str) -> Any:
    url = f"http://127.0.0.1:{port}/report?{urllib.parse.urlencode({'q': text})}"
    try:
        with urllib.request.urlopen(url, timeout=30) as found:
            return json.load(found)
    except OSError:
        return None


def why_is_right(plot: Plot, name: str) -> bool:
    """Whether `muster why` has the place, the reason and the holders that the objects have."""
    said, found = plot.status(name), answer(plot, "why", f"{plot.name}/{name}")
    running = {gang for gang, each in plot.gangs().items() if "placement" in each["status"]}
    short = [each["short"] for each in found["podSets"] if each.get("short")]
    holders = {each["name"]: int(each["amount"]) for each in short[0]["holders"]} if short else {}
    return (
        (found["phase"], found["reason"], found["position"])
        == (said["phase"], said["reason"], said.get("position", 0))
        and found["message"] == said["message"]
        and holders == {gang: sum(map(gpus_of, plot.pods(gang))) for gang in running}
    )
