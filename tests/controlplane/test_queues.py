"""Two teams share nodes by queues with quota: borrowing, waiting, and what kubectl shows."""

import re

from kube.objects import names
from tests.controlplane.plot import Plot, condition
from tests.controlplane.rayclusters import Json, gang, group


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
