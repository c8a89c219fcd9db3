"""Disks that pods name themselves, counted like room."""

import pytest

from scheduling.columns import NodeTable
from scheduling.cycle import run_cycle
from scheduling.disks import Disk, disk_amounts
from scheduling.packing import is_device
from scheduling.verdict import Admitted, Refusal
from tests.builders import columns, gang, group, node, shape

WRITTEN, READ = Disk("iscsi iqn.x"), Disk("iscsi iqn.x", shared=True)


def test_a_pod_never_stands_in_its_own_way() -> None:
    [amount] = disk_amounts([READ, WRITTEN, READ]).values()
    assert disk_amounts([READ, READ]) == {"disk:iscsi iqn.x": 1}
    assert amount > 1


def test_a_disk_is_no_device() -> None:
    """Packing keeps GPUs free, not the images of Ceph, whose names have a slash."""
    assert not any(is_device(name) for name in disk_amounts([Disk("rbd m:6789 pool/image")]))


def test_who_writes_is_alone_on_its_node_and_readers_are_not() -> None:
    for disk, nodes in ((WRITTEN, [1, 1]), (READ, [2])):
        worker = shape(cpu=1, disks=[disk])
        drawn = columns(node("a"), node("b"), asked=[worker])
        [decision] = run_cycle([gang("g", group("w", 2, worker))], drawn)
        assert isinstance(decision.verdict, Admitted)
        assert [n for _, n in decision.verdict.placement.assignments[0].nodes] == nodes


def test_a_refusal_names_the_disk() -> None:
    worker = shape(cpu=1, disks=[WRITTEN])
    [decision] = run_cycle([gang("g", group("w", 2, worker))], columns(node("a"), asked=[worker]))
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.message == (
        '1 of 2 w fit: each needs disk "iscsi iqn.x" (VolumeRestrictions) on one node; '
        "0 more nodes have it free"
    )


def test_a_table_has_rows_for_disks_only_while_they_are_asked_for() -> None:
    table, asking = NodeTable(), shape(disks=[WRITTEN])
    table.put_node(node("a"))
    table.use("a", asking.requests, +1)
    assert "disk:iscsi iqn.x" not in table.snapshot().row
    table.offer(asking.requests, +1)
    drawn = table.snapshot()
    assert drawn.free[drawn.row["disk:iscsi iqn.x"]].tolist() == [0]


def test_beyond_so_many_rows_the_next_disk_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who names thousands of disks must not fill the memory of all; the rest still has its turn."""
    monkeypatch.setattr("scheduling.columns.EXCLUSIVE_ROWS", 2)
    table = NodeTable()
    table.put_node(node("a"))
    table.use("a", disk_amounts([Disk("iscsi c")]).items(), +1)
    asked = {name: disk_amounts([Disk(f"iscsi {name}")]).items() for name in "abcd"}

    def rows() -> dict[str, int]:
        drawn = table.snapshot()
        return {
            name.removeprefix("disk:iscsi "): int(drawn.free[at, 0] > 0)
            for name, at in drawn.row.items()
            if name.startswith("disk:")
        }

    for each in asked.values():
        table.offer(each, +1)
    assert rows() == {"a": 1, "b": 1}
    table.offer(asked["b"], +1)
    table.offer(asked["b"], -1)
    assert rows() == {"a": 1, "b": 1}
    table.offer(asked["a"], -1)
    assert rows() == {"b": 1, "c": 0}
    table.offer(asked["d"], -1)
    table.offer(asked["b"], -1)
    assert rows() == {"c": 0}
    table.offer(asked["d"], +1)
    assert rows() == {"c": 0, "d": 1}
