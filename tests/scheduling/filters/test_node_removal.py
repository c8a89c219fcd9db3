"""Nodes that an autoscaler takes away, or would like to."""

from dataclasses import replace
from typing import Any

import pytest

from scheduling.cycle import run_cycle
from scheduling.diagnosis.holes import GpuPools, pools
from scheduling.filters.feasibility import feasible, rejections
from scheduling.model.node import Node, Removal
from scheduling.model.predicates import Predicate
from scheduling.model.verdict import Admitted, Refusal
from tests.builders import columns, gang, group, node, shape, toleration

EVERYTHING = (toleration(operator="Exists"),)


def going(name: str, removal: Removal, **offered: Any) -> Node:
    return replace(node(name, **offered), removal=removal)


def test_a_pod_that_tolerates_everything_does_not_go_where_a_node_is_taken_away() -> None:
    nodes = columns(going("a", Removal.CERTAIN), node("b"))
    assert feasible(shape(tolerations=EVERYTHING), nodes).tolist() == [False, True]
    assert rejections(shape(tolerations=EVERYTHING), nodes) == {Predicate.REMOVAL: 1}


def test_a_gang_waits_for_another_node_and_is_told_why() -> None:
    nodes = columns(going("a", Removal.CERTAIN))
    [decision] = run_cycle([gang("g", group("w", 1, shape(cpu=1, tolerations=EVERYTHING)))], nodes)
    assert isinstance(decision.verdict, Refusal)
    assert "1 is being deleted" in decision.verdict.message


@pytest.mark.parametrize("gpu", [0, 1])
@pytest.mark.parametrize("wanted", [1, 2, 3, 5])
def test_candidates_come_last(wanted: int, gpu: int) -> None:
    """Both have GPUs, of which a gang without any would leave the fewest idle elsewhere."""
    nodes = columns(
        going("a", Removal.POSSIBLE, cpu=2, gpu=2),
        node("b", cpu=2, gpu=2),
        going("c", Removal.POSSIBLE, cpu=2),
        node("d", cpu=2, gpu=2),
    )
    asked = group("w", wanted, shape(cpu=1, gpu=gpu))
    [decision] = run_cycle([gang("g", asked)], nodes)
    assert isinstance(decision.verdict, Admitted)
    found = {name for each in decision.verdict.placement.assignments for name, _ in each.nodes}
    assert bool(found & {"a", "c"}) is (wanted > 4)


def test_a_node_with_gpus_that_stays_is_better_than_one_without_that_may_go() -> None:
    """For pods without a GPU, which else keep off nodes that have some idle."""
    risky = [going(name, Removal.POSSIBLE, cpu=1) for name in ("a", "b", "c")]
    nodes = columns(*risky, node("x", cpu=1, gpu=1), node("y", cpu=1, gpu=1))
    [decision] = run_cycle([gang("g", group("w", 3, shape(cpu=1)))], nodes)
    assert isinstance(decision.verdict, Admitted)
    found = {name for each in decision.verdict.placement.assignments for name, _ in each.nodes}
    assert {"x", "y"} < found


def test_what_is_taken_away_has_no_holes() -> None:
    nodes = columns(going("a", Removal.CERTAIN, gpu=8), node("b", gpu=8))
    [pool] = pools(nodes, {}, GpuPools())
    assert pool.free == 8
    assert pool.unschedulable == 8
