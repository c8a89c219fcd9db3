"""InterPodAffinity: what pods on nodes, and its own, leave a gang of the choice of nodes.

What pods around mean is worked out once: it leaves each shape certain values of node labels
(`bounds`), and from there the gang is placed like any other. Anti-affinity counts both ways, as
in plugin InterPodAffinity. What members mean to each other, and what spread constraints leave
(`InternalConstraints`), changes with every pod that is placed; that is for `interdependent`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from scheduling.filters.pod_topology_spread import Rule, as_pinned, rules_of
from scheduling.model.constraints import NODE_NAME, PodTerm, Requirement
from scheduling.model.gang import Group, PendingGang
from scheduling.model.node_restrictions import beside_existing_pods
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodKind, selects

Unit = tuple[str, PodShape]
"""Pods of one shape in one pod set: what terms take for one."""


class PartlySelectedError(Exception):
    """A selector picks some pods of a unit and not others."""

    def __init__(self, pod_set: str) -> None:
        said = "a pod affinity or spread selector matches some of its equal pods and not others"
        remedy = "select by labels that all pods of a group have in common"
        super().__init__(f"{pod_set}: {said} ({remedy})")


class WaitForBindingError(Exception):
    """A unit must wait until others are bound.

    It would move a count that must stand still, or be refused and not tried again.
    """


@dataclass(frozen=True, slots=True)
class RequiredAffinity:
    """A unit's pods go where, per term, its key has a value among `matching_values` or one of a
    partner.

    Where nobody answers the terms yet, the first pod of a unit that is its own partner may go
    anywhere with all the keys. A `is_not_requeued` unit, once refused, is not tried again for a
    partner.
    """

    unit: int
    keys: tuple[str, ...]
    matching_values: tuple[frozenset[str], ...]
    partners: frozenset[int]
    is_not_requeued: bool = False

    @property
    def allows_first_pod(self) -> bool:
        """Say whether the unit may begin a series."""
        return self.unit in self.partners and not any(self.matching_values)


@dataclass(frozen=True, slots=True)
class InternalConstraints:
    """What binds the members of a gang; `shun` holds each pair both ways, `rules` spread them."""

    anti_affinity: frozenset[tuple[int, int, str]] = frozenset()
    affinity: tuple[RequiredAffinity, ...] = ()
    spread: tuple[Rule, ...] = ()

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self.anti_affinity or self.affinity or self.spread)


@dataclass(frozen=True, slots=True)
class GangConstraints:
    """The units of a gang with their bounds, and the bonds between them by position.

    `internal_constraints` hold for the pods as they will be pinned, `as_they_came` leaves that
    aside.
    """

    units: tuple[Unit, ...]
    shapes: tuple[PodShape, ...]
    internal_constraints: InternalConstraints
    as_they_came: InternalConstraints

    def bound(self, gang: PendingGang) -> PendingGang:
        """Return the gang with the bounds in its shapes."""
        surplus = tuple(self._bound(unit) for unit in gang.surplus)
        return replace(gang, minimum=self._bound(gang.minimum), surplus=surplus)

    def _bound(self, groups: Iterable[Group]) -> tuple[Group, ...]:
        at = dict(zip(self.units, self.shapes, strict=True))
        return tuple(replace(each, shape=at[each.pod_set, each.shape]) for each in groups)


def gang_constraints(
    gang: PendingGang, company: ExistingPods, columns: NodeSnapshot
) -> GangConstraints:
    """Work out what company means to the gang.

    Raises PartlySelectedError where that has no answer, WaitForBindingError where it has none yet.
    """
    units = tuple(dict.fromkeys((group.pod_set, group.shape) for group in gang.groups()))
    look = _Look(gang, units, company, columns)
    shapes = tuple(
        beside_existing_pods(shape, look.bounds(at)) for at, (_, shape) in enumerate(units)
    )
    near = tuple(each for at in range(len(units)) for each in look.attractions(at))
    rules = [pair for at in range(len(units)) for pair in look.rules(at)]
    came = InternalConstraints(look.shunned(), near, tuple(rule for rule, _ in rules))
    pinned = replace(came, spread=tuple(rule for pair in rules for rule in as_pinned(*pair)))
    return GangConstraints(units, shapes, pinned, came)


def assumed_pods(gang: PendingGang, placement: Placement) -> Iterator[AssumedPods]:
    """Return the pods of a gang as company, on the nodes of its placement."""
    kinds: dict[tuple[str, str], set[PodKind]] = {}
    shapes: dict[tuple[str, str], PodShape] = {}
    for each in gang.members:
        unit = each.pod_set, each.shape.key
        kinds.setdefault(unit, set()).add((gang.key.namespace, each.labels))
        shapes[unit] = each.shape
    for placed in placement.assignments:
        unit = placed.pod_set, placed.shape
        if unit in kinds:
            of_unit = frozenset(kinds[unit])  # one object for all nodes: its hash is known then
            apart, strict = shapes[unit].anti_affinity, shapes[unit].pinned_spread
            for node, count in placed.nodes:
                yield AssumedPods(of_unit, node, apart, strict, count)


class _Look:
    """One gang among its neighbours."""

    def __init__(
        self,
        gang: PendingGang,
        units: tuple[Unit, ...],
        company: ExistingPods,
        columns: NodeSnapshot,
    ) -> None:
        self._units = units
        self._company = company
        self._columns = columns
        self._namespace = gang.key.namespace
        self._priority = gang.pod_priority
        self._kinds: dict[Unit, set[PodKind]] = {unit: set() for unit in units}
        for each in gang.members:
            if (each.pod_set, each.shape) in self._kinds:
                self._kinds[each.pod_set, each.shape].add((gang.key.namespace, each.labels))
        self._found: dict[tuple[PodTerm, ...], frozenset[int]] = {}
        self._told: dict[tuple[int, frozenset[str]], frozenset[PodKind]] = {}
        if any(company.must_wait(kinds) for kinds in self._kinds.values()):
            raise WaitForBindingError
        if any(self._sleeps_through(shape.affinity) for _, shape in units if shape.affinity):
            raise WaitForBindingError

    def _sleeps_through(self, near: tuple[PodTerm, ...]) -> bool:
        """Say whether pods are due that would not wake a pod which was refused before they came."""
        namespaces = self._company.assumed_in(near)
        return not all(_hears(term, each) for term in near for each in namespaces)

    def bounds(self, at: int) -> tuple[Requirement, ...]:
        """Return the values of labels that pods around leave to a unit."""
        shape = self._units[at][1]
        shunned = [(term, self._company.nodes_of((term,))) for term in shape.anti_affinity]
        shunned += [
            (term, nodes)
            for term, nodes in self._company.existing_anti_affinity().items()
            if self._picked((term,), at)
        ]
        out = {
            Requirement(term.key, "NotIn", self._values(term.key, nodes)) for term, nodes in shunned
        }
        if (
            shape.affinity
            or shape.anti_affinity
            or any(each.values for each in out)
            or self._is_shunned(at)
        ):
            out.add(Requirement(NODE_NAME, "NotIn", self._expecting(at)))
        wanted = self._wanted(at) if shape.affinity else ()
        return (*sorted((each for each in out if each.values), key=repr), *wanted)

    def _is_shunned(self, at: int) -> bool:
        """Say whether another unit keeps this one away; where nobody minds it no plugin asks."""
        return any(
            self._picked((term,), at) for _, shape in self._units for term in shape.anti_affinity
        )

    def _expecting(self, at: int) -> tuple[str, ...]:
        """Return the nodes where a pod is expected that minds the unit, or that it minds."""
        apart = self._units[at][1].anti_affinity
        nodes = set()
        for pod in self._company.nominated_for(self._priority):
            minded = [t.key for t in apart if self._company.picks((t,), pod.kind)]
            minded += [t.key for t in pod.anti_affinity if self._picked((t,), at)]
            if any(self._values(key, (pod.node,)) for key in minded):
                nodes.add(pod.node)
        return tuple(sorted(nodes))

    def _wanted(self, at: int) -> tuple[Requirement, ...]:
        """Return where affinity draws a unit, unless its own gang has a say in that."""
        near = self._units[at][1].affinity
        matching_values = self._anchors(near)
        if self._partners(near) - ({at} if any(matching_values.values()) else set()):
            return ()
        return tuple(Requirement(key, "In", values) for key, values in matching_values.items())

    def attractions(self, at: int) -> Iterator[RequiredAffinity]:
        """Return what draws a unit to members of its own gang."""
        near = self._units[at][1].affinity
        if not near or self._wanted(at):
            return
        matching_values = self._anchors(near)
        keys = tuple(matching_values)
        values = tuple(frozenset(matching_values[key]) for key in keys)
        is_not_requeued = not all(_hears(term, self._namespace) for term in near)
        yield RequiredAffinity(at, keys, values, self._partners(near), is_not_requeued)

    def shunned(self) -> frozenset[tuple[int, int, str]]:
        """Return which units keep which away, both ways."""
        pairs = set()
        for at, (_, shape) in enumerate(self._units):
            for term in shape.anti_affinity:
                for other in self._partners((term,)):
                    pairs |= {(at, other, term.key), (other, at, term.key)}
        return frozenset(pairs)

    def rules(self, at: int) -> Iterator[tuple[Rule, Rule | None]]:
        """Return what the spread constraints of a unit mean, as it came and as it is pinned."""
        shape = self._units[at][1]
        if shape.spread:
            counted = [self._partners((each.counted,)) for each in shape.spread]
            heads = [
                self._company.spread_counts(each.counted, self._priority) for each in shape.spread
            ]
            yield from rules_of(at, shape, counted, heads, self._columns)

    def _partners(self, terms: tuple[PodTerm, ...]) -> frozenset[int]:
        if terms not in self._found:
            units = range(len(self._units))
            self._found[terms] = frozenset(at for at in units if self._picked(terms, at))
        return self._found[terms]

    def _picked(self, terms: tuple[PodTerm, ...], at: int) -> bool:
        """Say whether the terms pick the pods of a unit, all of them or none."""
        verdicts = {self._company.picks(terms, kind) for kind in self._told_by(terms, at)}
        if len(verdicts) > 1:
            raise PartlySelectedError(self._units[at][0])
        return True in verdicts

    def _told_by(self, terms: tuple[PodTerm, ...], at: int) -> frozenset[PodKind]:
        """Return the kinds of a unit with those labels only that the terms ask for.

        Each pod may have labels of its own, and there are many terms: mostly one kind is left.
        """
        keys = frozenset(each.key for term in terms for each in term.selector)
        if (at, keys) not in self._told:
            self._told[at, keys] = frozenset(
                (namespace, tuple(label for label in labels if label[0] in keys))
                for namespace, labels in self._kinds[self._units[at]]
            )
        return self._told[at, keys]

    def _anchors(self, terms: tuple[PodTerm, ...]) -> Mapping[str, tuple[str, ...]]:
        nodes = self._company.certain_nodes_of(terms)
        return {term.key: self._values(term.key, nodes) for term in terms}

    def _values(self, key: str, nodes: Iterable[str]) -> tuple[str, ...]:
        """Return the values that the label has on those of the nodes that are there."""
        index, all_nodes = self._columns.index, self._columns.nodes
        found = {all_nodes[index[name]].labels.get(key) for name in nodes if name in index}
        return tuple(sorted(value for value in found if value is not None))


def _hears(term: PodTerm, namespace: str) -> bool:
    """Say whether kube-scheduler tries a refused pod again for one of the namespace.

    To decide that, it asks the namespace selector without the namespace's labels
    (isSchedulableAfterPodChange of plugin InterPodAffinity): most selectors then pick nothing, and
    the pod waits up to five minutes, until all unschedulable pods are tried again.
    """
    selector = term.namespace_selector
    return namespace in term.namespaces or (selector is not None and selects(selector, {}))
