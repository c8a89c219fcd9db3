"""Feasibility against one node and one pod at a time."""

from hypothesis import given
from hypothesis import strategies as st

from scheduling.columns import Columns
from scheduling.feasibility import Predicate, feasible, rejections
from scheduling.model import Node, PodShape
from tests.properties.strategies import allowed, nodes, shapes


@given(st.lists(shapes(), max_size=4), nodes())
def test_masks_agree_with_asking_every_node(some: list[PodShape], on: list[Node]) -> None:
    """Classes, codes and remembered masks change nothing in the answer."""
    columns = Columns.of(on)
    for shape in some:
        assert feasible(shape, columns).tolist() == [allowed(shape, node) for node in on]


@given(shapes(), nodes())
def test_rejections_count_every_refused_node_once(shape: PodShape, on: list[Node]) -> None:
    """The predicates before room refuse exactly the nodes that are not feasible."""
    counts = rejections(shape, Columns.of(on))
    room = counts.pop(Predicate.RESOURCES, 0)
    assert sum(counts.values()) == sum(not allowed(shape, node) for node in on)
    assert sum(counts.values()) + room <= len(on)
