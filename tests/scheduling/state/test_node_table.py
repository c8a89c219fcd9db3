"""The table of nodes and its snapshots."""

import sys
from functools import partial

import numpy as np
import pytest

from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.model.amounts import LIMIT
from scheduling.model.node import Node
from scheduling.model.shape.host_ports import WHOLE
from scheduling.state.node_snapshot import LABELS_BYTES, MASKS_BYTES, NodeAttributes, NodeSnapshot
from scheduling.state.node_table import NodeTable
from tests.builders import GPU, columns, node, shape


def cell(snapshot: NodeSnapshot, what: str, resource: str, name: str) -> int:
    matrix: np.ndarray = getattr(snapshot, what)
    return int(matrix[snapshot.row[resource], snapshot.index[name]])


def table(*names: str) -> NodeTable:
    made = NodeTable()
    for name in names:
        made.put_node(node(name, cpu=4))
    return made


def test_nodes_are_sorted_by_name_whatever_the_order_of_arrival() -> None:
    """Ties are broken by position, so position must not depend on arrival."""
    assert table("b", "c", "a").snapshot().names == ("a", "b", "c")


def test_what_is_used_is_subtracted_from_what_is_allocatable() -> None:
    """`free` follows `use` in both directions."""
    made = table("a")
    made.use("a", shape(cpu=3).requests, +1)
    assert cell(made.snapshot(), "free", "cpu", "a") == 1000
    made.use("a", shape(cpu=3).requests, -1)
    assert cell(made.snapshot(), "free", "cpu", "a") == 4000


def test_a_pod_on_an_unknown_node_counts_once_the_node_comes() -> None:
    """Pods and nodes come by different watches, in any order."""
    made = table("a")
    made.use("b", shape(cpu=1).requests, +1)
    made.put_node(node("b", cpu=4))
    assert cell(made.snapshot(), "used", "cpu", "b") == 1000


def test_a_node_that_comes_back_still_holds_its_pods() -> None:
    """Deleting the Node object does not end its pods."""
    made = table("a")
    made.use("a", shape(cpu=1).requests, +1)
    made.remove_node("a")
    assert made.snapshot().names == ()
    made.put_node(node("a", cpu=4))
    assert cell(made.snapshot(), "used", "cpu", "a") == 1000


def test_a_reused_slot_holds_nothing_of_the_node_before() -> None:
    """The slot of a removed node starts clean, in resources the new one lacks as well."""
    made = NodeTable()
    made.put_node(node("a", gpu=8))
    made.put_node(node("c", gpu=8))
    made.use("a", shape(gpu=3).requests, +1)
    made.remove_node("a")
    made.put_node(node("b", cpu=1))
    snapshot = made.snapshot()
    assert [cell(snapshot, what, GPU, "b") for what in ("allocatable", "used")] == [0, 0]


def test_a_resource_that_a_node_gets_becomes_a_row() -> None:
    """What pods used of it before is counted, on all nodes."""
    made = table("a", "b")
    made.use("a", [("example.com/fpga", 1)], +1)
    assert "example.com/fpga" not in made.snapshot().row
    made.put_node(Node("b", {}, (), False, {"example.com/fpga": 4}))
    snapshot = made.snapshot()
    assert [cell(snapshot, "free", "example.com/fpga", name) for name in "ab"] == [-1, 4]


def test_what_only_pods_name_makes_no_row() -> None:
    """Tenants invent names of resources, and a row is as long as there are nodes."""
    made = table("a", "b")
    before = made.snapshot().resources
    named = [(f"example.com/r{number:02}", 3) for number in range(40)]
    made.use("b", named, +1)
    made.use("c", named, +1)
    made.put_node(node("c", cpu=4))
    snapshot = made.snapshot()
    assert snapshot.resources == before
    assert not pods_per_node(tuple(named[:1]), snapshot.row, snapshot.free).any()


def test_nodes_may_have_more_resources_than_there_are_rows() -> None:
    """The arrays grow while a row is made, and what was used is written to the larger ones."""
    made = table("a", "b")
    named = [f"example.com/r{number:02}" for number in range(40)]
    made.use("b", [(resource, 3) for resource in named], +1)
    made.put_node(Node("a", {}, (), False, dict.fromkeys(named, 5)))
    made.use("b", [(resource, 1) for resource in named], +1)
    snapshot = made.snapshot()
    assert [cell(snapshot, "free", each, "b") for each in named] == [-4] * 40
    assert [cell(snapshot, "free", each, "a") for each in named] == [5] * 40


def test_ports_make_no_row_and_a_snapshot_of_them_never_changes() -> None:
    """Tenants invent ports too; which are taken where is kept by port and node."""
    made = table("a", "b")
    before = made.snapshot()
    port = [("hostPort:TCP:80", WHOLE)]
    made.use("a", port, +1)
    taken = made.snapshot()
    made.use("b", port, +1)
    made.use("gone", port, +1)
    made.use("a", port, -1)
    snapshot = made.snapshot()
    assert snapshot.resources == before.resources
    assert before.ports == {}
    assert taken.ports == {"hostPort:TCP:80": {"a": WHOLE}}
    assert snapshot.ports == made.view().ports == {"hostPort:TCP:80": {"b": WHOLE, "gone": WHOLE}}
    assert made.snapshot().ports is snapshot.ports
    for name in ("b", "gone"):
        made.use(name, port, -1)
    assert made.snapshot().ports == {}


def test_what_is_remembered_is_bounded() -> None:
    """Nodes may stay unchanged for weeks while gangs with ever new constraints pass."""
    traits = NodeAttributes(())
    for number in range(40):
        constraint = f"{number}" + "x" * (MASKS_BYTES // 20)
        assert traits.remembered(constraint, partial(int, number)) == number
        assert traits._remembered.taken <= MASKS_BYTES
    assert len(traits._remembered) > 10


def test_labels_asked_for_are_bounded() -> None:
    """Tenants invent the keys that their pods select by."""
    traits = table("a").snapshot().traits
    kept = traits.label("zone")
    assert traits.label("zone") is kept
    for number in range(40):
        assert traits.label(f"{number}" + "x" * (LABELS_BYTES // 20)).values == (None,)
    assert traits._labels.taken <= LABELS_BYTES + 4096
    assert len(traits._labels) > 10


def test_rows_go_with_the_last_node_that_has_the_resource() -> None:
    """And come back with the next, with all that is used of it by then."""
    made = table("a")
    made.put_node(node("b", extra={"example.com/x": 4}))
    made.put_node(node("c", extra={"example.com/x": 2}))
    made.use("b", [("example.com/x", 1)], +1)
    made.put_node(node("c"))
    assert "example.com/x" in made.snapshot().row
    made.remove_node("b")
    assert set(made.snapshot().row) == set(table("a").snapshot().row)
    made.put_node(node("b", extra={"example.com/x": 4}))
    assert cell(made.snapshot(), "free", "example.com/x", "b") == 3


def test_names_that_no_node_offers_leave_nothing_behind() -> None:
    """Pods that name a resource each take no more once they are gone; the others stay counted."""
    made = table("a")
    made.use("a", [("cpu", 2000)], +1)
    invented = [(f"example.com/{number}", 1) for number in range(10_000)]
    made.use("a", invented, +1)
    made.use("a", invented, -1)
    assert sys.getsizeof(made._used["a"]) < 1000
    assert cell(made.snapshot(), "used", "cpu", "a") == 2000
    assert set(made.snapshot().row) == set(table("a").snapshot().row)


def test_a_snapshot_never_changes() -> None:
    """What a cycle holds stays as it was, whatever comes in meanwhile."""
    made = table("a", "b")
    before = made.snapshot()
    made.use("a", shape(cpu=1).requests, +1)
    made.put_node(node("b", cpu=1))
    made.remove_node("a")
    assert before.names == ("a", "b")
    assert cell(before, "free", "cpu", "a") == cell(before, "free", "cpu", "b") == 4000


def test_the_same_snapshot_is_handed_out_while_nothing_changed() -> None:
    """An equal node and a node that was never known are no change."""
    made = table("a")
    before = made.snapshot()
    made.put_node(node("a", cpu=4))
    made.remove_node("x")
    made.use("unknown", shape(cpu=1).requests, +1)
    assert made.snapshot() is before


def test_a_view_follows_pods_and_cannot_be_written() -> None:
    """It is the arrays themselves: nothing is copied, and only the table writes."""
    made = table("b", "a")
    before = made.view()
    made.use("b", shape(cpu=1).requests, +1)
    assert made.view() is before
    assert [cell(before, "free", "cpu", name) for name in "ab"] == [4000, 3000]
    for matrix in (before.allocatable, before.used, before.free):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 1
    made.put_node(node("c", cpu=1))
    assert [cell(made.view(), "free", "cpu", name) for name in "abc"] == [4000, 3000, 1000]


def test_traits_are_shared_until_a_node_changes() -> None:
    """Masks survive the pods that come and go."""
    made = table("a")
    before = made.snapshot()
    made.use("a", shape(cpu=1).requests, +1)
    assert made.snapshot().traits is before.traits
    made.put_node(node("a", cpu=4, labels={"zone": "x"}))
    assert made.snapshot().traits is not before.traits


def test_absurd_amounts_are_cut_off_and_given_back_exactly() -> None:
    """Sums beyond 64 bits neither overflow a column nor lose a pod."""
    made = NodeTable()
    made.put_node(node("a", memory=2**63 - 1))
    for sign in (+1, +1, -1):
        made.use("a", [("memory", 2**63 - 1)], sign)
    assert cell(made.snapshot(), "used", "memory", "a") == LIMIT
    made.use("a", [("memory", 2**63 - 1)], -1)
    assert cell(made.snapshot(), "free", "memory", "a") == LIMIT


def test_a_node_may_leave_while_many_others_stay() -> None:
    """Growing and shrinking over the first size of the arrays keeps every column right."""
    names = [f"n{i:03}" for i in range(200)]
    made = table(*names)
    for name in names[::2]:
        made.remove_node(name)
    for name in names[1::2]:
        made.use(name, shape(cpu=1).requests, +1)
    snapshot = made.snapshot()
    assert snapshot.names == tuple(names[1::2])
    assert set(snapshot.free[snapshot.row["cpu"]]) == {3000}


@pytest.mark.parametrize("what", ["allocatable", "used", "free"])
def test_matrices_are_int64_with_contiguous_rows(what: str) -> None:
    """The count of a shape goes along rows."""
    matrix = getattr(columns(node("b"), node("a"), used={"a": {"cpu": 1}}), what)
    assert matrix.dtype == np.int64
    assert matrix.flags.c_contiguous


def test_no_nodes_are_a_valid_world() -> None:
    """The snapshot of an empty cluster is empty."""
    assert columns().names == ()
