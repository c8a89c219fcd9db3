"""Topology domains and the pods in them: whole rows of nodes at once, and one pod at a time.

A domain is the nodes with one value of a label. InterPodAffinity and PodTopologySpread both judge
by domains. Their vector fronts work on rows of numpy over all nodes; their scalar fronts look up
`DomainCounts`, which a search keeps up to date pod by pod (kube-scheduler: TpPairToMatchNum).
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.model.amounts import MOST, Amounts, Mask, Positions
from scheduling.state.node_snapshot import NodeAttributes

Check = Callable[[int], bool]
"""A scalar front: whether one constraint lets one more pod go to the node at a position."""


def has_label(key: str, traits: NodeAttributes) -> Mask:
    """Return the nodes that have the label."""
    return traits.remembered(
        ("has a value", key), lambda: traits.label(key).where(lambda value: value is not None)
    )


def has_value_among(key: str, values: frozenset[str], traits: NodeAttributes) -> Mask:
    """Return the nodes whose label has one of the values."""
    return traits.remembered(
        ("has a value among", key, values),
        lambda: traits.label(key).where(values.__contains__),
    )


def shares_domain(pods: Amounts, key: str, traits: NodeAttributes) -> Mask:
    """Return the nodes in whose domain there is one of the pods, which are counted per node."""
    column = traits.label(key)
    taken = np.zeros(len(column.values), dtype=np.bool_)
    taken[column.of[pods > 0]] = True
    return taken[column.of] & has_label(key, traits)


@dataclass(frozen=True, slots=True)
class CountedDomains:
    """The domains that a spread constraint counts, by name.

    `of[i]` is that of node i by its place in `names`; one past the last: of no domain, or of a node
    that is not counted.
    """

    names: tuple[str, ...]
    of: Positions

    def sums(self, per_node: Amounts) -> Amounts:
        """Add up amounts (per node) by domain; those of no domain are left out."""
        sums = np.zeros(len(self.names) + 1, dtype=np.int64)
        np.add.at(sums, self.of, per_node)
        return sums[:-1]

    def on_nodes(self, per_domain: Amounts) -> Amounts:
        """Return what each node's domain has; 0 for a node of no domain."""
        return np.append(per_domain, 0)[self.of]


@dataclass(frozen=True, eq=False, slots=True)
class DomainLimit:
    """At most `most[d]` more pods in domain d, where node i is in domain `of[i]`."""

    of: Positions
    most: Amounts

    def on_nodes(self) -> Amounts:
        """Return the limit at each node, as if the others of its domain took nothing."""
        return self.most[self.of]

    def is_shared(self, caps: Amounts) -> bool:
        """Say whether nodes that take so many pods each would take too many together."""
        sums = np.zeros_like(self.most)
        np.add.at(sums, self.of, caps)
        return bool((sums > self.most).any())

    def cut(self, nodes: Positions, pods: Amounts) -> Amounts:
        """Cut pods on nodes, served in this order, down to what their domains take."""
        order = np.argsort(self.of[nodes], kind="stable")
        domain, wanted = self.of[nodes][order], pods[order]
        before = np.cumsum(wanted) - wanted
        before -= before[np.searchsorted(domain, domain)]
        cut = np.empty_like(pods)
        cut[order] = np.clip(self.most[domain] - before, 0, wanted)
        return cut


class DomainCounts:
    """How many pods of some groups each domain holds, kept pod by pod.

    Node i is in domain `of[i]`; the last domain is no domain, and is never the one with the least.
    """

    def __init__(self, groups: Sequence[int], of: Positions, before: Amounts) -> None:
        self.groups = groups
        self.of: list[int] = of.tolist()
        self.held: list[int] = before.tolist()
        self.outside = len(self.held) - 1
        self._least: int | None = None

    def put(self, node: int, count: int) -> None:
        """Count pods that are placed on a node; a negative count takes them back."""
        self.held[self.of[node]] += count
        self._least = None

    def sums(self, row: Iterable[int]) -> list[int]:
        """Add up a row over the nodes by domain."""
        sums = [0] * len(self.held)
        for domain, pods in zip(self.of, row, strict=True):
            sums[domain] += pods
        return sums

    def holds_any(self, node: int) -> bool:
        """Say whether there is a pod in the domain of the node."""
        domain = self.of[node]
        return domain != self.outside and self.held[domain] > 0

    def holds_any_anywhere(self) -> bool:
        """Say whether there is a pod in any domain."""
        return any(self.held[:-1])

    def least(self) -> int:
        """Return the number of pods in the domain that holds the fewest."""
        if self._least is None:
            self._least = min(self.held[:-1])
        return self._least

    def least_of_others(self, domain: int) -> int:
        """Return the fewest pods among the other domains; MOST where there is no other."""
        return min((*self.held[:domain], *self.held[domain + 1 : -1]), default=MOST)


class GangCounts:
    """All `DomainCounts` that a search keeps of one gang, each made once.

    `existing` are the pods of the gang that were there before (groups x nodes). `rows` are the rows
    over the nodes that tell one node from another.
    """

    def __init__(self, existing: Amounts, traits: NodeAttributes) -> None:
        self._existing, self._traits = existing, traits
        self._made: dict[Hashable, DomainCounts] = {}
        self._by_group: list[list[DomainCounts]] = [[] for _ in existing]
        self.rows: list[Amounts | Mask] = []

    def put(self, group: int, node: int, count: int) -> None:
        """Count pods of a group that are placed on a node; a negative count takes them back."""
        for each in self._by_group[group]:
            each.put(node, count)

    def by_label(self, key: str, groups: Iterable[int]) -> DomainCounts:
        """Count the pods of some groups by the values of a label."""
        column = self._traits.label(key)
        of, domains = column.of.copy(), len(column.values)
        without = column.codes.get(None)
        if without is not None:
            of[of == without] = domains
        return self.by_domain(of, np.zeros(domains, dtype=np.int64), groups)

    def by_domain(self, of: Positions, around: Amounts, groups: Iterable[int]) -> DomainCounts:
        """Count the pods of some groups by domain, beside pods `around` of other gangs.

        One past the last domain is no domain.
        """
        rows = sorted(groups)
        before = np.append(around, 0)
        np.add.at(before, of, self._existing[rows].sum(axis=0))
        before[-1] = 0
        alike = tuple(rows), of.tobytes(), before.tobytes()
        if alike not in self._made:
            self._made[alike] = self._new(rows, of, before)
        return self._made[alike]

    def _new(self, rows: Sequence[int], of: Positions, before: Amounts) -> DomainCounts:
        made = DomainCounts(rows, of, before)
        for group in rows:
            self._by_group[group].append(made)
        sizes = np.bincount(of, minlength=len(before))
        alone = (sizes[of] == 1) & (of < made.outside)
        self.per_node(np.where(alone, -1, of))
        self.per_node(before[of])
        return made

    def per_node(self, row: Amounts | Mask) -> list[int]:
        """Return a row over the nodes as a list; note it if it tells nodes apart."""
        if (row != row[:1]).any():
            self.rows.append(row)
        found: list[int] = row.tolist()
        return found
