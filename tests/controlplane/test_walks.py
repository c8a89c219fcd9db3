"""The tutorials can be walked: each command does what its page says, and prints what it shows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.muster import start_muster
from testbed.nodes import NodeSpec, copies
from testbed.options import Options
from testbed.pytest_plugin import MakeCluster
from tests.controlplane.plot import LABEL, Plot
from tests.controlplane.site import equipped
from tests.controlplane.walk import (
    KIND,
    LEFT_OUT,
    QUEUES,
    WALKED,
    comparable,
    files,
    reason_to_leave_out,
    steps,
    walk,
)
from tests.packaging.shell_blocks import fenced
from tests.packaging.tree import ROOT


@contextmanager
def left_clean(plot: Plot, namespaces: tuple[str, ...]) -> Iterator[None]:
    """Take away what the page made and the plot does not know."""
    try:
        yield
    finally:
        kubectl = plot.cluster.kubectl
        for each in namespaces:
            kubectl("delete", "rayclusters", "--all", "-n", each, "--wait=false")
            kubectl("delete", "namespace", each, "--ignore-not-found", "--wait=false")
        kubectl("label", "gangqueues", "--all", f"{LABEL}={plot.name}", "--overwrite")


def test_the_tutorial_on_queues(plot: Plot, tmp_path: Path) -> None:
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=96, memory="768Gi", gpus=8), 16))
    site = equipped(plot.cluster, tmp_path / "site")
    with left_clean(plot, ("research", "product", "students", "sandbox")):
        assert walk(site, QUEUES, tmp_path) > 20


def test_the_first_yaml_of_the_readme_starts_as_it_is(plot: Plot) -> None:
    plot.add_node(8)
    first = next(fenced(ROOT / "README.md", "yaml"))
    plot.cluster.kubectl("apply", "-n", plot.name, "-f", "-", input=first)
    plot.wait_running("train", 5)


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


@pytest.mark.long
def test_kind_in_ten_minutes(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """Its node by kwok, which also plays the pods of the installation; the programs run beside."""
    cluster = make_cluster(Options())
    cluster.add_nodes([NodeSpec("muster-control-plane", cpus=8, memory="16Gi")])
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")

    def start_programs() -> None:
        called = "validatingadmissionpolicies,mutatingwebhookconfigurations"
        cluster.kubectl("delete", called, "--all")  # as they were applied, they name a Service
        start_muster(cluster)

    installed = "kubectl -n muster-system wait deployment --all --for=condition=Available "
    then = {f"{installed}--timeout=5m": start_programs}
    assert walk(equipped(cluster, tmp_path / "site"), KIND, tmp_path, then) >= 10


def test_what_is_not_typed_is_marked_in_the_page() -> None:
    """By the words before its block, and nothing else is; each reason is one of some command."""
    parts = re.split(r"^```\n(\$ .*?)^```$", KIND.read_text(), flags=re.MULTILINE | re.DOTALL)
    for said, block in zip(parts[::2], parts[1::2], strict=False):
        typed = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        left_out = {bool(reason_to_leave_out(each)) for each in typed}
        assert left_out == {said.rstrip().endswith("(Needs Docker.)")}, block
    commands = [each.command for page in WALKED for each in steps(page)]
    assert all(any(each.startswith(start) for each in commands) for start in LEFT_OUT)


def test_a_walk_reads_files_commands_and_what_they_print(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```yaml\n# a.yaml\nkind: A\n```\n```yaml\nkind: B\n```\n"
        "```\n$ kubectl apply -f a.yaml\n$ kubectl get a\nNAME   AGE\na      5s\n```\n"
        "```text\n$ no command\n```\n"
    )
    assert files(page) == {"a.yaml": "kind: A\n"}
    first, second = steps(page)
    assert (first.command, first.printed) == ("kubectl apply -f a.yaml", ())
    assert (second.command, second.printed) == ("kubectl get a", ("NAME   AGE", "a      5s"))
    assert comparable(second.printed) == comparable(["NAME AGE", "a    2m13s"])
    assert comparable(["a 1/2 5s"]) != comparable(["a 2/2 5s"])
