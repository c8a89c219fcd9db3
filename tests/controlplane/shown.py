"""What the commands and the page show of a plot, and a count of the same over plain objects."""

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kube.objects import names
from testbed.nodes import GPU
from testbed.ports import PortAllocator
from tests.controlplane.plot import Plot, is_ready, label
from tests.controlplane.rayclusters import Json
from tests.controlplane.test_cli import answer, gpus_of

SIZES = (1, 2, 4, 8)
WAITING = "Queued"
WHOLE = 8
"""GPUs of a node."""

POOL = ("allocatable", "used", "reserved", "free", "holes")


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


@dataclass(frozen=True)
class Count:
    """A count over pods and RayClusters; phases and reasons are those that the Gangs have.

    A gang holds what its RayCluster asks for as soon as it has a placement. `used` and `kept` are
    GPUs by node, `holding` GPUs and `cores` cores by gang, `ready` is pods of pods.
    """

    used: Mapping[str, int]
    kept: Mapping[str, int]
    gangs: Mapping[str, Json]
    holding: Mapping[str, int]
    cores: Mapping[str, int]
    ready: Mapping[str, str]

    @property
    def left(self) -> list[int]:
        """The free GPUs of each node."""
        return [WHOLE - used - self.kept.get(name, 0) for name, used in self.used.items()]

    @property
    def holes(self) -> dict[str, int]:
        """Pods by size that still fit."""
        return {str(size): sum(each // size for each in self.left) for size in SIZES}

    def by(self, *fields: str) -> Counter[tuple[str, ...]]:
        """The gangs by fields of their status."""
        return Counter(tuple(each[key] for key in fields) for each in self.gangs.values())


def count(plot: Plot, nodes: Iterable[str], kept: Mapping[str, int] | None = None) -> Count:
    """Count; `nodes` have 8 GPUs each, of which some are `kept` for pods that were lost."""
    used, ready = Counter[str](), Counter[str]()
    for pod in plot.all("Pod"):
        used[pod["spec"].get("nodeName", "")] += gpus_of(pod)
        ready[label(pod, names.RAY_CLUSTER)] += is_ready(pod)
    asked = {each["metadata"]["name"]: _asked_for(each) for each in plot.all("RayCluster")}
    gangs = {name: each["status"] for name, each in plot.gangs().items() if "status" in each}
    placed = {name for name, each in gangs.items() if "placement" in each} & asked.keys()
    return Count(
        used={plot.node(name): used[plot.node(name)] for name in nodes},
        kept={plot.node(name): gpus for name, gpus in (kept or {}).items()},
        gangs=gangs,
        holding={name: asked[name][GPU] for name in placed},
        cores={name: asked[name]["cpu"] for name in placed},
        ready={
            name: f"{ready[name]}/{asked[name]['pods']}" for name in gangs.keys() & asked.keys()
        },
    )


def _asked_for(cluster: Json) -> Counter[str]:
    """The pods, GPUs and cores of a RayCluster, by its spec."""
    (workers,) = cluster["spec"]["workerGroupSpecs"]
    sums = Counter[str]()
    for each, pods in ((cluster["spec"]["headGroupSpec"], 1), (workers, workers["replicas"])):
        (container,) = each["template"]["spec"]["containers"]
        found = container["resources"]["requests"]
        sums.update({"pods": pods, "cpu": pods * int(found["cpu"])})
        sums[GPU] += pods * int(found.get(GPU, 0))
    return sums


def counted(found: Count) -> Json:
    """The count, as commands and page are asked for it."""
    return {
        "phases": Counter(each["phase"] for each in found.gangs.values()),
        "waiting": {name for name, each in found.gangs.items() if each["phase"] == WAITING},
        "pending": found.by("phase")[WAITING,],
        "admitted": len(found.holding),
        "cpu": sum(found.cores.values()),
        "holding": found.holding,
        "ready": found.ready,
        "allocatable": WHOLE * len(found.used),
        "used": sum(found.used.values()),
        "reserved": sum(found.kept.values()),
        "free": sum(found.left),
        "holes": found.holes,
        "nodes": {name: (used, found.kept.get(name, 0)) for name, used in found.used.items()},
    }


def differences(right: Json, told: Json) -> Json:
    """What is told otherwise than it is: what it is, and what is told."""
    return {key: (each, told.get(key)) for key, each in right.items() if told.get(key) != each}


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
        "ready": {each["name"]: each["ready"] for each in (*status["waiting"], *status["placed"])},
        **_of_pool(plot, room["pools"]),
        "nodes": {each["name"]: (each["used"], each["reserved"]) for each in mine},
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
        "ready": {each["name"]: each["ready"] for each in rows},
        **_of_pool(plot, gangs["pools"]),
        "nodes": {e["name"]: (e["used"], e["reserved"]) for e in nodes["nodes"]["items"]},
    }


def _of_queue(found: Json) -> Json:
    used = {each["resource"]: each.get("used") for each in found["resources"]}
    return {"pending": found["pending"], "admitted": found["admitted"], "cpu": _cores(used["cpu"])}


def _cores(text: str) -> float:
    return int(text[:-1]) / 1000 if text.endswith("m") else int(text)


def _of_pool(plot: Plot, pools: list[Json]) -> Json:
    (pool,) = (each for each in pools if each["name"] == plot.name)
    return {key: pool[key] for key in POOL}


def _asked(port: int, text: str) -> Any:
    url = f"http://127.0.0.1:{port}/report?{urllib.parse.urlencode({'q': text})}"
    try:
        with urllib.request.urlopen(url, timeout=120) as found:
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
