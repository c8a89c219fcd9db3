"""Room on nodes: bound pods, reservations that no bound pod has taken, and holes between them."""

from cli.report.room.nodes import nodes_report
from cli.report.room.sums import room_of
from cli.report.snapshot import NODES, Snapshot, Unread
from tests.cli.objects import GPU, gang, node, placement, pod


def cluster() -> Snapshot:
    """Three nodes of 8: one with 2 + a reservation of 4, one cordoned, one with a dead taint."""
    return Snapshot(
        nodes=(
            node("a", labels={"nvidia.com/gpu.product": "h100"}),
            node("b", unschedulable=True),
            node("c", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
            node("cpu", gpus=0),
        ),
        pods=(
            pod("other", "a", 2),
            pod("w-1", "a", 1, of="train", pinned="a"),
            pod("w-2", "b", 1, of="train", pinned="b"),
        ),
        gangs=(
            gang("train", "Admitted", placement=placement(gpus=1, a=3, b=1)),
            gang("waits"),
        ),
    )


def test_a_slot_is_reserved_until_a_bound_pod_of_its_gang_has_taken_it() -> None:
    room = room_of(cluster())
    assert room is not None
    gpus = {cell: amount for cell, amount in room.reserved.items() if cell[1] == GPU}
    assert gpus == {("a", GPU): 2}


def test_nodes_have_what_is_used_reserved_and_free_and_why_they_take_nothing() -> None:
    report = nodes_report(cluster())
    assert report.is_known
    found = {each.name: each for each in report.nodes}
    assert (found["a"].used, found["a"].reserved, found["a"].free) == (3, 2, 3)
    assert (found["b"].used, found["b"].reserved, found["b"].free) == (1, 0, 7)
    assert {name: each.off for name, each in found.items()} == {
        "a": "",
        "b": "cordoned",
        "c": "not-ready",
    }
    assert report.nodes_without == 1


def test_pools_sum_up_their_nodes_and_say_how_many_pods_of_each_size_fit() -> None:
    pools = {each.name: each for each in nodes_report(cluster()).pools}
    h100, none = pools["h100"], pools["none"]
    assert (h100.nodes, h100.used, h100.reserved, h100.free, h100.allocatable) == (1, 3, 2, 3, 8)
    assert h100.holes == {"1": 3, "2": 1, "4": 0, "8": 0}
    assert (none.nodes, none.used, none.free, none.unschedulable) == (2, 1, 0, 15)
    assert set(none.holes.values()) == {0}


def test_pools_are_named_by_any_label_and_resources_by_name() -> None:
    labelled = Snapshot(nodes=(node("a", labels={"rack": "r1"}), node("b", labels={"rack": "r2"})))
    assert [each.name for each in nodes_report(labelled, labels=("rack",)).pools] == ["r1", "r2"]
    assert nodes_report(labelled, resources=("amd.com/gpu",)).pools == ()


def test_without_nodes_or_pods_nothing_is_said_of_either() -> None:
    blind = Snapshot(pods=cluster().pods, unread=(Unread(NODES, "no nodes for you"),))
    report = nodes_report(blind)
    assert (report.is_known, report.pools, report.unread) == (False, (), ("no nodes for you",))


def test_a_placement_that_cannot_be_read_reserves_nothing() -> None:
    broken = gang("g", "Admitted", placement=placement(gpus=1, a=-1))
    room = room_of(Snapshot(nodes=(node("a"),), gangs=(broken,)))
    assert room is not None
    assert room.reserved == {}
