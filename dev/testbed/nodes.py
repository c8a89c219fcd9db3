"""Describes a node, and creates many of them fast.

The nodes are born Ready, as kwok would make them a moment later: the controller manager then takes
the `not-ready` taint off at its first look, and nothing waits for kwok.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from testbed.api import Api, Json
from testbed.errors import TestbedError
from testbed.waiting import POLL_SECONDS, wait_until

GPU = "nvidia.com/gpu"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# More connections than this make the API server no faster on a small machine.
_WORKERS = 4
# Listing thousands of nodes again and again would slow down what is waited for.
_POLL_SECONDS_PER_NODE = 0.0005
# Taints that the control plane puts on a node which is not (yet) fit for use.
_SYSTEM_TAINTS = "node.kubernetes.io/"
# The controller manager copies the newer labels to the older ones, with a request for each node
# that comes without.
_PLATFORM_LABELS = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
}
# Ready is True on a good node, every other condition False.
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True)
class NodeSpec:
    """One node of any shape."""

    name: str
    cpus: int | str = 8
    memory: str = "32Gi"
    gpus: int = 0
    pods: int = 110
    ephemeral_storage: str = "100Gi"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[str] = ()
    """As kubectl writes them: `key=value:Effect` or `key:Effect`."""
    resources: Mapping[str, str | int] = field(default_factory=dict)
    """Extended resources other than nvidia.com/gpu."""
    allocatable: Mapping[str, str | int] = field(default_factory=dict)
    """Where the allocatable amount differs from the capacity."""


def copies(template: NodeSpec, count: int) -> list[NodeSpec]:
    """Return `count` nodes that differ in name only: the template's name and a number."""
    return [replace(template, name=f"{template.name}-{index}") for index in range(count)]


def read_node_file(path: Path) -> list[NodeSpec]:
    """Read a YAML list of nodes; an entry with `count` stands for that many copies."""
    entries = yaml.safe_load(path.read_text())
    if not isinstance(entries, list):
        raise TestbedError(f"{path}: a list of nodes is expected")
    return list(itertools.chain.from_iterable(_read_entry(path, entry) for entry in entries))


def _read_entry(path: Path, entry: Any) -> list[NodeSpec]:
    if not isinstance(entry, dict):
        raise TestbedError(f"{path}: a node is a mapping, not {entry!r}")
    fields = dict(entry)
    count = fields.pop("count", None)
    try:
        spec = NodeSpec(**fields)
    except TypeError as error:
        known = ", ".join(NodeSpec.__dataclass_fields__)
        raise TestbedError(f"{path}: {error}; a node has count, {known}") from error
    return [spec] if count is None else copies(spec, count)


def parse_label(text: str) -> tuple[str, str]:
    """Read `key=value`."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise TestbedError(f"a label is written key=value, not {text!r}")
    return key, value


def parse_taint(text: str) -> dict[str, str]:
    """Read `key=value:Effect` or `key:Effect`."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not key or effect not in EFFECTS:
        raise TestbedError(
            f"a taint is written key=value:Effect or key:Effect with an effect of "
            f"{', '.join(EFFECTS)}, not {text!r}"
        )
    taint = {"key": key, "effect": effect}
    return {**taint, "value": value} if value else taint


def node_object(spec: NodeSpec, now: dt.datetime) -> Json:
    """Build the node as it is created: with its resources, and Ready."""
    labels = {"kubernetes.io/hostname": spec.name, **_PLATFORM_LABELS, **spec.labels}
    capacity = _capacity(spec)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels},
        "spec": {"taints": [parse_taint(taint) for taint in spec.taints]},
        "status": {
            "phase": "Running",
            "capacity": capacity,
            "allocatable": {**capacity, **_as_quantities(spec.allocatable)},
            "conditions": _conditions(now),
            # kwok gives pods an address only where their node has one. Nothing answers here.
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": spec.name},
            ],
        },
    }


def _capacity(spec: NodeSpec) -> dict[str, str]:
    amounts = {
        "cpu": spec.cpus,
        "memory": spec.memory,
        "ephemeral-storage": spec.ephemeral_storage,
        "pods": spec.pods,
        **spec.resources,
    }
    return _as_quantities({**amounts, GPU: spec.gpus} if spec.gpus else amounts)


def _as_quantities(amounts: Mapping[str, str | int]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _conditions(now: dt.datetime) -> list[dict[str, str]]:
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {
            "type": name,
            "status": "True" if name == "Ready" else "False",
            "reason": "Testbed",
            "message": "made by the testbed",
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        for name in _CONDITIONS
    ]


def add_nodes(api: Api, specs: Sequence[NodeSpec]) -> None:
    """Create nodes and wait until the scheduler may use every one of them."""
    now = dt.datetime.now(dt.UTC)
    bodies = [json.dumps(node_object(spec, now)).encode() for spec in specs]
    shares = [bodies[start::_WORKERS] for start in range(min(_WORKERS, len(bodies)))]
    with ThreadPoolExecutor(_WORKERS) as pool:
        for done in [pool.submit(_create_all, api, share) for share in shares]:
            done.result()
    names = {spec.name for spec in specs}
    what = f"{len(names)} nodes to be Ready and untainted"
    every = max(POLL_SECONDS, len(names) * _POLL_SECONDS_PER_NODE)
    wait_until(lambda: names <= _usable(api), what, every=every)


def _create_all(api: Api, bodies: Iterable[bytes]) -> None:
    with api.session() as session:
        for body in bodies:
            session.call("POST", "/api/v1/nodes", body)


def _usable(api: Api) -> set[str]:
    nodes = api.get("/api/v1/nodes")["items"]
    return {node["metadata"]["name"] for node in nodes if _is_usable(node)}


def _is_usable(node: Json) -> bool:
    conditions = node["status"].get("conditions") or ()
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    taints = node["spec"].get("taints") or ()
    return ready and not any(taint["key"].startswith(_SYSTEM_TAINTS) for taint in taints)
