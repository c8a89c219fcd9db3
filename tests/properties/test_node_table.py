"""The node table, kept from events, against a table made anew."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduling.cycle import run_cycle
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.node_ports import left
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import LOWEST_PRIORITY
from scheduling.model.verdict import Admitted
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable, node_snapshot_of
from tests.properties.strategies import AMOUNTS, USED, groups, nodes

PORTS = ("hostPort:TCP:80", "hostPort:UDP:53:10.0.0.1")
TAKEN = st.fixed_dictionaries({**{name: st.integers(0, 1) for name in PORTS}, "cpu": st.just(1)})
HUGE = st.just({"cpu": 2**62})
PRIORITIES = st.integers(0, 2)
INVENTED = ("example.com/a", "example.com/b")  # only native resources may have bare names
NAMES = st.sampled_from([f"n{at:02}" for at in range(12)])


def content(columns: NodeSnapshot) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return what columns hold per node and resource, without zeros."""
    matrices = (columns.allocatable, columns.used, columns.free)
    return {
        name: {
            resource: cells
            for resource, row in columns.row.items()
            if any(cells := tuple(int(matrix[row, at]) for matrix in matrices))
        }
        | {port: (on[name],) for port, on in columns.ports.items() if name in on}
        for name, at in columns.index.items()
    }


@given(nodes(), st.randoms())
def test_the_order_of_arrival_leaves_no_trace(on: list[Node], random: object) -> None:
    """Equal nodes give equal columns, position by position."""
    shuffled = list(on)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = node_snapshot_of(on), node_snapshot_of(shuffled)
    assert (one.names, one.resources) == (other.names, other.resources)
    assert one.free.tolist() == other.free.tolist()


@given(groups(), nodes(plain=True), USED, st.sampled_from(INVENTED), st.integers(0, 2))
def test_rows_for_what_no_node_has_change_no_decision(
    wanted: list[Group], on: list[Node], used: dict[str, dict[str, int]], name: str, asked: int
) -> None:
    """A gang is placed, or refused in the same words, whether such rows are there or not."""
    used = {node: {**amounts, **dict.fromkeys(INVENTED, 2)} for node, amounts in used.items()}
    if asked:
        first = wanted[0].shape
        requests = tuple(sorted({**dict(first.requests), name: asked}.items()))
        wanted[0] = replace(wanted[0], shape=replace(first, own_requests=requests))
    without, with_rows = NodeTable(), NodeTable()
    none = dict.fromkeys(INVENTED, 0)
    for node in on:
        without.put_node(node)
        with_rows.put_node(replace(node, allocatable={**node.allocatable, **none}))
    for table in (without, with_rows):
        for at, amounts in used.items():
            table.use(at, amounts.items(), +1)
    assert not set(INVENTED) & set(without.snapshot().row)
    assert not on or set(INVENTED) <= set(with_rows.snapshot().row)
    gang = PendingGang(GangKey("team", "a"), 0, 0.0, tuple(wanted), ())
    one, other = (run_cycle([gang], table.snapshot())[0] for table in (without, with_rows))
    assert one == other
    assert not (asked and isinstance(one.verdict, Admitted))


class TableMachine(RuleBasedStateMachine):
    """Events in any order; the table must always equal one made from the facts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NodeTable()
        self.nodes: dict[str, Node] = {}
        self.used: dict[str, dict[str, int]] = {}
        self.bound: list[tuple[str, dict[str, int]]] = []
        self.nominated: list[tuple[str, dict[str, int], int]] = []
        self.snapshots: list[tuple[NodeSnapshot, str]] = []

    @rule()
    def somebody_looks(self) -> None:
        snapshot = self.table.snapshot()
        self.snapshots.append((snapshot, repr(content(snapshot))))

    @rule(name=NAMES, allocatable=AMOUNTS)
    def node_seen(self, name: str, allocatable: dict[str, int]) -> None:
        self.nodes[name] = Node(name, {}, (), False, allocatable)
        self.table.put_node(self.nodes[name])

    @rule(name=NAMES)
    def node_gone(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.table.remove_node(name)

    @rule(name=NAMES, amounts=AMOUNTS | TAKEN)
    def pod_bound(self, name: str, amounts: dict[str, int]) -> None:
        self.bound.append((name, amounts))
        self.table.use(name, amounts.items(), +1)

    @rule(choice=st.integers(0, 99))
    def pod_gone(self, choice: int) -> None:
        if self.bound:
            name, amounts = self.bound.pop(choice % len(self.bound))
            self.table.use(name, amounts.items(), -1)

    @rule(name=NAMES, amounts=AMOUNTS | TAKEN | HUGE, priority=PRIORITIES)
    def pod_nominated(self, name: str, amounts: dict[str, int], priority: int) -> None:
        self.nominated.append((name, amounts, priority))
        self.table.use(name, amounts.items(), +1)
        self.table.nominate(name, amounts.items(), priority, +1)

    @rule(choice=st.integers(0, 99))
    def nomination_gone(self, choice: int) -> None:
        if self.nominated:
            name, amounts, priority = self.nominated.pop(choice % len(self.nominated))
            self.table.use(name, amounts.items(), -1)
            self.table.nominate(name, amounts.items(), priority, -1)

    def snapshot(self, priority: int) -> NodeSnapshot:
        """The nodes as a pod of this priority finds them."""
        used: dict[str, dict[str, int]] = {}
        ahead = [(name, amounts) for name, amounts, of in self.nominated if of >= priority]
        for name, amounts in (*self.bound, *ahead):
            sums = used.setdefault(name, {})
            for resource, amount in amounts.items():
                sums[resource] = sums.get(resource, 0) + amount
        return node_snapshot_of(self.nodes.values(), used)

    @invariant()
    def equals_the_facts(self) -> None:
        facts = content(self.snapshot(LOWEST_PRIORITY))
        assert content(self.table.snapshot()) == content(self.table.view()) == facts

    @invariant()
    def a_snapshot_stays_what_it_was(self) -> None:
        assert all(repr(content(snapshot)) == told for snapshot, told in self.snapshots)

    @invariant()
    def a_nomination_is_in_the_way_of_no_higher_priority(self) -> None:
        columns = self.table.snapshot()
        room = FreeCapacity.of(columns)
        for priority in (2, 0, 1, 3, LOWEST_PRIORITY):  # there and back again
            room, snapshot = room.for_priority(priority), self.snapshot(priority)
            assert set(snapshot.row) <= set(columns.row)
            for resource, row in snapshot.row.items():
                assert room.free[columns.row[resource]].tolist() == snapshot.free[row].tolist()
            for port in PORTS:
                free = room.left(port)
                assert free is not None
                assert free.tolist() == left(port, snapshot.ports, snapshot.index).tolist()


TestTable = TableMachine.TestCase


KINDS = ({"cpu": 8, "a": 1}, {"cpu": 8, "b": 2}, {"cpu": 8, "c": 3, "d": 4}, {"cpu": 8})
COMES = st.tuples(NAMES, st.sampled_from([*KINDS, None]))


@given(st.lists(COMES, max_size=8), st.lists(COMES, max_size=8))
def test_nodes_of_several_kinds_that_come_and_go_between_two_looks_share_no_row(
    before: list[tuple[str, dict[str, int] | None]], after: list[tuple[str, dict[str, int] | None]]
) -> None:
    """A row that the last node of a kind left is given to the next new resource, and to one."""
    table, known = NodeTable(), dict[str, Node]()
    for batch in (before, after):
        for name, offers in batch:
            if offers is None:
                table.remove_node(name)
                known.pop(name, None)
            else:
                known[name] = Node(name, {}, (), unschedulable=False, allocatable=offers)
                table.put_node(known[name])
        assert content(table.snapshot()) == content(node_snapshot_of(list(known.values())))
