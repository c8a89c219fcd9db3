"""Host ports, counted like any other resource."""

import pytest

from scheduling.cycle import next_cycle, run_cycle
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import is_device
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import WHOLE, HostPort, port_amounts
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.placement.independent import count_fit
from scheduling.queueing.queues import one_queue
from scheduling.state.node_table import NodeTable
from tests.builders import columns, gang, group, node, shape

ALL = ("", "TCP", 8080)
ONE = ("10.0.0.1", "TCP", 8080)
OTHER = ("10.0.0.2", "TCP", 8080)


def fits_beside(wanted: HostPort, *held: HostPort) -> bool:
    asking = shape(ports=[wanted])
    used = {"n": {**port_amounts(held), "pods": 1}}
    return bool(count_fit(asking, columns(node("n"), used=used))[0])


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
    """Two containers of one pod do not conflict for the scheduler."""
    assert port_amounts([ALL, ALL, ONE]) == {
        "hostPort:TCP:8080": WHOLE,
        "hostPort:TCP:8080:10.0.0.1": 1,
    }


class Compared(str):
    """A name that counts how often it is compared with another one."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str(self) == other

    __hash__ = str.__hash__


def test_what_is_no_port_is_told_without_comparing_each_with_each() -> None:
    """A pod may be written with thousands of ports."""
    ports = [(Compared(f"hostPort:TCP:{port}"), WHOLE) for port in range(1_000)]
    asking = PodShape((("cpu", 1_000), *ports, ("pods", 1)))
    assert asking.counted == (("cpu", 1_000), ("pods", 1))
    assert Compared.times <= len(ports)


def test_a_port_is_no_device() -> None:
    """Packing keeps GPUs free, not ports."""
    assert not any(is_device(name) for name in port_amounts([ALL, ONE]))


def test_a_gang_takes_one_node_per_pod_with_the_same_port() -> None:
    """Within the gang the rule holds as well."""
    worker = shape(cpu=1, ports=[ALL])
    nodes = [node(name) for name in "abc"]
    [decision] = run_cycle([gang("g", group("w", 3, worker))], columns(*nodes))
    assert isinstance(decision.verdict, Admitted)
    assert [n for _, n in decision.verdict.placement.assignments[0].nodes] == [1, 1, 1]


def test_a_refusal_names_the_port() -> None:
    """Not the amounts that it is counted by."""
    worker = shape(cpu=1, ports=[ALL])
    nodes = columns(node("a"), node("b"))
    [decision] = run_cycle([gang("g", group("w", 3, worker))], nodes)
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.reason is Reason.INSUFFICIENT_RESOURCES
    assert decision.verdict.message == (
        "2 of 3 w fit: each needs host port 8080/TCP on one node; 0 more nodes have it free"
    )


def test_a_refusal_names_the_address() -> None:
    """A port of one address is another than that of all."""
    worker = shape(ports=[ONE])
    nodes = columns(node("a", pods=9))
    [decision] = run_cycle([gang("g", group("w", 2, worker))], nodes)
    assert isinstance(decision.verdict, Refusal)
    assert "needs host port 8080/TCP on 10.0.0.1 on one node" in decision.verdict.message


def test_two_gangs_of_one_cycle_do_not_share_a_port() -> None:
    """What the first was given is gone for the second."""
    worker = shape(ports=[ALL])
    gangs = [gang(name, group("w", 1, worker)) for name in "xy"]
    one, other = run_cycle(gangs, columns(node("a")))
    assert isinstance(one.verdict, Admitted)
    assert isinstance(other.verdict, Refusal)


def test_ports_of_waiting_gangs_cost_no_other_gang_its_own() -> None:
    """Whatever and however many they ask for, and whichever comes first."""
    table = NodeTable()
    table.put_node(node("a", cpu=4))
    crowd = [
        gang(f"crowd{at}", group("w", 1, shape(cpu=9, ports=ports_from(1000 * at, 42))), created=at)
        for at in range(1, 5)
    ]
    modest = gang("modest", group("w", 1, shape(cpu=1, ports=[ALL])), created=9)
    *others, one = run_cycle([*crowd, modest], table.snapshot())
    assert all(isinstance(each.verdict, Refusal) for each in others)
    assert isinstance(one.verdict, Admitted)


def ports_from(first: int, count: int) -> list[HostPort]:
    return [("", "TCP", first + at) for at in range(count)]


@pytest.mark.parametrize("count", [64, 65])
def test_a_gang_asks_for_so_many_ports_at_most(count: int) -> None:
    """Each of several kinds of pods costs a look at each port, so that is bounded for the gang."""
    one, other = (shape(ports=ports_from(first, count)) for first in (1, 101))
    asked = gang("g", group("x", 1, one), group("y", 1, other))
    [decision] = run_cycle([asked], columns(node("a")))
    if count == 64:
        assert isinstance(decision.verdict, Admitted)
    else:
        assert isinstance(decision.verdict, Refusal)
        assert decision.verdict.reason is Reason.UNSUPPORTED
        assert decision.verdict.message == (
            "not supported by Muster; 130 host ports in all kinds of its pods, more than 128 "
            "(use fewer)"
        )


def test_a_port_that_comes_free_ends_a_refusal_though_the_node_holds_no_more() -> None:
    """One pod goes and another comes that takes as much, but for the port."""
    table, asking = NodeTable(), gang("g", group("w", 1, shape(cpu=1, ports=[ALL])))
    table.put_node(node("a", cpu=2))
    table.use("a", shape(cpu=1, ports=[ALL]).requests, +1)
    [before], memory = next_cycle(one_queue([asking]), table.snapshot(), None)
    assert isinstance(before.verdict, Refusal)
    table.use("a", shape(cpu=1, ports=[ALL]).requests, -1)
    table.use("a", shape(cpu=1).requests, +1)
    [after], _ = next_cycle(one_queue([asking]), table.snapshot(), memory)
    assert isinstance(after.verdict, Admitted)


def test_a_port_that_is_taken_counts_though_the_node_holds_no_less() -> None:
    """What a room knew of the node before is brought up to date."""
    table, asking = NodeTable(), shape(cpu=1, ports=[ALL])
    table.put_node(node("a", cpu=2))
    table.use("a", shape(cpu=1).requests, +1)
    room = FreeCapacity.of(table.snapshot())
    assert room.counts(asking).tolist() == [1]
    table.use("a", shape(cpu=1).requests, -1)
    table.use("a", shape(cpu=1, ports=[ALL]).requests, +1)
    assert room.moved_to(table.snapshot()).counts(asking).tolist() == [0]
