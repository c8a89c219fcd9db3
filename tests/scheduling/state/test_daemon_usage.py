"""What pods of DaemonSets use on each node."""

from scheduling.model.amounts import LIMIT
from scheduling.state.daemon_usage import DaemonUsage
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import columns, node

NODES = columns(node("a", cpu=4), node("b", cpu=4))


def cpu(usage: DaemonUsage, nodes: NodeSnapshot = NODES) -> list[int]:
    return [int(each) for each in usage.on(nodes)[nodes.row["cpu"]]]


def test_pods_add_up_on_their_node() -> None:
    usage = DaemonUsage()
    usage.use("a", (("cpu", 100), ("example.com/unknown", 1)), +1)
    usage.use("a", (("cpu", 200),), +1)
    assert cpu(usage) == [300, 0]
    usage.use("a", (("cpu", 100), ("example.com/unknown", 1)), -1)
    usage.use("b", (("cpu", 50),), +1)
    assert cpu(usage) == [200, 50]
    usage.use("a", (("cpu", 200),), -1)
    assert cpu(usage) == [0, 50]


def test_an_array_that_was_handed_out_is_not_written_again() -> None:
    """The next cycle compares with it."""
    usage = DaemonUsage()
    usage.use("a", (("cpu", 100),), +1)
    before = usage.on(NODES)
    assert usage.on(NODES) is before
    usage.use("a", (("cpu", 100),), +1)
    assert int(usage.on(NODES)[NODES.row["cpu"], 0]) == 200
    assert int(before[NODES.row["cpu"], 0]) == 100


def test_nodes_may_come_after_their_pods_and_go_before_them() -> None:
    usage = DaemonUsage()
    usage.use("b", (("cpu", 100),), +1)
    usage.use("c", (("cpu", 300),), +1)
    assert cpu(usage) == [0, 100]
    assert cpu(usage, columns(node("b", cpu=4), node("c", cpu=4))) == [100, 300]
    assert cpu(usage, columns(node("c", cpu=4))) == [300]
    assert cpu(usage) == [0, 100]


def test_a_pod_with_absurd_amounts_fills_its_node() -> None:
    usage = DaemonUsage()
    usage.use("a", (("cpu", 4 * LIMIT),), +1)
    assert cpu(usage) == [LIMIT, 0]
