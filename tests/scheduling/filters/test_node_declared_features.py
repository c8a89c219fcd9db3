"""Features that a node must declare."""

from dataclasses import replace

from scheduling.filters.feasibility import feasible, rejections
from scheduling.model.predicates import Predicate
from tests.builders import columns, node, shape


def test_a_node_must_declare_every_feature_that_a_pod_needs() -> None:
    able = {"none": (), "one": ("a",), "other": ("b", "c"), "two": ("a", "b", "c")}
    world = columns(*(replace(node(n), features=frozenset(f)) for n, f in able.items()))
    of = replace(shape(), features=("a", "b"))
    assert feasible(of, world).tolist() == [False, False, False, True]
    assert rejections(of, world) == {Predicate.FEATURES: 3}
    assert feasible(shape(), world).all()
