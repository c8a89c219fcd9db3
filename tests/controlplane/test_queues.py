"""Two teams share nodes by queues with quota: borrowing, waiting, and what kubectl shows."""

import json
import re
from pathlib import Path

import pytest

from kube.objects import names
from testbed.errors import TestbedError
from testbed.waiting import wait_until
from tests.controlplane.plot import QUEUES, Plot, condition
from tests.controlplane.rayclusters import Json, gang, group

pytestmark = pytest.mark.versions


def in_queue(plot: Plot, queue: str, name: str, workers: int) -> Json:
    """A gang of 1 CPU for its head and for each worker, in a queue of the plot."""
    labels = {names.QUEUE: plot.queue(queue)}
    return gang(name, group(replicas=workers), labels=labels)


def printed(plot: Plot, queue: str, column: str) -> str:
    """A cell of what `kubectl get gq` prints, without the plot's name."""
    header, row = plot.cluster.kubectl("get", "gq", plot.queue(queue)).splitlines()
    starts = {found.group(): found.start() for found in re.finditer(r"\S+", header)}
    ends = sorted([*starts.values(), len(row) + 1])
    cell = row[starts[column] : ends[ends.index(starts[column]) + 1]]
    return cell.strip().removeprefix(f"{plot.name}-")


def wait_printed(plot: Plot, queue: str, **cells: str) -> None:
    """Wait until `kubectl get gq` prints these cells, by column."""

    def shown() -> bool:
        return all(printed(plot, queue, column) == said for column, said in cells.items())

    plot.wait(shown, f"kubectl get gq {queue} to print {cells}")


def test_teams_borrow_wait_for_quota_and_see_it(plot: Plot) -> None:
    """The quota decides, not the nodes: they have room for all of it."""
    plot.add_node(100)
    plot.add_queue("all")
    for team in ("red", "blue"):
        plot.add_queue(team, parent=plot.queue("all"), quota={"cpu": "4"})
    plot.create(in_queue(plot, "red", "borrows", 5))
    plot.wait_running("borrows", 6)
    wait_printed(plot, "red", USAGE="cpu 6/4", PENDING="0", ADMITTED="1", ACTIVE="True")

    plot.create(in_queue(plot, "blue", "waits", 3))
    status = plot.wait_phase("waits", "Queued", "QuotaExceeded")
    blue = plot.queue("blue")
    said = f"queue {blue} uses 0 of its quota of 4 cpu and may take 2 more, and the gang needs 4"
    assert status["message"] == said
    assert condition(status, "QuotaReserved")["status"] == "False"
    wait_printed(plot, "blue", PARENT="all", USAGE="cpu 0/4", PENDING="1", ADMITTED="0")
    wait_printed(plot, "all", USAGE="cpu 6/8", PENDING="0", ADMITTED="0", ACTIVE="True")

    plot.delete_queue("red")
    wait_printed(plot, "red", ACTIVE="False", ADMITTED="1")
    assert plot.bound("borrows", "head")
    plot.delete_whole("borrows")
    plot.wait_no_queue("red")
    plot.wait_running("waits", 4)
    wait_printed(plot, "blue", USAGE="cpu 4/4", PENDING="0", ADMITTED="1")


def deletion(plot: Plot, *queues: str) -> str:
    """What kubectl says to a deletion; empty where it is taken."""
    return said_by_kubectl(plot, "gangqueue", *map(plot.queue, queues))


def tried(plot: Plot, queue: str) -> str:
    """What kubectl says to a deletion that is only tried: one that is taken would be for good."""
    return said_by_kubectl(plot, "--dry-run=server", "gangqueue", plot.queue(queue))


def said_by_kubectl(plot: Plot, *arguments: str) -> str:
    try:
        plot.cluster.kubectl("delete", "--wait=false", *arguments)
    except TestbedError as error:
        return str(error)
    return ""


def take_back(plot: Plot, queue: str, folder: Path) -> None:
    """As docs/queues-reference.md has it."""
    kept, name = folder / "queue.yaml", plot.queue(queue)
    kept.write_text(plot.cluster.kubectl("get", "gangqueue", name, "-o", "yaml"))
    let_go = '{"metadata": {"finalizers": null}}'
    plot.cluster.kubectl("patch", "gangqueue", name, "--type=merge", "-p", let_go)
    plot.cluster.kubectl("create", "-f", str(kept))


@pytest.mark.variant
def test_what_a_namespace_used_is_in_the_status_of_a_queue_with_fair_sharing(plot: Plot) -> None:
    plot.add_node(10)
    plot.add_queue("fair", quota={"cpu": "8"}, fairSharing={"weight": 2})
    plot.create(in_queue(plot, "fair", "runs", 3))
    plot.wait_running("runs", 4)

    def share() -> float:
        """Of the namespace, in percent; 0 while nothing is said."""
        found = plot.queue_status("fair").get("fairShare", {}).get("namespaces", ())
        return sum(float(each["share"].rstrip("%")) for each in found if each["name"] == plot.name)

    plot.wait(lambda: share() >= 3.3, "half of the quota to count for 6.7 % of it at once")
    assert share() < 4, "and for more only over days"
    plot.change_queue("fair", fairSharing=None)
    plot.wait(lambda: "fairShare" not in plot.queue_status("fair"), "the usage to be forgotten")


def test_a_queue_in_use_is_not_deleted_by_a_slip(plot: Plot, tmp_path: Path) -> None:
    plot.add_node(4)
    plot.add_queue("top")
    plot.add_queue("leaf", parent=plot.queue("top"), quota={"cpu": 2})
    top, leaf = plot.queue("top"), plot.queue("leaf")
    below = f"GangQueue {top} may not be deleted: it is the parent of GangQueue {leaf};"
    wait_until(lambda: below in tried(plot, "top"), "the policy to know the queues")
    assert below in deletion(plot, "top")
    plot.create(in_queue(plot, "leaf", "runs", 1))
    plot.create(in_queue(plot, "leaf", "waits", 1))
    wait_printed(plot, "leaf", ADMITTED="1", PENDING="1")
    said = deletion(plot, "leaf")
    assert "may not be deleted: gangs that hold its quota: 1, gangs that wait in it: 1;" in said
    anyway = "muster.dev/allow-deletion=true"
    assert f"kubectl annotate gangqueue {leaf} {anyway}" in said
    plot.cluster.kubectl("annotate", "gangqueue", leaf, anyway)
    assert deletion(plot, "leaf") == ""
    wait_printed(plot, "leaf", ACTIVE="False", ADMITTED="1")
    take_back(plot, "leaf", tmp_path)
    wait_printed(plot, "leaf", USAGE="cpu 2/2", ACTIVE="True", ADMITTED="1", PENDING="1")
    assert deletion(plot, "leaf") == ""
    # What ends counts no more, nor is its deletion refused that is under way.
    assert deletion(plot, "leaf") == ""
    wait_until(lambda: deletion(plot, "top") == "", "the queue without others below it to go")
    plot.wait_no_queue("top")


@pytest.mark.variant
def test_a_whole_tree_goes_by_a_second_call(plot: Plot, tmp_path: Path) -> None:
    """The first one stops at the parent, and takes those below it."""
    plot.add_queue("top")
    plot.add_queue("leaf", parent=plot.queue("top"))
    wait_until(lambda: "is the parent of" in tried(plot, "top"), "the policy to know the queues")
    tree = tmp_path / "tree.yaml"
    names_ = [plot.queue("top"), plot.queue("leaf")]
    found = [plot.cluster.api.get(f"{QUEUES}/{each}") for each in names_]
    tree.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
    assert "run it again" in said_by_kubectl(plot, "-f", str(tree))
    plot.wait_no_queue("leaf")
    wait_until(lambda: deletion(plot, "top") == "", "the queue without others below it to go")
    plot.wait_no_queue("top")
