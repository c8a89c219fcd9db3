"""InterPodAffinity: which nodes a pod may use beside existing pods and pods of its gang.

Existing pods do not change while a gang is placed. What their affinity means is worked out once: it
leaves each group certain values of node labels, and from there the gang is placed like any other.
Anti-affinity counts both ways, as in plugin InterPodAffinity of kube-scheduler 1.36.

What the pods of the gang mean to each other changes with every pod that is placed. These are the
`InternalConstraints`: `RequiredAffinity` and `AntiAffinity` in `gang_affinity`, spread rules in
`pod_topology_spread`. Each has a vector front, over all nodes, and a scalar front (`check`), by
counts; `most` says how many pods there can be at most.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from scheduling.filters.gang_affinity import AntiAffinity, InternalConstraints, RequiredAffinity
from scheduling.filters.pod_topology_spread import SpreadRule
from scheduling.filters.spread_rules import as_pinned, rules_of
from scheduling.model.constraints import NODE_NAME, PodTerm, Requirement
from scheduling.model.gang import Group, GroupKey, PendingGang
from scheduling.model.labels import selects
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import beside_existing_pods
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodKind


class PartlySelectedError(Exception):
    """A selector picks some pods of a group and not others."""

    def __init__(self, pod_set: str) -> None:
        said = "a pod affinity or spread selector matches some of its equal pods and not others"
        remedy = "select by labels that all pods of a group have in common"
        super().__init__(f"{pod_set}: {said} ({remedy})")


class WaitForBindingError(Exception):
    """A group must wait until assumed pods are bound.

    It would change a count that must not change before, or be refused and not requeued.
    """


# ---- what existing pods mean to a gang


@dataclass(frozen=True, slots=True)
class GangConstraints:
    """The groups of a gang, their shapes beside existing pods, and its internal constraints.

    `internal_constraints` hold for the pods as they will be pinned, `as_they_came` leaves the pin
    aside.
    """

    groups: tuple[GroupKey, ...]
    shapes: tuple[PodShape, ...]
    internal_constraints: InternalConstraints
    as_they_came: InternalConstraints

    def applied_to(self, gang: PendingGang) -> PendingGang:
        """Return the gang with shapes that are restricted beside existing pods."""
        surplus = tuple(self._applied(unit) for unit in gang.surplus)
        return replace(gang, minimum=self._applied(gang.minimum), surplus=surplus)

    def _applied(self, groups: Iterable[Group]) -> tuple[Group, ...]:
        at = dict(zip(self.groups, self.shapes, strict=True))
        return tuple(replace(each, shape=at[each.pod_set, each.shape]) for each in groups)


def gang_constraints(
    gang: PendingGang, existing_pods: ExistingPods, columns: NodeSnapshot
) -> GangConstraints:
    """Work out what existing pods, and its own, mean to a gang.

    Raises PartlySelectedError where that has no answer, WaitForBindingError where it has none yet.
    """
    groups = tuple(dict.fromkeys((group.pod_set, group.shape) for group in gang.groups()))
    look = _Look(gang, groups, existing_pods, columns)
    shapes = tuple(
        beside_existing_pods(shape, look.allowed(at)) for at, (_, shape) in enumerate(groups)
    )
    affinity = tuple(each for at in range(len(groups)) for each in look.required_affinity(at))
    rules = [pair for at in range(len(groups)) for pair in look.spread_rules(at)]
    came = InternalConstraints(look.anti_affinity(), affinity, tuple(rule for rule, _ in rules))
    pinned = replace(came, spread=tuple(rule for pair in rules for rule in as_pinned(*pair)))
    return GangConstraints(groups, shapes, pinned, came)


def counts_existing(shape: PodShape, priority: int, existing: ExistingPods) -> bool:
    """Say whether existing pods satisfy the affinity of a pod, or count in its spread."""
    if shape.affinity and existing.certain_nodes_of(shape.affinity):
        return True
    spread = (existing.spread_counts(each.counted, priority) for each in shape.spread)
    return any(+counts for each in spread for counts in each.all())


def assumed_pods(gang: PendingGang, placement: Placement) -> Iterator[AssumedPods]:
    """Return the pods of a gang as assumed pods, on the nodes of its placement."""
    kinds: dict[tuple[str, str], set[PodKind]] = {}
    shapes: dict[tuple[str, str], PodShape] = {}
    for each in gang.members:
        group = each.pod_set, each.shape.key
        kinds.setdefault(group, set()).add((gang.key.namespace, each.labels))
        shapes[group] = each.shape
    for placed in placement.assignments:
        group = placed.pod_set, placed.shape
        if group in kinds:
            of_group = frozenset(kinds[group])  # one object for all nodes: its hash is known then
            avoided, spread = shapes[group].anti_affinity, shapes[group].pinned_spread
            for node, count in placed.nodes:
                yield AssumedPods(of_group, node, avoided, spread, count)


class _Look:
    """One gang among existing pods."""

    def __init__(
        self,
        gang: PendingGang,
        groups: tuple[GroupKey, ...],
        existing_pods: ExistingPods,
        columns: NodeSnapshot,
    ) -> None:
        self._groups = groups
        self._existing_pods = existing_pods
        self._columns = columns
        self._namespace = gang.key.namespace
        self._priority = gang.pod_priority
        self._kinds: dict[GroupKey, set[PodKind]] = {group: set() for group in groups}
        for each in gang.members:
            if (each.pod_set, each.shape) in self._kinds:
                self._kinds[each.pod_set, each.shape].add((gang.key.namespace, each.labels))
        self._selected: dict[tuple[PodTerm, ...], frozenset[int]] = {}
        self._relevant: dict[tuple[int, frozenset[str]], frozenset[PodKind]] = {}
        if any(existing_pods.must_wait(kinds) for kinds in self._kinds.values()):
            raise WaitForBindingError
        if any(self._misses_assumed(shape.affinity) for _, shape in groups if shape.affinity):
            raise WaitForBindingError

    def _misses_assumed(self, affinity: tuple[PodTerm, ...]) -> bool:
        """Say whether a pod that is refused before assumed pods are bound may stay refused."""
        namespaces = self._existing_pods.assumed_in(affinity)
        return not all(_is_requeued(term, each) for term in affinity for each in namespaces)

    def allowed(self, at: int) -> tuple[Requirement, ...]:
        """Return the values of labels that existing pods leave to a group."""
        shape = self._groups[at][1]
        avoided = [(term, self._existing_pods.nodes_of((term,))) for term in shape.anti_affinity]
        avoided += [
            (term, nodes)
            for term, nodes in self._existing_pods.existing_anti_affinity().items()
            if self._selects((term,), at)
        ]
        out = {
            Requirement(term.key, "NotIn", self._values(term.key, nodes)) for term, nodes in avoided
        }
        has_terms = bool(shape.affinity or shape.anti_affinity)
        if has_terms or any(each.values for each in out) or self._is_selected_by_others(at):
            out.add(Requirement(NODE_NAME, "NotIn", self._nominated_nodes(at)))
        wanted = self._by_existing_pods(at) if shape.affinity else ()
        return (*sorted((each for each in out if each.values), key=repr), *wanted)

    def _is_selected_by_others(self, at: int) -> bool:
        """Say whether anti-affinity inside the gang selects a group; else the plugin is skipped."""
        terms = (term for _, shape in self._groups for term in shape.anti_affinity)
        return any(self._selects((term,), at) for term in terms)

    def _nominated_nodes(self, at: int) -> tuple[str, ...]:
        """Return the nodes to which pods are nominated that the group must not be near to.

        By its own anti-affinity or by theirs.
        """
        own = self._groups[at][1].anti_affinity
        nodes = set()
        for pod in self._existing_pods.nominated_for(self._priority):
            keys = [t.key for t in own if self._existing_pods.picks((t,), pod.kind)]
            keys += [t.key for t in pod.anti_affinity if self._selects((t,), at)]
            if any(self._values(key, (pod.node,)) for key in keys):
                nodes.add(pod.node)
        return tuple(sorted(nodes))

    def _by_existing_pods(self, at: int) -> tuple[Requirement, ...]:
        """Return the values that affinity to existing pods leaves, unless the gang counts too."""
        affinity = self._groups[at][1].affinity
        values = self._matching_values(affinity)
        if self._partners(affinity) - ({at} if any(values.values()) else set()):
            return ()
        return tuple(Requirement(key, "In", each) for key, each in values.items())

    def required_affinity(self, at: int) -> Iterator[RequiredAffinity]:
        """Return the affinity of a group that members of its own gang can satisfy."""
        affinity = self._groups[at][1].affinity
        if not affinity or self._by_existing_pods(at):
            return
        found = self._matching_values(affinity)
        keys = tuple(found)
        values = tuple(frozenset(found[key]) for key in keys)
        is_not_requeued = not all(_is_requeued(term, self._namespace) for term in affinity)
        yield RequiredAffinity(at, keys, values, self._partners(affinity), is_not_requeued)

    def anti_affinity(self) -> frozenset[AntiAffinity]:
        """Return which groups must not be near which, both ways."""
        pairs = set()
        for at, (_, shape) in enumerate(self._groups):
            for term in shape.anti_affinity:
                for other in self._partners((term,)):
                    pairs |= {AntiAffinity(at, other, term.key), AntiAffinity(other, at, term.key)}
        return frozenset(pairs)

    def spread_rules(self, at: int) -> Iterator[tuple[SpreadRule, SpreadRule | None]]:
        """Return what the spread constraints of a group mean, as it came and as it is pinned."""
        shape = self._groups[at][1]
        if shape.spread:
            counted = [self._partners((each.counted,)) for each in shape.spread]
            existing, priority = self._existing_pods, self._priority
            around = [existing.spread_counts(each.counted, priority) for each in shape.spread]
            yield from rules_of(at, shape, counted, around, self._columns)

    def _partners(self, terms: tuple[PodTerm, ...]) -> frozenset[int]:
        """Return the groups of the gang that all of the terms select."""
        if terms not in self._selected:
            groups = range(len(self._groups))
            self._selected[terms] = frozenset(at for at in groups if self._selects(terms, at))
        return self._selected[terms]

    def _selects(self, terms: tuple[PodTerm, ...], at: int) -> bool:
        """Say whether the terms select the pods of a group, all of them or none."""
        verdicts = {self._existing_pods.picks(terms, kind) for kind in self._kinds_for(terms, at)}
        if len(verdicts) > 1:
            raise PartlySelectedError(self._groups[at][0])
        return True in verdicts

    def _kinds_for(self, terms: tuple[PodTerm, ...], at: int) -> frozenset[PodKind]:
        """Return the pods of a group with those labels only that the terms ask for.

        Each pod may have labels of its own, and there are many terms: mostly one kind is left.
        """
        keys = frozenset(each.key for term in terms for each in term.selector)
        if (at, keys) not in self._relevant:
            self._relevant[at, keys] = frozenset(
                (namespace, tuple(label for label in labels if label[0] in keys))
                for namespace, labels in self._kinds[self._groups[at]]
            )
        return self._relevant[at, keys]

    def _matching_values(self, terms: tuple[PodTerm, ...]) -> Mapping[str, tuple[str, ...]]:
        """Return, by key, the values of nodes with existing pods that all the terms select."""
        nodes = self._existing_pods.certain_nodes_of(terms)
        return {term.key: self._values(term.key, nodes) for term in terms}

    def _values(self, key: str, nodes: Iterable[str]) -> tuple[str, ...]:
        """Return the values that the label has on those of the nodes that are there."""
        index, all_nodes = self._columns.index, self._columns.nodes
        found = {all_nodes[index[name]].labels.get(key) for name in nodes if name in index}
        return tuple(sorted(value for value in found if value is not None))


def _is_requeued(term: PodTerm, namespace: str) -> bool:
    """Say whether kube-scheduler tries a refused pod again when one of the namespace comes.

    To decide that, its queueing hint asks the namespace selector without the namespace's labels
    (isSchedulableAfterPodChange of plugin InterPodAffinity): most selectors then select nothing,
    and the pod waits up to five minutes, until all unschedulable pods are tried again.
    """
    selector = term.namespace_selector
    return namespace in term.namespaces or (selector is not None and selects(selector, {}))
