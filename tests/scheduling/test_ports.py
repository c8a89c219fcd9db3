"""Host ports, counted like room."""

import pytest

from scheduling.columns import NodeTable
from scheduling.cycle import run_cycle
from scheduling.fit import count_fit
from scheduling.packing import is_device
from scheduling.ports import WHOLE, HostPort, port_amounts
from scheduling.verdict import Admitted, Reason, Refusal
from tests.builders import columns, gang, group, node, shape

ALL = ("", "TCP", 8080)
ONE = ("10.0.0.1", "TCP", 8080)
OTHER = ("10.0.0.2", "TCP", 8080)


def fits_beside(wanted: HostPort, *held: HostPort) -> bool:
    asking = shape(ports=[wanted])
    used = {"n": {**port_amounts(held), "pods": 1}}
    return bool(count_fit(asking, columns(node("n"), used=used, asked=[asking]))[0])


@pytest.mark.parametrize(
    ("wanted", "held", "fits"),
    [
        (ALL, ALL, False),
        (ALL, ONE, False),
        (ONE, ALL, False),
        (ONE, ONE, False),
        (ONE, OTHER, True),
        (("0.0.0.0", "TCP", 8080), ("", "", 8080), False),
        (ALL, ("", "UDP", 8080), True),
        (ALL, ("", "TCP", 8081), True),
        (("::", "TCP", 8080), ONE, True),  # only 0.0.0.0 means all addresses
    ],
)
def test_which_ports_get_in_each_others_way(wanted: HostPort, held: HostPort, fits: bool) -> None:
    """The rule of plugin NodePorts."""
    assert fits_beside(wanted, held) is fits


def test_a_pod_may_name_a_port_twice() -> None:
    """Two containers of one pod do not stand in each other's way for the scheduler."""
    assert port_amounts([ALL, ALL, ONE]) == {
        "hostPort:TCP:8080": WHOLE,
        "hostPort:TCP:8080:10.0.0.1": 1,
    }


def test_a_port_is_no_device() -> None:
    """Packing keeps GPUs free, not ports."""
    assert not any(is_device(name) for name in port_amounts([ALL, ONE]))


def test_a_gang_takes_one_node_per_pod_with_the_same_port() -> None:
    """Within the gang the rule holds as well."""
    worker = shape(cpu=1, ports=[ALL])
    nodes = [node(name) for name in "abc"]
    [decision] = run_cycle([gang("g", group("w", 3, worker))], columns(*nodes, asked=[worker]))
    assert isinstance(decision.verdict, Admitted)
    assert [n for _, n in decision.verdict.placement.assignments[0].nodes] == [1, 1, 1]


def test_a_refusal_names_the_port() -> None:
    """Not the amounts that stand for it."""
    worker = shape(cpu=1, ports=[ALL])
    drawn = columns(node("a"), node("b"), asked=[worker])
    [decision] = run_cycle([gang("g", group("w", 3, worker))], drawn)
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.reason is Reason.INSUFFICIENT_RESOURCES
    assert decision.verdict.message == (
        "2 of 3 w fit: each needs host port 8080/TCP on one node; 0 more nodes have it free"
    )


def test_a_refusal_names_the_address() -> None:
    """A port of one address is another than that of all."""
    worker = shape(ports=[ONE])
    drawn = columns(node("a", pods=9), asked=[worker])
    [decision] = run_cycle([gang("g", group("w", 2, worker))], drawn)
    assert isinstance(decision.verdict, Refusal)
    assert "needs host port 8080/TCP on 10.0.0.1 on one node" in decision.verdict.message


def test_two_gangs_of_one_cycle_do_not_share_a_port() -> None:
    """What the first was given is gone for the second."""
    worker = shape(ports=[ALL])
    gangs = [gang(name, group("w", 1, worker)) for name in "xy"]
    one, other = run_cycle(gangs, columns(node("a"), asked=[worker]))
    assert isinstance(one.verdict, Admitted)
    assert isinstance(other.verdict, Refusal)


def test_a_table_has_rows_for_ports_only_while_they_are_asked_for() -> None:
    """Every node-local service has a port; that must cost nobody anything."""
    table, asking = NodeTable(), shape(ports=[ALL])
    table.put_node(node("a"))
    table.use("a", asking.requests, +1)
    assert "hostPort:TCP:8080" not in table.snapshot().row
    table.offer(asking.requests, +1)
    table.offer(asking.requests, +1)
    table.put_node(node("b"))
    table.offer(asking.requests, -1)
    assert count_fit(asking, table.snapshot()).tolist() == [0, 1]
    table.offer(asking.requests, -1)
    assert "hostPort:TCP:8080" not in table.snapshot().row


def test_a_row_that_was_given_back_is_empty_for_the_next() -> None:
    """Rows are used again."""
    table, asking = NodeTable(), shape(ports=[ALL])
    table.put_node(node("a"))
    table.offer(asking.requests, +1)
    table.use("a", asking.requests, +1)
    table.offer(asking.requests, -1)
    table.put_node(node("b", extra={"example.com/nic": 1}))
    drawn = table.snapshot()
    assert drawn.free[drawn.row["example.com/nic"]].tolist() == [0, 1]
