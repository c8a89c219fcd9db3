"""PodTopologySpread: how many more pods each domain may take (maxSkew).

As in plugin PodTopologySpread of kube-scheduler 1.36: a pod may go to a domain (the nodes that
share a value of the constraint's key) if the pods counted there, with itself where it is counted,
are at most `max_skew` more than in the domain that has least. Only the pod's own constraints speak;
those of pods that stand are asked no more.

A constraint is judged on the pod as it came, in some order of pods: every domain that is filled
lifts the least, and with it the others (`level_for`). The pin of the release changes what
kube-scheduler then sees, so a constraint that still binds the pinned pod must also hold as pinned,
in whatever order pods are bound:

* nodeAffinityPolicy Honor, one domain needed: a single node counts, nothing is above the least.
* Honor, minDomains of two or more: a single node counts and the least is 0, so no node may have
  more than `max_skew` of the counted pods.
* Ignore: all domains count as before, but a domain has to do with what the others hold already:
  nothing else lifts their least for certain before its own pods come.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.filters.feasibility import masks
from scheduling.model.amounts import MOST, Amounts, Mask, Positions
from scheduling.model.constraints import SpreadConstraint
from scheduling.model.plugins import Predicate
from scheduling.model.pod import PodShape
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot
from scheduling.state.pod_index import SpreadCounts


@dataclass(frozen=True, slots=True)
class CountedDomains:
    """The domains that a constraint counts, by name.

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
class Limit:
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


@dataclass(frozen=True, slots=True)
class Stop:
    """A constraint that keeps pods from so many `nodes` with room.

    The domain `name` has least; no name where the constraint does not go by the domains there are,
    `found` in number.
    """

    constraint: SpreadConstraint
    name: str
    least: int
    found: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Lack:
    """How many pods of a unit found no place, and which rule kept the next from room, if any."""

    pods: int
    stop: Stop | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """A spread constraint of one unit (`owner`) over these nodes.

    `counted` are the units whose pods it counts, `standing` the pods around that it counts, per
    domain, and `perhaps` those that are in the way there and lift nothing; `nominated`, per node,
    are in the way of pods on their node alone. `floor` is, per domain, the least there is
    elsewhere, where that does not rise with the pods placed. `lasting`: the rule is to hold
    whatever order pods are bound in, so also for pods of other units that come later.
    """

    owner: int
    constraint: SpreadConstraint
    counted: frozenset[int]
    domains: CountedDomains
    standing: Amounts
    perhaps: Amounts
    nominated: Amounts
    floor: Amounts | None
    lasting: bool

    @property
    def counts_itself(self) -> bool:
        """Say whether a pod of the owner is counted by its own rule."""
        return self.owner in self.counted

    def held(self, placed: Amounts) -> Amounts:
        """Return the pods counted per domain, with those of the gang (units x nodes)."""
        rows = sorted(self.counted)
        return self.standing + self.domains.sums(placed[rows].sum(axis=0))

    def least(self, held: Amounts) -> Amounts:
        """Return what the skew of each domain is measured from."""
        return np.full_like(held, held.min()) if self.floor is None else self.floor

    def spare(self, placed: Amounts) -> Amounts:
        """Return how many more counted pods each domain may have now; below 0: not even another.

        So many on any of its nodes, whoever is nominated there.
        """
        held = self.held(placed)
        return self.least(held) + self.constraint.max_skew - held - self.in_the_way

    @property
    def in_the_way(self) -> Amounts:
        """Return per domain how many pods may come, to any of its nodes."""
        return self.perhaps + self.domains.sums(self.nominated)

    def spare_on_nodes(self, placed: Amounts) -> Amounts:
        """Return how many more counted pods a domain may have, one of them on each node.

        kube-scheduler asks twice about a node, with the pods that are nominated to it and without.
        """
        held = self.held(placed) + self.perhaps
        least = self.least(held - self.perhaps)
        spare = self.domains.on_nodes(least - held)
        at = np.flatnonzero(self.nominated)
        if len(at):
            with_them = self.domains.on_nodes(held)[at] + self.nominated[at]
            rest = self.domains.on_nodes(self._least_of_others(held - self.perhaps))[at]
            lifted = rest if self.floor is not None else np.minimum(rest, with_them)
            spare[at] = np.minimum(spare[at], lifted - with_them)
        spare += self.constraint.max_skew
        return spare

    def _least_of_others(self, held: Amounts) -> Amounts:
        return _least_elsewhere(held) if self.floor is None else self.floor

    def limit(self, most: Amounts, elsewhere: int) -> Limit:
        """Return a limit per domain, and for nodes of no domain."""
        return Limit(self.domains.of, np.append(most, elsewhere))


def stop_of(rule: Rule, held: Amounts, nodes: int) -> Stop:
    """Put into words what a rule keeps from nodes while its domains hold so many pods."""
    lowest = "" if rule.floor is not None else rule.domains.names[int(held.argmin())]
    least = int(rule.least(held).min())
    return Stop(rule.constraint, lowest, least, len(rule.domains.names), nodes)


def rules_of(
    owner: int,
    shape: PodShape,
    counted: Sequence[frozenset[int]],
    around: Sequence[SpreadCounts],
    at: NodeSnapshot,
) -> Iterator[tuple[Rule, Rule | None]]:
    """Yield, per constraint of a unit, the rule for the pods as they came and as they are pinned.

    `counted` are the units that each constraint counts, `around` who else. There is no second rule
    where the pin takes the constraint away.
    """
    for constraint, units, heads in zip(shape.spread, counted, around, strict=True):
        domains = _domains(shape, constraint, at.traits)
        promised = _on_nodes((heads.bound, heads.due), at)
        standing = domains.sums(promised)
        too_few = len(domains.names) < constraint.min_domains
        floor = np.zeros_like(standing) if too_few else None
        perhaps = domains.sums(_on_nodes((heads.perhaps,), at))
        nominated = _on_nodes((heads.nominated,), at)
        around_it = domains, standing, perhaps, nominated
        came = Rule(owner, constraint, units, *around_it, floor, lasting=False)
        yield came, _pinned(came, heads, at) if constraint.binds_pinned else None


def _pinned(came: Rule, heads: SpreadCounts, at: NodeSnapshot) -> Rule:
    """Return the rule as kube-scheduler judges the pinned pod."""
    domains, floor = came.domains, came.floor
    if came.constraint.honors_affinity:
        domains = CountedDomains(at.names, np.arange(len(at.names)))
        floor = np.zeros(len(at.names), dtype=np.int64)
    elif floor is None:
        floor = _least_elsewhere(domains.sums(_on_nodes((heads.bound,), at)))
    standing, perhaps = (
        domains.sums(_on_nodes(each, at)) for each in ((heads.bound, heads.due), (heads.perhaps,))
    )
    return replace(
        came,
        domains=domains,
        standing=standing,
        perhaps=perhaps,
        floor=floor,
        lasting=True,
    )


def _least_elsewhere(held: Amounts) -> Amounts:
    """Return for each domain the least among the others; a domain alone is never above any."""
    lowest = int(held.argmin())
    found = np.full_like(held, held[lowest])
    found[lowest] = np.delete(held, lowest).min(initial=MOST)
    return found


def as_pinned(came: Rule, pinned: Rule | None) -> Iterator[Rule]:
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


def level_for(held: Amounts, perhaps: Amounts, room: Amounts, max_skew: int, wanted: int) -> int:
    """Return the least to lift all domains to, so that `wanted` pods go in, or as many as can.

    `room` is what each domain has place for; `perhaps` are pods that come on top of those held and
    lift nothing, fewer than `max_skew` where there is room. With the least at L a domain may have
    L + max_skew pods, and the highest L is that of the domain that is full first. Any number of
    pods up to the sum of these fits with some L, and a sequence for them exists: next comes a pod
    of the domain that has least, or, once that is done, any.
    """
    low, high = int(held.min()), int((held + room).min())
    while low < high:
        middle = (low + high) // 2
        if int(allowed(held + perhaps, room, middle + max_skew).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def allowed(held: Amounts, room: Amounts, most: int | Amounts) -> Amounts:
    """Return how many more pods each domain takes if none may have more than `most`."""
    return np.clip(most - held, 0, room)
