"""NodeAffinity: which nodes the node selector and the required node affinity allow."""

from functools import partial
from operator import eq

import numpy as np

from scheduling.model.amounts import Mask
from scheduling.model.constraints import NODE_NAME, NodeTerm, Requirement
from scheduling.model.labels import holds
from scheduling.model.node_terms import names_node, parses
from scheduling.state.node_snapshot import NodeAttributes


def bounded(bounds: tuple[Requirement, ...], traits: NodeAttributes) -> Mask:
    """Return the nodes that all bounds (In and NotIn) allow; In without values allows none."""
    mask = np.ones(len(traits.nodes), dtype=np.bool_)
    for bound in bounds:
        inside = traits.label(bound.key).among(bound.values)
        mask &= inside if bound.operator == "In" else ~inside
    return mask


def selected(selector: tuple[tuple[str, str], ...], traits: NodeAttributes) -> Mask:
    """Return the nodes that have all labels of the node selector."""
    mask = np.ones(len(traits.nodes), dtype=np.bool_)
    for key, wanted in selector:
        mask &= traits.label(key).where(partial(eq, wanted))
    return mask


def attracted(terms: tuple[NodeTerm, ...] | None, traits: NodeAttributes) -> Mask:
    """Return the nodes that one of the terms matches; all where there is no affinity."""
    if terms is None:
        return np.ones(len(traits.nodes), dtype=np.bool_)
    mask = np.zeros(len(traits.nodes), dtype=np.bool_)
    for term in terms:
        mask |= _matched(term, traits)
    return mask


def _matched(term: NodeTerm, traits: NodeAttributes) -> Mask:
    """Return the nodes that satisfy all of a term; an empty term matches nothing."""
    mask = np.full(len(traits.nodes), bool(term.labels or term.fields))
    for label in term.labels:
        mask &= traits.remembered(label, partial(_labelled, label, traits))
    for field in term.fields:
        mask &= _named(field, traits)
    return mask


def _labelled(requirement: Requirement, traits: NodeAttributes) -> Mask:
    """Return the nodes whose label satisfies the requirement.

    A requirement that the scheduler cannot parse makes its whole term match nothing
    (component-helpers nodeaffinity.go), so NotIn without values is no "everything but nothing".
    """
    if requirement.key == NODE_NAME:
        return bounded((requirement,), traits)
    if not parses(requirement):
        return np.zeros(len(traits.nodes), dtype=np.bool_)
    column = traits.label(requirement.key)
    match requirement.operator:
        case "In":
            return column.among(requirement.values)
        case "NotIn":
            return ~column.among(requirement.values)
        case _:
            return column.where(lambda value: holds(requirement, value))


def _named(requirement: Requirement, traits: NodeAttributes) -> Mask:
    """Return the nodes whose metadata.name matches; the API knows no other field here."""
    if not names_node(requirement):
        return np.zeros(len(traits.nodes), dtype=np.bool_)
    wanted = requirement.operator == "In"
    mask = np.full(len(traits.nodes), not wanted)
    position = traits.index.get(requirement.values[0])
    if position is not None:
        mask[position] = wanted
    return mask
