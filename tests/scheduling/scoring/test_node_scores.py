"""The packing rule, key by key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import LIMIT, is_device
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.scoring.lexical_order import in_lexical_order
from scheduling.scoring.node_scores import (
    PARTS,
    POINTS,
    best_nodes,
    no_cost,
    order_nodes,
    points,
    served,
    typical_use,
)
from tests.builders import GPU, columns, node, shape


@pytest.mark.parametrize(
    ("of", "nodes", "cost", "expected"),
    [
        pytest.param(
            shape(cpu=1),
            [node("a", cpu=8), node("b", cpu=4)],
            [0, 0],
            "ba",
            id="the tightest node first",
        ),
        pytest.param(
            shape(cpu=1),
            [node("a", cpu=8), node("b", cpu=4)],
            [0, 1],
            "ab",
            id="what the gang loses counts more",
        ),
        pytest.param(
            shape(cpu=1),
            [node("a", gpu=8), node("b", gpu=2), node("c")],
            [0, 0, 9],
            "cab",
            id="idle devices count most, however many",
        ),
        pytest.param(
            shape(gpu=1),
            [node("a", gpu=8), node("b", gpu=2)],
            [0, 0],
            "ab",
            id="for device pods tightness counts nothing",
        ),
        pytest.param(shape(cpu=1), [node("b"), node("a")], [0, 0], "ab", id="then the name"),
        pytest.param(shape(cpu=1), [], [], "", id="no node has no order"),
    ],
)
def test_order_nodes(of: PodShape, nodes: list[Node], cost: list[int], expected: str) -> None:
    """Stranded devices, the share that is idle, cost, tightness, name."""
    room = FreeCapacity.of(columns(*nodes))
    costs = np.array(cost, dtype=np.int64)
    order = order_nodes(of, room, np.arange(len(nodes)), costs.__getitem__)
    assert "".join(room.columns.names[at] for at in order) == expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param("nvidia.com/gpu", True, id="a gpu"),
        pytest.param("cpu", False, id="cpu"),
        pytest.param("hugepages-2Mi", False, id="huge pages"),
        pytest.param("attachable-volumes-csi-x", False, id="volumes"),
        pytest.param("requests.kubernetes.io/x", False, id="a native name with a domain"),
    ],
)
def test_is_device(resource: str, expected: bool) -> None:
    """Extended resources are devices."""
    assert is_device(resource) is expected


def test_a_hungry_pod_goes_where_cpu_abounds_and_a_frugal_one_where_it_is_short() -> None:
    """Eight cores a GPU are typical; `rich` has sixteen a GPU, `poor` four."""
    world = columns(
        node("busy", cpu=64, gpu=8),
        node("poor", cpu=32, gpu=8),
        node("rich", cpu=128, gpu=8),
        used={"busy": {"cpu": 64_000, GPU: 8}},
    )
    room, nodes, cost = FreeCapacity.of(world), np.array([1, 2]), no_cost
    hungry, frugal = shape(cpu=16, gpu=1), shape(cpu=2, gpu=1)
    assert [world.names[at] for at in order_nodes(hungry, room, nodes, cost)] == ["rich", "poor"]
    assert [world.names[at] for at in order_nodes(frugal, room, nodes, cost)] == ["poor", "rich"]


def test_the_smallest_share_of_idle_devices_comes_first_not_the_smallest_node() -> None:
    """Three of eight idle are a smaller share than one of two; no CPU is in use beside them."""
    world = columns(
        node("large", gpu=8), node("small", gpu=2), used={"large": {GPU: 5}, "small": {GPU: 1}}
    )
    order = order_nodes(shape(gpu=1), FreeCapacity.of(world), np.arange(2), no_cost)
    assert [world.names[at] for at in order] == ["large", "small"]


def test_typical_is_the_median_over_nodes_with_devices_in_use() -> None:
    """One node full of CPU pods changes nothing; without devices in use nothing is typical."""
    devices = np.array([4, 4, 1, 0]) * PARTS
    taken = np.array([[32, 40, 900, 700]])
    assert typical_use(devices, taken) == [10]
    assert typical_use(devices * 0, taken) == [0]
    assert typical_use(devices[:0], taken[:, :0]) == [0]


@pytest.mark.parametrize(
    ("idle", "left", "expected"),
    [
        pytest.param(4, [40, 400], 4, id="both suffice"),
        pytest.param(4, [20, 400], 2, id="the first serves two"),
        pytest.param(4, [40, 100], 1, id="the second serves one"),
        pytest.param(4, [-5, 400], 0, id="an overcommitted node serves none"),
        pytest.param(0, [50, 500], 0, id="no device is served"),
        pytest.param(4, [LIMIT, LIMIT], 4, id="as much as columns hold"),
    ],
)
def test_served(idle: int, left: list[int], expected: int) -> None:
    """Ten of the first and a hundred of the second resource are typical beside one device."""
    amounts = np.array([[amount] for amount in left])
    parts = served(np.array([idle * PARTS]), amounts, [10, 100])
    assert parts.tolist() == [expected * PARTS]


@given(
    st.integers(0, 20).flatmap(
        lambda length: st.lists(
            arrays(
                np.int64,
                length,
                elements=st.integers(-3, 3) | st.integers(-(2**55), 2**55),
            ),
            min_size=1,
            max_size=4,
        )
    )
)
def test_in_lexical_order(keys: list[np.ndarray]) -> None:
    """It is a stable lexicographic sort, however large the keys are."""
    expected = sorted(range(len(keys[0])), key=lambda at: tuple(int(key[at]) for key in keys))
    nodes = np.arange(len(keys[0]))
    asked = [key.__getitem__ for key in keys]
    assert in_lexical_order(asked, nodes).tolist() == expected
    for most in range(1, len(nodes) + 2):
        assert in_lexical_order(asked, nodes, most).tolist() == expected[:most]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, []), (1, [10]), (2, [10, 0]), (3, [10, 9, 0]), (11, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])],
)
def test_points_use_the_whole_range(number: int, expected: list[int]) -> None:
    """The best alone has ten; on equal nodes the name decides."""
    world = columns(*(node(f"n{at:02}", cpu=8, gpu=8) for at in range(number)))
    given_points = points(shape(cpu=1, gpu=1), FreeCapacity.of(world), np.arange(number))
    assert given_points.tolist() == expected


def test_points_are_given_also_where_the_pod_does_not_fit() -> None:
    """The extender is asked about nodes that have filled up since."""
    world = columns(node("a", gpu=2), node("b", gpu=2), used={"a": {GPU: 2}})
    assert points(shape(gpu=1), FreeCapacity.of(world), np.arange(2)).tolist() == [POINTS, 0]


def test_a_node_with_an_idle_device_comes_after_one_without_however_many_it_has() -> None:
    """One of two thousand is less than a thousandth."""
    world = columns(
        node("a", gpu=2000), node("b", cpu=128, gpu=2000), used={"a": {GPU: 1999}, "b": {GPU: 2000}}
    )
    one, room, nodes = shape(cpu=1), FreeCapacity.of(world), np.arange(2)
    assert order_nodes(one, room, nodes, no_cost).tolist() == [1, 0]
    assert best_nodes(one, room, nodes, no_cost).tolist() == [1]


def test_points_follow_the_order() -> None:
    """Sorted by points, nodes are in the order in which the coordinator would fill them."""
    world = columns(*(node(f"n{at}", cpu=8, gpu=(5 * at) % 8 + 1) for at in range(8)))
    room, nodes = FreeCapacity.of(world), np.arange(8)
    one = shape(cpu=1, gpu=1)
    order = order_nodes(one, room, nodes, no_cost)
    falling = points(one, room, nodes)[order]
    assert (np.diff(falling) <= 0).all()
    assert falling[0] == POINTS
    assert falling[-1] == 0
