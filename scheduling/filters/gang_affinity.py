"""The rules of affinity and anti-affinity between the pods of one gang.

Groups are numbered; arguments called `pods` are groups x nodes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scheduling.filters.domain_counts import (
    Check,
    DomainLimit,
    GangCounts,
    has_label,
    has_value_among,
    shares_domain,
)
from scheduling.filters.pod_topology_spread import SpreadRule
from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.state.node_snapshot import NodeAttributes


@dataclass(frozen=True, slots=True)
class RequiredAffinity:
    """Required affinity of one group that pods of its own gang (`partners`, groups) can satisfy.

    A node suits if it has, for every key, a value among `matching_values`, those of existing pods,
    or shares its value with a partner. Where no pod matches the terms yet, kube-scheduler's
    first-pod rule lets in a pod that matches its own terms, wherever there are all the keys. A
    group that `is_not_requeued` is not tried again when a partner comes after it was refused.
    """

    group: int
    keys: tuple[str, ...]
    matching_values: tuple[frozenset[str], ...]
    partners: frozenset[int]
    is_not_requeued: bool = False

    @property
    def allows_first_pod(self) -> bool:
        """Say whether the first-pod rule can apply: the group matches its own terms alone."""
        return self.group in self.partners and not any(self.matching_values)

    def nodes(self, pods: Amounts, traits: NodeAttributes) -> Mask:
        """Return the nodes that suit one more pod of the group."""
        near = pods[sorted(self.partners)].sum(axis=0)
        suits = np.ones(pods.shape[1], dtype=np.bool_)
        has_match = any(self.matching_values)
        for key, values in zip(self.keys, self.matching_values, strict=True):
            matching = has_value_among(key, values, traits) | shares_domain(near, key, traits)
            has_match = has_match or bool(matching.any())
            suits &= matching
        if has_match or not self.allows_first_pod:
            return suits
        return self._has_all_keys(traits)

    def _has_all_keys(self, traits: NodeAttributes) -> Mask:
        found: Mask = np.logical_and.reduce([has_label(key, traits) for key in self.keys])
        return found

    def check(self, counts: GangCounts, traits: NodeAttributes) -> Check:
        """Return whether a node suits one more pod of the group, by counts."""
        pairs = zip(self.keys, self.matching_values, strict=True)
        values = [counts.per_node(has_value_among(*pair, traits)) for pair in pairs]
        partners = [counts.by_label(key, self.partners) for key in self.keys]
        terms = list(zip(values, partners, strict=True))
        has_values, allows_first_pod = any(self.matching_values), self.allows_first_pod

        def suits(node: int) -> bool:
            if has_values or any(each.holds_any_anywhere() for each in partners):
                return all(matches[node] or near.holds_any(node) for matches, near in terms)
            return allows_first_pod and all(each.of[node] != each.outside for each in partners)

        return suits

    def has_partner(self, pods: Amounts) -> bool:
        """Say whether there is a partner already."""
        return any(pods[partner].any() for partner in self.partners)

    def most(self, counts: Sequence[int], rooms: Iterable[Amounts]) -> int:
        """Return how many pods of the group there can be, near its first and its partners.

        `counts` are the pods to place per group, `rooms` says for every key how many pods of the
        group each of its values takes.
        """
        others = self.partners - {self.group}
        places = int(self.allows_first_pod) + sum(counts[at] for at in others)
        return min(int(np.sort(each)[::-1][:places].sum()) for each in rooms)

    def domains(self, traits: NodeAttributes) -> Positions:
        """Return which nodes share the values of all the keys, as a number per node."""
        codes = np.stack([traits.label(key).of for key in self.keys], axis=1)
        return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)


class AntiAffinity(NamedTuple):
    """No pod of a group shares the value of the key with one of the other group; it may be itself.

    Anti-affinity counts both ways, so there is one of these for each direction.
    """

    group: int
    other: int
    key: str

    @property
    def is_with_itself(self) -> bool:
        """Say whether it keeps the pods of one group from each other."""
        return self.group == self.other

    def restrict(self, caps: Amounts, pods: Amounts, traits: NodeAttributes) -> None:
        """Cut down how many more pods of the group each node takes, if no other node takes any."""
        caps *= ~shares_domain(pods[self.other], self.key, traits)
        if self.is_with_itself:
            np.minimum(caps, 1, out=caps, where=has_label(self.key, traits))

    def limit(self, most: int, traits: NodeAttributes) -> DomainLimit:
        """Return the limit of one pod for each value of the key, of `most` that are left."""
        column = traits.label(self.key)
        limits = [most if value is None else 1 for value in column.values]
        return DomainLimit(column.of, np.array(limits, dtype=np.int64))

    def check(self, counts: GangCounts) -> Check:
        """Return whether it lets one more pod of the group go to a node, by counts."""
        near = counts.by_label(self.key, (self.other,))
        return lambda node: not near.holds_any(node)

    def most(self, rooms: Amounts, elsewhere: int) -> int:
        """Return how many pods find room, one for each value of the key.

        `rooms` is how many pods each value takes, `elsewhere` how many the nodes without it take.
        """
        return int(np.minimum(rooms, 1).sum()) + elsewhere


@dataclass(frozen=True, slots=True)
class InternalConstraints:
    """What the groups of a gang ask of each other; groups are named by their position."""

    anti_affinity: frozenset[AntiAffinity] = frozenset()
    affinity: tuple[RequiredAffinity, ...] = ()
    spread: tuple[SpreadRule, ...] = ()

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self.anti_affinity or self.affinity or self.spread)
