"""The exhaustive search finds what no sweep finds."""

import numpy as np

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.gang_affinity import AntiAffinity, InternalConstraints, RequiredAffinity
from scheduling.placement.exact_search import OutOfSteps
from scheduling.placement.interdependent.search import NoWay, Ordered, place_interdependent
from scheduling.placement.release_waves import plan_release_waves
from tests.builders import columns, node, shape

NODES = columns(
    *(
        node(name, cpu=cpu, labels={"zone": "z", "host": name})
        for name, cpu in (("n0", 4), ("n1", 1), ("n2", 3))
    )
)
AFFINITY = (
    RequiredAffinity(1, ("host",), (frozenset(),), frozenset({2})),
    RequiredAffinity(2, ("zone",), (frozenset(),), frozenset({0, 1})),
)
SHAPES = shape(cpu=1), shape(cpu=2), shape(cpu=1)


def placed(*counts: int, steps: int = 10**7) -> Ordered | NoWay | OutOfSteps:
    return placed_under(InternalConstraints(affinity=AFFINITY), counts, steps)


def placed_under(
    constraints: InternalConstraints, counts: tuple[int, ...], steps: int = 10**7
) -> Ordered | NoWay | OutOfSteps:
    shapes = SHAPES[: len(counts)]
    earlier = np.zeros((len(counts), len(NODES.names)), dtype=np.int64)
    return place_interdependent(
        shapes, counts, constraints, FreeCapacity.of(NODES), earlier, steps, plan_release_waves
    )


def test_groups_with_affinity_to_each_other_are_tried_in_every_order() -> None:
    """The third group must leave the small node free, so that the second fits beside it."""
    found = placed(2, 1, 1)
    assert isinstance(found, Ordered)
    assert [int(each.pods.sum()) for each in found.distributions] == [2, 1, 1]
    assert found.distributions[1].nodes.tolist() == found.distributions[2].nodes.tolist()


def test_a_no_is_certain_only_after_all_ways() -> None:
    """No node holds two of the second group beside one of the third."""
    assert isinstance(placed(2, 2, 1), NoWay)
    assert isinstance(placed(2, 2, 1, steps=0), OutOfSteps)


def test_a_group_that_is_to_be_near_another_and_apart_from_it_has_no_way() -> None:
    near = tuple(RequiredAffinity(at, ("host",), (frozenset(),), frozenset({1})) for at in (0, 1))
    apart = frozenset({AntiAffinity(0, 1, "zone"), AntiAffinity(1, 0, "zone")})
    assert isinstance(placed_under(InternalConstraints(apart, near), (1, 1)), NoWay)
    assert isinstance(placed_under(InternalConstraints(frozenset(), near), (1, 1)), Ordered)
