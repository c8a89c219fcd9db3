"""Feasibility against one node and one pod at a time."""

from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduling.filters.feasibility import feasible, rejections
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.constraints import (
    PodTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
    VolumeNodeRestriction,
)
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.predicates import Predicate
from scheduling.model.shape.restrictions import NodeRestrictions
from scheduling.state.node_table import node_snapshot_of
from tests.properties.strategies import allowed, nodes, shapes


@given(st.lists(shapes(), max_size=4), nodes())
def test_masks_agree_with_asking_every_node(some: list[PodShape], on: list[Node]) -> None:
    """Classes, codes and remembered masks change nothing in the answer."""
    columns = node_snapshot_of(on)
    for shape in some:
        assert feasible(shape, columns).tolist() == [allowed(shape, node) for node in on]


@given(shapes(), nodes())
def test_rejections_count_every_refused_node_once(shape: PodShape, on: list[Node]) -> None:
    """The predicates before room refuse exactly the nodes that are not feasible."""
    counts = rejections(shape, node_snapshot_of(on))
    room = counts.pop(Predicate.RESOURCES, 0)
    assert sum(counts.values()) == sum(not allowed(shape, node) for node in on)
    assert sum(counts.values()) + room <= len(on)


TOLD_APART_BY: dict[str, Any] = {
    "own_requests": (("cpu", 2),),
    "node_selector": (("zone", "a"),),
    "node_affinity": (),
    "tolerations": (Toleration("", "Exists", "", ""),),
    "added_affinity": (),
    "features": ("x",),
    "spread": (SpreadConstraint(PodTerm("zone", (), ("team",)), 1),),
}
"""One value per field of a shape that counts on a node, other than the default."""

ADDED: dict[str, Any] = {
    "existing_pods": (Requirement("zone", "NotIn", ("a",)),),
    "topology": (Requirement("zone", "In", ("a",)),),
    "volumes": (VolumeNodeRestriction("VolumeBinding", "claim", ()),),
    "disks": (("attach:driver", 1),),
    "queue": (("gpu", "a100"),),
    "claimed_from": (("claim", ()),),
    "avoided": ("n0",),
}
"""The same of its restrictions."""

LEFT_ASIDE = {"own_unsupported", "affinity", "anti_affinity", "volumes", "restrictions"}
"""What no node is asked about: it is worked out before to what is, or refused."""


def test_shapes_are_counted_as_one_only_where_no_node_tells_them_apart() -> None:
    """Every field either is in what counts are kept by, or no predicate looks at it."""
    assert {field.name for field in fields(PodShape)} == TOLD_APART_BY.keys() | LEFT_ASIDE
    plain = PodShape((("cpu", 1),))
    for name, value in TOLD_APART_BY.items():
        assert replace(plain, **{name: value}).fitting != plain.fitting
    added = {field.name for field in fields(NodeRestrictions)}
    assert added == ADDED.keys() | {"unsupported_volumes", "claims", "by_class", "shared_claims"}
    for name, value in ADDED.items():
        restricted = replace(plain, restrictions=NodeRestrictions(**{name: value}))
        assert restricted.fitting != plain.fitting


@given(st.lists(shapes(), min_size=2, max_size=6), nodes())
def test_shapes_that_no_node_tells_apart_fit_alike(some: list[PodShape], on: list[Node]) -> None:
    """In a room that counts each shape for itself."""
    columns = node_snapshot_of(on)
    counts: dict[object, list[int]] = {}
    for shape in some:
        found = FreeCapacity.of(columns).counts(shape).tolist()
        assert counts.setdefault(shape.fitting, found) == found
