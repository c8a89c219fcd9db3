"""The node table against drawing everything anew."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduling.columns import Columns, NodeTable
from scheduling.model import Node
from tests.properties.strategies import AMOUNTS, nodes

PORTS = ("hostPort:TCP:80", "hostPort:UDP:53:10.0.0.1")
TAKEN = st.fixed_dictionaries({**{name: st.integers(0, 1) for name in PORTS}, "cpu": st.just(1)})
NAMES = st.sampled_from([f"n{at:02}" for at in range(12)])


def content(columns: Columns) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return what columns hold per node and resource, without what is zero all over."""
    matrices = (columns.allocatable, columns.used, columns.free)
    return {
        name: {
            resource: cells
            for resource, row in columns.row.items()
            if any(cells := tuple(int(matrix[row, at]) for matrix in matrices))
        }
        for name, at in columns.index.items()
    }


@given(nodes(), st.randoms())
def test_the_order_of_arrival_leaves_no_trace(on: list[Node], random: object) -> None:
    """Equal nodes give equal columns, position by position."""
    shuffled = list(on)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = Columns.of(on), Columns.of(shuffled)
    assert (one.names, one.resources) == (other.names, other.resources)
    assert one.free.tolist() == other.free.tolist()


class TableMachine(RuleBasedStateMachine):
    """Events in any order; the table must always equal one drawn from the facts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NodeTable()
        self.nodes: dict[str, Node] = {}
        self.used: dict[str, dict[str, int]] = {}
        self.bound: list[tuple[str, dict[str, int]]] = []
        self.asked: list[str] = []

    @rule(port=st.sampled_from(PORTS))
    def port_asked_for(self, port: str) -> None:
        self.asked.append(port)
        self.table.offer([(port, 1), ("cpu", 1)], +1)

    @rule(choice=st.integers(0, 99))
    def port_given_up(self, choice: int) -> None:
        if self.asked:
            self.table.offer([(self.asked.pop(choice % len(self.asked)), 1)], -1)

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

    @invariant()
    def equals_the_facts(self) -> None:
        used: dict[str, dict[str, int]] = {}
        for name, amounts in self.bound:
            sums = used.setdefault(name, {})
            for resource, amount in amounts.items():
                sums[resource] = sums.get(resource, 0) + amount
        drawn = Columns.of(self.nodes.values(), used, [(port, 1) for port in self.asked])
        assert content(self.table.snapshot()) == content(drawn)


TestTable = TableMachine.TestCase
