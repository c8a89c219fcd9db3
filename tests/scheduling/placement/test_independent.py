"""Whole-gang placement: what fits, and on which nodes."""

import pytest

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import Group
from scheduling.model.node import Node
from scheduling.placement.independent import (
    NoFit,
    Outcome,
    Placed,
    Undecided,
    cannot_fit,
    count_fit,
    demand_of,
    place,
)
from tests.builders import GPU, columns, group, node, shape, taint

STEPS = 10**7
HEAD = shape(cpu=4)
GPU_WORKER = shape(cpu=8, gpu=8)
ONE_GPU = shape(cpu=1, gpu=1)


def outcome(nodes: list[Node], *groups: Group, steps: int = STEPS) -> Outcome:
    return place(demand_of(groups), FreeCapacity.of(columns(*nodes)), steps)


def where(nodes: list[Node], *groups: Group) -> dict[str, dict[str, int]]:
    """Return per pod set the pods on each node, for groups of different shapes."""
    found = outcome(nodes, *groups)
    assert isinstance(found, Placed)
    names = sorted(each.name for each in nodes)
    pod_sets = {each.shape: each.pod_set for each in groups}
    return {
        pod_sets[of]: {names[at]: int(n) for at, n in zip(spread.nodes, spread.pods, strict=True)}
        for (of, _), spread in zip(demand_of(groups), found.distributions, strict=True)
    }


def test_count_fit_leaves_out_nodes_that_are_not_feasible() -> None:
    """A node that a predicate refuses holds none, whatever its room."""
    world = columns(node("a", cpu=4), node("b", cpu=4, taints=(taint("x"),)))
    assert count_fit(shape(cpu=2), world).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("nodes", "groups", "fits"),
    [
        pytest.param([], [], True, id="nothing fits into nothing"),
        pytest.param([], [group("head", 1, HEAD)], False, id="no node takes no pod"),
        pytest.param(
            [node("a")], [group("workers", 0, GPU_WORKER)], True, id="a group of none always fits"
        ),
        pytest.param(
            [node("a", gpu=8), node("b", gpu=8)],
            [group("w", 2, GPU_WORKER)],
            True,
            id="two machines take two workers",
        ),
        pytest.param(
            [node("a", gpu=4), node("b", gpu=4)],
            [group("w", 1, GPU_WORKER)],
            False,
            id="eight scattered devices are no machine",
        ),
        pytest.param(
            [node("a", cpu=8)],
            [group("h", 1, shape(cpu=1)), group("w", 4, shape(cpu=1))],
            True,
            id="head and workers share a node",
        ),
        pytest.param(
            [node("a", cpu=8)],
            [group("h", 1, shape(cpu=1)), group("w", 8, shape(cpu=1))],
            False,
            id="equal shapes of two pod sets add up",
        ),
        pytest.param(
            [node("a", cpu=8)],
            [group("h", 1, shape(cpu=2)), group("w", 7, shape(cpu=1))],
            False,
            id="the head takes what a worker needs",
        ),
        pytest.param(
            [node("a", cpu=5), node("b", cpu=5)],
            [group("x", 2, shape(cpu=2)), group("y", 2, shape(cpu=3))],
            True,
            id="two groups are paired on two nodes",
        ),
        pytest.param(
            [node("a", cpu=5), node("b", cpu=5)],
            [group("x", 3, shape(cpu=2)), group("y", 2, shape(cpu=3))],
            False,
            id="two groups that fit in sum only",
        ),
    ],
)
def test_fits(nodes: list[Node], groups: list[Group], fits: bool) -> None:
    """Whole or not at all."""
    assert isinstance(outcome(nodes, *groups), Placed if fits else NoFit)


def test_the_room_left_is_what_the_placement_left() -> None:
    """The next gang sees what this one has not taken."""
    found = outcome([node("a", cpu=8)], group("h", 1, shape(cpu=2)), group("w", 3, shape(cpu=1)))
    assert isinstance(found, Placed)
    assert found.room.total(shape(cpu=1)) == 3


def test_a_failed_attempt_leaves_the_room_alone() -> None:
    """Rooms are values; what did not work out was never taken."""
    room = FreeCapacity.of(columns(node("a", cpu=5), node("b", cpu=5)))
    before = room.free.tolist()
    demand = demand_of([group("x", 3, shape(cpu=2)), group("y", 2, shape(cpu=3))])
    assert isinstance(place(demand, room, STEPS), NoFit)
    assert room.free.tolist() == before


PAIRED = [group("x", 2, shape(cpu=4)), group("y", 2, shape(cpu=3))]
PAIRING = [node("a", cpu=8), node("b", cpu=6)]
"""4 + 4 and 3 + 3 fit; every greedy order puts a 4 or a 3 where it leaves a gap."""


def test_groups_that_greedy_orders_miss_are_found_by_the_search() -> None:
    """The search pairs equal pods on the node that they fill exactly."""
    assert where(PAIRING, *PAIRED) == {"x": {"a": 2}, "y": {"b": 2}}


def test_a_search_without_steps_says_that_it_does_not_know() -> None:
    """Neither yes nor no."""
    assert isinstance(outcome(PAIRING, *PAIRED, steps=0), Undecided)


def test_what_the_sum_excludes_needs_no_search() -> None:
    """A certain no costs no steps where the total is short already."""
    nodes = [node("a", cpu=5), node("b", cpu=5)]
    groups = [group("x", 3, shape(cpu=2)), group("y", 2, shape(cpu=3))]
    assert outcome(nodes, *groups, steps=0) == NoFit()


def test_the_head_goes_where_it_costs_no_worker() -> None:
    """Node a would lose a worker to the head; node b has cpu to spare."""
    nodes = [node("a", cpu=8, gpu=8), node("b", cpu=12, gpu=8)]
    workers = group("workers", 2, GPU_WORKER)
    assert where(nodes, group("head", 1, HEAD), workers)["head"] == {"b": 1}


def test_the_head_leaves_idle_gpu_machines_alone() -> None:
    """A node without devices comes first, even where it is the larger one."""
    nodes = [node("a", cpu=16, gpu=8), node("b", cpu=64), node("c", cpu=16, gpu=8)]
    assert where(nodes, group("head", 1, HEAD), group("workers", 1, GPU_WORKER)) == {
        "head": {"b": 1},
        "workers": {"a": 1},
    }


def test_the_head_shares_a_machine_with_its_workers_rather_than_open_another() -> None:
    """With GPU machines only, the gang stays on as few as it needs."""
    nodes = [node(name, cpu=16, gpu=8) for name in "abc"]
    assert where(nodes, group("head", 1, HEAD), group("workers", 2, GPU_WORKER)) == {
        "head": {"a": 1},
        "workers": {"a": 1, "b": 1},
    }


def test_the_head_may_come_last_by_name() -> None:
    """Spreads are in the order of the demand, whichever of the two is the single pod."""
    nodes = [node("a", cpu=16, gpu=8), node("b", cpu=16, gpu=8)]
    found = where(nodes, group("gpu-workers", 2, GPU_WORKER), group("head", 1, HEAD))
    assert found == {"gpu-workers": {"a": 1, "b": 1}, "head": {"a": 1}}


def test_broken_machines_are_filled_before_whole_ones_are_opened() -> None:
    """The node with the smallest share of idle devices first: whole machines stay whole."""
    nodes = [node(name, gpu=8) for name in "abc"]
    room = FreeCapacity.of(columns(*nodes, used={"b": {GPU: 6}, "c": {GPU: 5}}))
    found = place(demand_of([group("workers", 4, ONE_GPU)]), room, STEPS)
    assert isinstance(found, Placed)
    [spread] = found.distributions
    assert dict(zip(spread.nodes.tolist(), spread.pods.tolist(), strict=True)) == {1: 2, 2: 2}


def test_cpu_workers_keep_off_idle_devices() -> None:
    """Workers without devices take the nodes without devices first."""
    nodes = [node("a", cpu=4, gpu=8), node("b", cpu=64)]
    assert where(nodes, group("workers", 3, shape(cpu=2))) == {"workers": {"b": 3}}


def test_ties_go_by_name() -> None:
    """Equal nodes are taken in order of name."""
    nodes = [node("c"), node("a"), node("b")]
    assert where(nodes, group("workers", 1, shape(cpu=40))) == {"workers": {"a": 1}}


def test_what_is_lacking_on_an_overcommitted_node_is_no_ones_loss() -> None:
    """Sums over the nodes count no node below zero."""
    world = columns(node("a", cpu=1), node("b", cpu=3), used={"a": {"cpu": 2_000}})
    demand = ((shape(cpu=1), 1), (shape(cpu=2), 1))
    assert not cannot_fit(demand, FreeCapacity.of(world))
    assert isinstance(place(demand, FreeCapacity.of(world), 0), Placed)


def test_a_head_goes_only_where_the_others_can_bear_it() -> None:
    """The node without idle devices would be its own choice, but there it displaces two workers."""
    world = columns(node("a", cpu=4), node("b", cpu=9, gpu=8))
    head, worker = shape(cpu=3), shape(cpu=2)
    placed = place(((head, 1), (worker, 5)), FreeCapacity.of(world), 0)
    assert isinstance(placed, Placed)
    assert placed.distributions[0].nodes.tolist() == [1]
