"""How many pods of each size still fit, per pool, and what is stranded."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.diagnosis.holes import MOST_POOLS, OTHER, SIZES, UNLABELLED, GpuPools, Pool, pools
from scheduling.model.node import Node, Taint
from scheduling.state.node_table import node_snapshot_of
from tests.builders import GPU

MODEL = "nvidia.com/gpu.product"
ASKED = GpuPools((GPU,), (MODEL, "pool"))


def gpu_node(
    name: str,
    gpus: int,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    *,
    cordoned: bool = False,
    cpu: int = 64_000,
    pods: int = 110,
) -> Node:
    offered = {"cpu": cpu, "memory": 2**40, "pods": pods, GPU: gpus}
    return Node(name, labels or {}, taints, cordoned, offered)


def found(
    *nodes: Node,
    used: Mapping[str, Mapping[str, int]] | None = None,
    reserved: Mapping[tuple[str, str], int] | None = None,
) -> dict[str, Pool]:
    snapshot = node_snapshot_of(nodes, used)
    return {each.name: each for each in pools(snapshot, reserved or {}, ASKED)}


def holes(pool: Pool) -> dict[int, int]:
    return dict(zip(SIZES, pool.holes, strict=True))


def test_free_gpus_on_many_nodes_take_no_large_pod() -> None:
    whole, parts = gpu_node("a", 8), [gpu_node(f"n{at}", 2) for at in range(4)]
    assert holes(found(whole)[UNLABELLED]) == {1: 8, 2: 4, 4: 2, 8: 1}
    assert holes(found(*parts)[UNLABELLED]) == {1: 8, 2: 4, 4: 0, 8: 0}


def test_what_is_used_and_reserved_has_no_hole() -> None:
    """A reservation is part of what is used."""
    [pool] = found(gpu_node("a", 8), used={"a": {GPU: 5}}, reserved={("a", GPU): 3}).values()
    assert (pool.allocatable, pool.reserved, pool.free) == (8, 3, 3)
    assert holes(pool) == {1: 3, 2: 1, 4: 0, 8: 0}


@pytest.mark.parametrize(
    "node",
    [
        gpu_node("a", 8, cordoned=True),
        gpu_node("a", 8, taints=(Taint("node.kubernetes.io/not-ready", "", "NoExecute"),)),
    ],
    ids=["cordoned", "not ready"],
)
def test_nodes_that_take_no_pods_have_no_holes(node: Node) -> None:
    [pool] = found(node).values()
    assert (pool.allocatable, pool.free, pool.unschedulable, pool.stranded) == (8, 0, 8, 0)
    assert holes(pool) == {1: 0, 2: 0, 4: 0, 8: 0}


def test_the_taint_of_gpu_nodes_is_tolerated_by_gpu_pods() -> None:
    tainted = gpu_node("a", 8, taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"),))
    assert found(tainted)[UNLABELLED].free == 8


def test_gpus_without_processor_beside_them_are_stranded() -> None:
    """Pods typically take 8 CPUs beside a GPU; on `b` a pod without GPUs has left 20 of 64."""
    used = {"a": {GPU: 4, "cpu": 32_000}, "b": {"cpu": 44_000}}
    [pool] = found(gpu_node("a", 4), gpu_node("b", 8), used=used).values()
    assert pool.free == 8
    assert pool.stranded == 5.5
    assert holes(pool) == {1: 2, 2: 1, 4: 0, 8: 0}


def test_a_node_without_room_for_pods_has_no_holes() -> None:
    [pool] = found(gpu_node("a", 8, pods=3)).values()
    assert holes(pool) == {1: 3, 2: 3, 4: 2, 8: 1}


def test_the_first_label_that_a_node_has_names_its_pool() -> None:
    nodes = [
        gpu_node("a", 8, {MODEL: "H100", "pool": "x"}),
        gpu_node("b", 4, {"pool": "x"}),
        gpu_node("c", 2, {MODEL: ""}),
    ]
    assert {name: each.allocatable for name, each in found(*nodes).items()} == {
        "H100": 8,
        "x": 4,
        UNLABELLED: 2,
    }


def test_pools_beyond_the_largest_are_one() -> None:
    nodes = [gpu_node(f"n{at:02}", 100 - at, {"pool": f"p{at:02}"}) for at in range(MOST_POOLS + 3)]
    by_name = found(*nodes)
    assert len(by_name) == MOST_POOLS + 1
    assert by_name["p00"].allocatable == 100
    assert by_name[OTHER].allocatable == 80 + 79 + 78
    assert "p20" not in by_name


def test_other_resources_and_nodes_without_gpus_are_no_pools() -> None:
    bare = Node("a", {}, (), False, {"cpu": 1000, "example.com/fpga": 4})
    assert found(bare) == {}


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9), st.integers(0, 64)), max_size=12),
)
def test_holes_are_those_of_a_count_node_by_node(nodes: list[tuple[int, int, int]]) -> None:
    """GPUs of a node, GPUs in use there (also too many), CPUs in use there; CPU is plentiful."""
    made = [gpu_node(f"n{at}", gpus, cpu=10**9) for at, (gpus, _, _) in enumerate(nodes)]
    used = {f"n{at}": {GPU: taken, "cpu": cpu} for at, (_, taken, cpu) in enumerate(nodes)}
    by_name = found(*made, used=used)
    if not any(gpus for gpus, _, _ in nodes):
        assert by_name == {}
        return
    [pool] = by_name.values()
    left = [max(0, gpus - taken) for gpus, taken, _ in nodes]
    assert pool.free == sum(left)
    assert holes(pool) == {size: sum(each // size for each in left) for size in SIZES}
