"""kubectl shows phase, queue, position, readiness and reason of gangs."""

import re

import pytest

from kube.objects import names
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, head

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


def waiting_gang(name: str, priority_class: str) -> Json:
    workers = group(replicas=4, priorityClassName=priority_class)
    return gang(name, workers, head_group=head(priorityClassName=priority_class))


@pytest.mark.variant
def test_positions_of_waiting_gangs_go_by_priority_then_age(plot: Plot) -> None:
    """The pods' priority decides, or a lower annotation; of equals the older stands first.

    Each position is read when its gang is first told: numbers that merely move are written later.
    Of those of one second the first by name stands first.
    """
    low, high = plot.add_priority_class("low", 10_000), plot.add_priority_class("high", 20_000)
    plot.add_node(2)
    lowered = waiting_gang("low-by-mark", high)
    lowered["metadata"]["annotations"] = {names.PRIORITY_CLASS: low}
    gangs = [waiting_gang("low-again", low), waiting_gang("high", high), lowered]
    gangs.append(waiting_gang("low-second", low))
    positions = {}
    for each in gangs:
        name = plot.create(each)["metadata"]["name"]
        positions[name] = plot.wait_phase(name, "Queued", "NeverFits")["position"]
    assert positions == {"low-again": 1, "high": 1, "low-by-mark": 3, "low-second": 4}
    priorities = {name: found["spec"]["priority"] for name, found in plot.gangs().items()}
    assert priorities == {
        "low-again": 10_000,
        "high": 20_000,
        "low-by-mark": 10_000,
        "low-second": 10_000,
    }


@pytest.mark.variant
def test_the_gang_of_higher_priority_starts_first_when_room_comes(plot: Plot) -> None:
    """The order is not only printed."""
    high = plot.add_priority_class("high", 20_000)
    plot.add_node(1)
    plot.create(gang("older", group(replicas=2)))
    plot.wait_phase("older", "Queued")
    workers = group(replicas=2, priorityClassName=high)
    plot.create(gang("higher", workers, head_group=head(priorityClassName=high)))
    plot.wait_phase("higher", "Queued")
    plot.add_equal_nodes(1, cpus=3)
    plot.wait_running("higher", 3)
    assert plot.bound("older") == {}
