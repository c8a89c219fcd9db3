"""The packing rule, key by key."""

import numpy as np
import pytest

from scheduling.model import Node, PodShape
from scheduling.packing import is_device, order_nodes
from scheduling.room import Room
from tests.builders import columns, node, shape


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
            "cba",
            id="idle devices count most",
        ),
        pytest.param(
            shape(gpu=1),
            [node("a", gpu=8), node("b", gpu=2)],
            [0, 0],
            "ba",
            id="for device pods tightness decides",
        ),
        pytest.param(
            shape(cpu=4, gpu=1),
            [node("a", cpu=8, gpu=2), node("b", cpu=4, gpu=4)],
            [0, 0],
            "ba",
            id="for device pods their own count decides, not how many devices are idle",
        ),
        pytest.param(shape(cpu=1), [node("b"), node("a")], [0, 0], "ab", id="then the name"),
        pytest.param(shape(cpu=1), [], [], "", id="no node has no order"),
    ],
)
def test_order_nodes(of: PodShape, nodes: list[Node], cost: list[int], expected: str) -> None:
    """Idle devices, cost, tightness, name."""
    room = Room.of(columns(*nodes))
    order = order_nodes(of, room, np.arange(len(nodes)), np.array(cost, dtype=np.int64))
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
