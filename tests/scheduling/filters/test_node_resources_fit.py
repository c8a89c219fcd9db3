"""How many pods fit on each node."""

import pytest

from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.model.amounts import MOST
from scheduling.model.pod import PodShape
from tests.builders import GPU, columns, node, shape


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        pytest.param(shape(cpu=3), 2, id="the request divides the free amount"),
        pytest.param(shape(cpu=1, memory="6Gi"), 2, id="the scarcest resource decides"),
        pytest.param(shape(cpu="1m"), 10, id="pod slots are a resource"),
        pytest.param(shape(gpu=1), 0, id="a resource without a row fits nowhere"),
        pytest.param(shape(memory=2**63 - 1), 0, id="an absurd request fits nowhere"),
        pytest.param(PodShape(own_requests=()), MOST, id="what asks for nothing fits MOST times"),
    ],
)
def test_pods_per_node(of: PodShape, expected: int) -> None:
    """The least of free // request over what is asked for."""
    world = columns(node("n", cpu=8, memory="16Gi", pods=10))
    assert pods_per_node(of.requests, world.row, world.free).tolist() == [expected]


def test_an_overcommitted_node_refuses_only_pods_that_ask_for_what_it_lacks() -> None:
    """NodeResourcesFit looks at requested resources alone, and counts stop at zero."""
    world = columns(node("n", cpu=4, gpu=2), used={"n": {"cpu": 9000}})
    fitting = [
        pods_per_node(of.requests, world.row, world.free) for of in (shape(cpu=1), shape(gpu=1))
    ]
    assert [int(counts[0]) for counts in fitting] == [0, 2]
    assert GPU in world.row
