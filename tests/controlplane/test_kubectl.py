"""kubectl shows phase, queue, position, readiness and reason of gangs."""

import re

from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import gang, group

Rows = dict[str, dict[str, str]]


def printed(plot: Plot) -> Rows:
    """What `kubectl get gangs` prints: rows by name, cells by column."""
    header, *rows = plot.cluster.kubectl("get", "gangs", "-n", plot.name).splitlines()
    columns = [(found.group(), found.start()) for found in re.finditer(r"\S+", header)]
    ends = [*(start for _, start in columns[1:]), None]
    cells = [
        {name: row[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}
        for row in rows
    ]
    return {each["NAME"]: each for each in cells}


def test_get_gangs_prints_phase_queue_position_ready_of_total_and_reason(plot: Plot) -> None:
    """One line says where a gang is and why."""
    plot.add_node(3)
    plot.create(gang("runs", group(replicas=2)))
    plot.wait_running("runs", 3)
    plot.create(gang("waits", group(replicas=1)))
    plot.wait_phase("waits", "Queued", "InsufficientResources")
    plot.wait(lambda: plot.status("runs")["ready"] == "3/3", "all to be counted as ready")
    position, rows = plot.wait(lambda: printed_with_position(plot, "waits"), "a moment's rest")
    for row in rows.values():
        assert re.fullmatch(r"([0-9]+[smh])+", row.pop("AGE"))
    assert rows == {
        "runs": row_of("runs", "Running", "", "3/3", "Running"),
        "waits": row_of("waits", "Queued", position, "0/2", "InsufficientResources"),
    }


def printed_with_position(plot: Plot, name: str) -> tuple[str, Rows] | None:
    """The rows with a gang's position at that time, which gangs of earlier plots that go move."""
    position, rows = plot.status(name)["position"], printed(plot)
    return (str(position), rows) if plot.status(name)["position"] == position else None


def row_of(name: str, phase: str, position: str, ready: str, reason: str) -> dict[str, str]:
    cells = (name, phase, "default", position, ready, reason)
    return dict(zip(("NAME", "PHASE", "QUEUE", "POSITION", "READY", "REASON"), cells, strict=True))


def test_the_wide_form_adds_the_message_in_numbers(plot: Plot) -> None:
    """Enough to act on: what is needed, what is free, where."""
    plot.add_node(5)
    plot.create(gang("runs", group(replicas=1)))
    plot.wait_running("runs", 2)
    plot.create(gang("waits", group(replicas=4)))
    plot.wait_phase("waits", "Queued", "InsufficientResources")
    wide = plot.cluster.kubectl("get", "gangs", "-n", plot.name, "-o", "wide")
    said = "2 of 4 workers fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; "
    assert f"{said}3 are free, and those that fit leave 0. 2 of 5 cpu are held by" in wide
    plot.mark("waits", min_replicas="workers=2")
    plot.wait_phase("waits", "Running")
