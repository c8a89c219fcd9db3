"""Refuses a gang without a search if the sums rule out every order of placing its pods.

Each affinity term and each spread rule is asked alone how many pods there can be at most, with all
the pods placed that it could count.
"""

from collections.abc import Iterator

import numpy as np

from scheduling.filters.gang_affinity import RequiredAffinity
from scheduling.filters.pod_topology_spread import SpreadRule
from scheduling.placement.interdependent.partial_placement import PartialPlacement


def is_impossible(partial: PartialPlacement) -> bool:
    """Say whether some group does not fit even if each of its constraints stood alone."""
    constraints, counts = partial.internal_constraints, partial.counts
    return (
        any(_is_short_by_anti_affinity(partial))
        or any(_most_near(each, partial) < counts[each.group] for each in constraints.affinity)
        or any(_most_by_rule(rule, partial) < counts[rule.owner] for rule in _own_rules(partial))
    )


def _is_short_by_anti_affinity(partial: PartialPlacement) -> Iterator[bool]:
    for pair in partial.internal_constraints.anti_affinity:
        if pair.is_with_itself:
            most = pair.most(*partial.rooms_within(pair.key, pair.group))
            yield most < partial.counts[pair.group]


def _most_near(affinity: RequiredAffinity, partial: PartialPlacement) -> int:
    """Return how many pods of a group find room near its first, and near each of its partners.

    All do where a pod that satisfies the affinity is there already.
    """
    if any(affinity.matching_values) or affinity.has_partner(partial.earlier):
        return partial.counts[affinity.group]
    rooms = (partial.rooms_within(key, affinity.group)[0] for key in affinity.keys)
    return affinity.most(partial.counts, rooms)


def _own_rules(partial: PartialPlacement) -> Iterator[SpreadRule]:
    return (
        rule
        for rule in partial.internal_constraints.spread
        if rule.counts_itself and partial.counts[rule.owner]
    )


def _most_by_rule(rule: SpreadRule, partial: PartialPlacement) -> int:
    counts = partial.counts
    caps = {at: np.minimum(partial.room_for(at), counts[at]) for at in sorted(rule.counted)}
    return rule.most(partial.earlier, caps)
