"""Derives the spread rules of a group from its constraints and the pods around."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from scheduling.filters.domain_counts import CountedDomains
from scheduling.filters.feasibility import masks
from scheduling.filters.pod_topology_spread import SpreadRule, least_elsewhere
from scheduling.model.amounts import Amounts, Mask
from scheduling.model.constraints import SpreadConstraint
from scheduling.model.pod import PodShape
from scheduling.model.predicates import Predicate
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot
from scheduling.state.pod_index import SpreadCounts


def rules_of(
    owner: int,
    shape: PodShape,
    counted: Sequence[frozenset[int]],
    around: Sequence[SpreadCounts],
    at: NodeSnapshot,
) -> Iterator[tuple[SpreadRule, SpreadRule | None]]:
    """Yield, per constraint of a group, the rule for the pods as they came and as they are pinned.

    `counted` are the groups that each constraint counts, `around` the pods of others. There is no
    second rule where the pin takes the constraint away.
    """
    for constraint, groups, others in zip(shape.spread, counted, around, strict=True):
        domains = _domains(shape, constraint, at.traits)
        existing = domains.sums(_on_nodes((others.bound, others.assumed), at))
        too_few = len(domains.names) < constraint.min_domains
        floor = np.zeros_like(existing) if too_few else None
        possible = domains.sums(_on_nodes((others.possible,), at))
        nominated = _on_nodes((others.nominated,), at)
        amounts = existing, possible, nominated
        came = SpreadRule(
            owner, constraint, groups, domains, *amounts, floor=floor, any_order=False
        )
        yield came, _pinned(came, others, at) if constraint.binds_pinned else None


def _pinned(came: SpreadRule, around: SpreadCounts, at: NodeSnapshot) -> SpreadRule:
    """Return the rule as kube-scheduler judges the pinned pod."""
    domains, floor = came.domains, came.floor
    if came.constraint.honors_affinity:
        domains = CountedDomains(at.names, np.arange(len(at.names)))
        floor = np.zeros(len(at.names), dtype=np.int64)
    elif floor is None:
        floor = least_elsewhere(domains.sums(_on_nodes((around.bound,), at)))
    existing, possible = (
        domains.sums(_on_nodes(each, at))
        for each in ((around.bound, around.assumed), (around.possible,))
    )
    return replace(
        came,
        domains=domains,
        existing=existing,
        possible=possible,
        floor=floor,
        any_order=True,
    )


def as_pinned(came: SpreadRule, pinned: SpreadRule | None) -> Iterator[SpreadRule]:
    """Yield what binds a pod that will be pinned, from both rules of a constraint.

    What holds for all orders of binding holds for one, so of two alike the stricter is enough.
    """
    if pinned is None or pinned.domains is not came.domains:
        yield came
    if pinned is not None:
        yield pinned


def _domains(
    shape: PodShape, constraint: SpreadConstraint, traits: NodeAttributes
) -> CountedDomains:
    key = (
        *("domains", constraint.counted.key, constraint.honors_affinity, constraint.honors_taints),
        *(tuple(each.counted.key for each in shape.spread), shape.tolerations),
        *(shape.node_selector, shape.node_affinity),
    )
    return traits.remembered(key, lambda: _found_domains(shape, constraint, traits))


def _found_domains(
    shape: PodShape, constraint: SpreadConstraint, traits: NodeAttributes
) -> CountedDomains:
    where = _that_count(shape, constraint, traits)
    column = traits.label(constraint.counted.key)
    codes, places = np.unique(column.of[where], return_inverse=True)
    of = np.full(len(traits.nodes), len(codes), dtype=np.intp)
    of[where] = places
    return CountedDomains(tuple(str(column.values[code]) for code in codes), of)


def _that_count(shape: PodShape, constraint: SpreadConstraint, traits: NodeAttributes) -> Mask:
    """Return the nodes that count: a cordon alone does not keep a node from it."""
    found = masks(shape, traits)
    where = found[Predicate.SPREAD].copy()
    if constraint.honors_affinity:
        where &= found[Predicate.NODE_SELECTOR] & found[Predicate.NODE_AFFINITY]
    if constraint.honors_taints:
        where &= found[Predicate.TAINT]
    return where


def _on_nodes(counts: Iterable[Mapping[str, int]], at: NodeSnapshot) -> Amounts:
    found = np.zeros(len(at.names), dtype=np.int64)
    for each in counts:
        for name, count in each.items():
            if name in at.index:
                found[at.index[name]] += count
    return found
