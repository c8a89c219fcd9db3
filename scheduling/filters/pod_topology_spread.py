"""PodTopologySpread: how many more pods each domain may take (maxSkew).

As in plugin PodTopologySpread of kube-scheduler 1.36: a pod may go to a domain (the nodes that
share a value of the constraint's key) if the pods counted there, with itself where it is counted,
are at most `max_skew` more than the global minimum, which is what the domain with the fewest holds.
Only the constraints of the incoming pod count, not those of existing pods.

A constraint is judged on the pod as it came, in some order of pods: every domain that is filled
lifts the global minimum, and with it what the others may hold (`level_for`). The pin of the release
changes what kube-scheduler then sees, so a constraint that still binds the pinned pod must also
hold as pinned, in whatever order pods are bound:

* nodeAffinityPolicy Honor, one domain needed: a single node counts, nothing is above the minimum.
* Honor, minDomains of two or more: a single node counts and the minimum is 0, so no node may have
  more than `max_skew` of the counted pods.
* Ignore: all domains count as before, but a domain has to do with what the others hold already:
  nothing else is certain to lift the minimum before its own pods come.

`SpreadRule` is the rule, with a vector front (`limit`, `limit_on_nodes`, `lifts`) and a scalar
front (`check`); `SpreadBound` and `SpreadRule.most` say what it can let in at most.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add

import numpy as np

from scheduling.filters.domain_counts import (
    Check,
    CountedDomains,
    DomainCounts,
    DomainLimit,
    GangCounts,
)
from scheduling.model.amounts import MOST, Amounts
from scheduling.model.constraints import SpreadConstraint


@dataclass(frozen=True, slots=True)
class Stop:
    """A constraint that keeps pods from so many `nodes` with free capacity.

    The domain `name` has the fewest pods; no name where the minimum does not follow from the
    domains there are, `found` in number.
    """

    constraint: SpreadConstraint
    name: str
    least: int
    found: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Lack:
    """How many pods of a group found no place, and which rule kept the next one out, if any."""

    pods: int
    stop: Stop | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SpreadRule:
    """A spread constraint of one group (`owner`) over these nodes.

    `counted` are the groups whose pods it counts, `existing` the pods of others that it counts, per
    domain, and `possible` those that may come there and lift nothing; `nominated`, per node, are in
    the way of pods on their node alone. `floor` is, per domain, the minimum among the others where
    that does not rise with the pods placed. `any_order`: the rule is to hold whatever order pods
    are bound in, so also when counted pods of other groups come later.

    Arguments called `pods` are those of the gang, groups x nodes.
    """

    owner: int
    constraint: SpreadConstraint
    counted: frozenset[int]
    domains: CountedDomains
    existing: Amounts
    possible: Amounts
    nominated: Amounts
    floor: Amounts | None
    any_order: bool

    @property
    def counts_itself(self) -> bool:
        """Say whether a pod of the owner is counted by its own rule (selfMatch)."""
        return self.owner in self.counted

    @property
    def in_the_way(self) -> Amounts:
        """Return per domain how many pods may come, to any of its nodes."""
        return self.possible + self.domains.sums(self.nominated)

    def applies_to(self, group: int) -> bool:
        """Say whether it is asked about a pod of a group: the owner's, or one it must outlast."""
        return group == self.owner or (self.any_order and group in self.counted)

    def held(self, pods: Amounts) -> Amounts:
        """Return the pods counted per domain."""
        rows = sorted(self.counted)
        return self.existing + self.domains.sums(pods[rows].sum(axis=0))

    def minimum(self, held: Amounts) -> Amounts:
        """Return what the skew of each domain is measured from."""
        return np.full_like(held, held.min()) if self.floor is None else self.floor

    # ---- the vector front

    def limit(self, group: int, pods: Amounts, most: int) -> DomainLimit:
        """Return how many more pods of a group each domain takes, of `most` that are left."""
        spare = self.spare(pods)
        if group not in self.counted:
            return self._limit(np.where(spare >= 0, most, 0), 0)
        if group == self.owner:
            return self._limit(np.maximum(spare, 0), 0)
        has_owners = self.domains.sums(pods[self.owner]) > 0
        return self._limit(np.where(has_owners, np.maximum(spare, 0), most), most)

    def limit_on_nodes(self, group: int, pods: Amounts, most: int) -> Amounts:
        """Return how many more pods of a group each node takes, if no other node takes any.

        It is exact for nominated pods, but where the rule must hold in any order.
        """
        if self.any_order or not self.nominated.any():
            return self.limit(group, pods, most).on_nodes()
        spare = self.spare_on_nodes(pods)
        found = np.maximum(spare, 0) if group in self.counted else np.where(spare >= 0, most, 0)
        found *= self.domains.of < len(self.domains.names)
        return found

    def lifts(self, pods: Amounts, caps: Amounts, most: int) -> tuple[DomainLimit, DomainLimit]:
        """Return what each domain must get to lift the minimum, and what it may get after that.

        `caps` is what each node takes otherwise.
        """
        held, skew, in_the_way = self.held(pods), self.constraint.max_skew, self.in_the_way
        room = np.where(in_the_way < skew, self.domains.sums(caps), 0)
        level = level_for(held, in_the_way, room, skew, most)
        must = allowed(held, room, level)
        may = allowed(held + in_the_way, room, level + skew)
        return self._limit(must, 0), self._limit(may - must, 0)

    def spare(self, pods: Amounts) -> Amounts:
        """Return how many more counted pods each domain may have now; below 0: not even another.

        So many on any of its nodes, wherever a pod is nominated to.
        """
        held = self.held(pods)
        return self.minimum(held) + self.constraint.max_skew - held - self.in_the_way

    def spare_on_nodes(self, pods: Amounts) -> Amounts:
        """Return how many more counted pods a domain may have, one of them on each node.

        kube-scheduler asks twice about a node, with the pods that are nominated to it and without.
        """
        held = self.held(pods) + self.possible
        least = self.minimum(held - self.possible)
        spare = self.domains.on_nodes(least - held)
        at = np.flatnonzero(self.nominated)
        if len(at):
            with_them = self.domains.on_nodes(held)[at] + self.nominated[at]
            rest = self.domains.on_nodes(self._least_of_others(held - self.possible))[at]
            lifted = rest if self.floor is not None else np.minimum(rest, with_them)
            spare[at] = np.minimum(spare[at], lifted - with_them)
        spare += self.constraint.max_skew
        return spare

    def most(self, pods: Amounts, caps: Mapping[int, Amounts]) -> int:
        """Return how many pods of the owner fit once the minimum is as high as it can ever be.

        `caps` is what each node takes at most, for each of the counted groups.
        """
        held = self.held(pods)
        highest = held + sum(self.domains.sums(each) for each in caps.values())
        most = self.minimum(highest) + self.constraint.max_skew
        return int(allowed(held, self.domains.sums(caps[self.owner]), most).sum())

    def stop(self, pods: Amounts, nodes: int) -> Stop:
        """Put into words what the rule keeps from nodes while its domains hold these pods."""
        held = self.held(pods)
        lowest = "" if self.floor is not None else self.domains.names[int(held.argmin())]
        least = int(self.minimum(held).min())
        return Stop(self.constraint, lowest, least, len(self.domains.names), nodes)

    def _least_of_others(self, held: Amounts) -> Amounts:
        return least_elsewhere(held) if self.floor is None else self.floor

    def _limit(self, most: Amounts, elsewhere: int) -> DomainLimit:
        """Return a limit per domain, and for nodes of no domain."""
        return DomainLimit(self.domains.of, np.append(most, elsewhere))

    # ---- the scalar front

    def check(self, group: int, counts: GangCounts) -> Check:
        """Return whether the rule lets one more pod of a group go to a node, by counts."""
        if group != self.owner:
            owners, within = self.counts(counts, (self.owner,)), self._within(group, counts)
            return lambda node: not owners.holds_any(node) or within(node)
        if self.any_order or not self.nominated.any():
            return self._within(group, counts)
        return self._beside_nominated(counts)

    def counts(self, counts: GangCounts, groups: Iterable[int] = ()) -> DomainCounts:
        """Return the counts of some groups by the domains of the rule; of none: of those counted.

        Existing pods of others are counted with those that the rule counts.
        """
        chosen = frozenset(groups) or self.counted
        around = self.existing if chosen == self.counted else np.zeros_like(self.existing)
        return counts.by_domain(self.domains.of, around, chosen)

    def _within(self, group: int, counts: GangCounts) -> Check:
        """Ask whether a domain, with all pods that are in the way, is within the skew."""
        held, minimum = self.counts(counts, self.counted), self._minimum_of(counts)
        in_the_way = self._per_domain(self.in_the_way, counts)
        most = self.constraint.max_skew - int(group in self.counted)

        def lets(node: int) -> bool:
            domain = held.of[node]
            return (
                domain != held.outside
                and held.held[domain] + in_the_way[domain] - minimum(domain) <= most
            )

        return lets

    def _beside_nominated(self, counts: GangCounts) -> Check:
        """Ask as kube-scheduler does: with the pods nominated to the node, and without."""
        held, minimum = self.counts(counts, self.counted), self._minimum_of(counts)
        elsewhere = held.least_of_others if self.floor is None else minimum
        possible = self._per_domain(self.possible, counts)
        nominated = counts.per_node(self.nominated)
        most = self.constraint.max_skew - int(self.counts_itself)

        def lets(node: int) -> bool:
            domain = held.of[node]
            if domain == held.outside:
                return False
            there = held.held[domain] + possible[domain]
            with_them = there + nominated[node]
            return there - minimum(domain) <= most and (
                not nominated[node] or with_them - elsewhere(domain) <= most
            )

        return lets

    def _minimum_of(self, counts: GangCounts) -> Callable[[int], int]:
        """Return what the skew of each domain is measured from, as things stand."""
        held = self.counts(counts, self.counted)
        if self.floor is None:
            return lambda _domain: held.least()
        return self._per_domain(self.floor, counts).__getitem__

    def _per_domain(self, amounts: Amounts, counts: GangCounts) -> list[int]:
        counts.per_node(self.domains.on_nodes(amounts))
        found: list[int] = amounts.tolist()
        return found


class SpreadBound:
    """How many more pods one rule lets in at most, once all come that still have room.

    `owners` are the groups that have the rule, alike in all it says: what one takes of a domain the
    others lack. `room` is what the domains still hold of their pods, `coming` of all that count.
    """

    def __init__(
        self,
        counted: DomainCounts,
        floor: Sequence[int] | None,
        max_skew: int,
        caps: Sequence[Sequence[int]],
    ) -> None:
        """`caps` is how many more pods of each group (columns) each node (rows) takes."""
        self.owners: list[int] = []
        self._counted, self._floor, self._max_skew = counted, floor, max_skew
        self._room = [0] * len(counted.held)
        self._coming = counted.sums(sum(each[at] for at in counted.groups) for each in caps)

    def add_owner(self, group: int, caps: Sequence[int]) -> None:
        """Take in another group that has the rule, and how many of its pods each node takes."""
        self.owners.append(group)
        self._room = list(map(add, self._room, self._counted.sums(caps)))

    def add_room(self, group: int, node: int, pods: int) -> None:
        """Take in that a node takes more pods of a group, or fewer."""
        domain = self._counted.of[node]
        if group in self.owners:
            self._room[domain] += pods
        if group in self._counted.groups:
            self._coming[domain] += pods

    def most(self) -> int:
        """Return how many pods of the owners there can be at most."""
        held = self._counted.held[:-1]
        floor = self._floor
        if floor is None:
            floor = [min(map(add, held, self._coming))] * len(held)
        most = 0
        for least, there, room in zip(floor, held, self._room[:-1], strict=True):
            most += max(0, min(least + self._max_skew - there, room))
        return most


def least_elsewhere(held: Amounts) -> Amounts:
    """Return for each domain the least among the others; a domain alone is never above any."""
    lowest = int(held.argmin())
    found = np.full_like(held, held[lowest])
    found[lowest] = np.delete(held, lowest).min(initial=MOST)
    return found


def level_for(held: Amounts, possible: Amounts, room: Amounts, max_skew: int, wanted: int) -> int:
    """Return the minimum to lift all domains to, so that `wanted` pods go in, or as many as can.

    `room` is how many more pods each domain takes otherwise; `possible` are pods that come on top
    of those held and lift nothing, fewer than `max_skew` where there is room. With the minimum at L
    a domain may have L + max_skew pods, and the highest L is that of the domain that is full first.
    Any number of pods up to the sum of these fits with some L, and a sequence for them exists: next
    comes a pod of the domain that holds the fewest, or, once that is done, of any.
    """
    low, high = int(held.min()), int((held + room).min())
    while low < high:
        middle = (low + high) // 2
        if int(allowed(held + possible, room, middle + max_skew).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def allowed(held: Amounts, room: Amounts, most: int | Amounts) -> Amounts:
    """Return how many more pods each domain takes if none may have more than `most`."""
    return np.clip(most - held, 0, room)
