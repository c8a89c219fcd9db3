"""A node comes out in the shape that was asked for, also from options and files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from testbed.cli import chosen_nodes
from testbed.errors import TestbedError
from testbed.nodes import (
    GPU,
    NodeSpec,
    copies,
    node_object,
    parse_label,
    parse_taint,
    read_node_file,
)

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def test_a_node_has_its_resources_and_is_ready() -> None:
    spec = NodeSpec("n", cpus=4, gpus=8, resources={"a.b/c": 2}, allocatable={"cpu": "3500m"})
    node = node_object(spec, NOW)
    status = node["status"]
    amounts = {
        "cpu": "4",
        "memory": "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "a.b/c": "2",
        GPU: "8",
    }
    assert status["capacity"] == amounts
    assert status["allocatable"] == {**amounts, "cpu": "3500m"}
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert [name for name, value in conditions.items() if value == "True"] == ["Ready"]
    assert status["conditions"][0]["lastHeartbeatTime"] == "2026-01-02T03:04:05Z"


def test_a_node_without_gpus_has_no_gpu_resource() -> None:
    assert GPU not in node_object(NodeSpec("n"), NOW)["status"]["capacity"]


def test_labels_may_replace_the_usual_ones() -> None:
    labels = {"kubernetes.io/arch": "arm64", "zone": "a"}
    found = node_object(NodeSpec("n", labels=labels), NOW)["metadata"]["labels"]
    assert labels.items() <= found.items()
    assert found["kubernetes.io/hostname"] == "n"


def test_copies_differ_by_name_only() -> None:
    assert copies(NodeSpec("n", gpus=1), 2) == [NodeSpec("n-0", gpus=1), NodeSpec("n-1", gpus=1)]


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("a=b:NoSchedule", {"key": "a", "value": "b", "effect": "NoSchedule"}),
        ("x.io/a:NoExecute", {"key": "x.io/a", "effect": "NoExecute"}),
    ],
)
def test_taints_are_read_as_kubectl_writes_them(text: str, taint: dict[str, str]) -> None:
    assert parse_taint(text) == taint


@pytest.mark.parametrize("text", ["", "a", "a=b", "a=b:Never", ":NoSchedule"])
def test_what_is_no_taint_is_refused(text: str) -> None:
    with pytest.raises(TestbedError, match="a taint is written"):
        parse_taint(text)


def test_labels_are_read() -> None:
    assert parse_label("a=b=c") == ("a", "b=c")
    with pytest.raises(TestbedError, match="a label is written"):
        parse_label("a")


FILE = """
- {name: gpu, count: 2, cpus: 96, memory: 768Gi, gpus: 8, taints: ["gpu=yes:NoSchedule"]}
- {name: odd, cpus: 3500m, labels: {zone: b}}
"""


def test_a_node_file_lists_any_shapes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(FILE)
    first, second, odd = read_node_file(path)
    assert (first.name, second.name, odd.name) == ("gpu-0", "gpu-1", "odd")
    assert second.gpus == 8
    assert odd.labels == {"zone": "b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b", "a list of nodes"),
        ("- a", "a node is a mapping"),
        ("- {name: a, gpu: 1}", "gpu"),
        ("- {cpus: 1}", "name"),
    ],
)
def test_a_wrong_node_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(TestbedError, match=message):
        read_node_file(path)


def test_a_few_nodes_come_without_being_asked_for() -> None:
    assert [spec.name for spec in chosen_nodes(NodeSpec("node"), None, None)] == [
        "node-0",
        "node-1",
    ]
    assert chosen_nodes(NodeSpec("node"), 0, None) == []


def test_a_node_file_takes_the_place_of_the_usual_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("- {name: only}")
    assert [spec.name for spec in chosen_nodes(NodeSpec("node"), None, path)] == ["only"]
    both = chosen_nodes(NodeSpec("node"), 1, path)
    assert [spec.name for spec in both] == ["node-0", "only"]


def test_a_wrong_taint_is_refused_before_anything_starts() -> None:
    with pytest.raises(TestbedError, match="a taint is written"):
        chosen_nodes(NodeSpec("node", taints=("a",)), 1, None)
