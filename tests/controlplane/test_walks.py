"""The tutorials can be walked: each command does what its page says, and prints what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.nodes import NodeSpec, copies
from tests.controlplane.plot import LABEL, Plot
from tests.controlplane.site import equipped
from tests.controlplane.walk import QUEUES, comparable, files, steps, walk


@contextmanager
def left_clean(plot: Plot, queues: tuple[str, ...], namespaces: tuple[str, ...]) -> Iterator[None]:
    """Take away what the page made and the plot does not know."""
    try:
        yield
    finally:
        kubectl = plot.cluster.kubectl
        for each in namespaces:
            kubectl("delete", "rayclusters", "--all", "-n", each, "--wait=false")
            kubectl("delete", "namespace", each, "--ignore-not-found", "--wait=false")
        kubectl("label", "gangqueues", *queues, f"{LABEL}={plot.name}")


def test_the_tutorial_on_queues(plot: Plot, tmp_path: Path) -> None:
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=96, memory="768Gi", gpus=8), 16))
    site = equipped(plot.cluster, tmp_path / "site")
    queues = ("company", "research", "product", "students", "default")
    with left_clean(plot, queues, ("research", "product", "students", "sandbox")):
        assert walk(site, QUEUES, tmp_path) > 20


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
