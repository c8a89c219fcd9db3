"""Whom do the default constraints of a scheduler's profile count?

As in plugin PodTopologySpread of kube-scheduler 1.36 (`buildDefaultConstraints`): they bind a pod
that has no topology spread constraints of its own, and count the pods with all labels that the
Services of its namespace ask for which select it. A pod that no such Service selects is not bound
at all. Controllers of Kubernetes' own (ReplicaSets and the like) would add their selectors to that;
the pods of a Ray cluster have none of these.

Which Services there are may change while a pod waits, so its shape keeps its key, and says whom it
counts only for the moment of a cycle.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from scheduling.bounded import MIB, BoundedCache
from scheduling.company import Labels
from scheduling.model import GangKey, PendingGang, PodShape, PodTerm, Requirement

Selector = tuple[Requirement, ...]
Unit = tuple[str, PodShape]

TOLD_APART = (
    "default topology spread constraints of pods that different Services select (give the pods "
    "topologySpreadConstraints of their own)"
)


SELECTORS_BYTES = 4 * MIB
"""Answers kept until a Service changes: equal pods are asked about thousands of times."""


@dataclass(frozen=True, slots=True)
class Service:
    """A Service; `selector`, sorted, is empty where it picks nobody by labels."""

    namespace: str
    name: str
    selector: Labels


class ServiceTable:
    """The Services there are, kept from events by one owner."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Service] = {}
        self._by_label: defaultdict[tuple[str, tuple[str, str]], dict[str, Service]]
        self._by_label = defaultdict(dict)
        self._keys: Mapping[str, Set[str]] | None = None
        self._selectors: BoundedCache[tuple[str, Labels], Selector] = BoundedCache(SELECTORS_BYTES)
        self._asked: Mapping[GangKey, tuple[PendingGang, PendingGang]] = {}

    def put(self, service: Service) -> bool:
        """Take in a Service; say whether it is news."""
        key = service.namespace, service.name
        if self._known.get(key) == service:
            return False
        self.drop(*key)
        self._known[key] = service
        if service.selector:
            self._by_label[service.namespace, service.selector[0]][service.name] = service
        return True

    def drop(self, namespace: str, name: str) -> None:
        """Forget a Service; an unknown one is no matter."""
        self._asked, self._keys = {}, None
        self._selectors.clear()
        known = self._known.pop((namespace, name), None)
        if known is not None and known.selector:
            alike = self._by_label[namespace, known.selector[0]]
            del alike[name]
            if not alike:
                del self._by_label[namespace, known.selector[0]]

    def selector(self, namespace: str, labels: Labels) -> Selector:
        """Return what the Services that select a pod ask for, all of them together.

        Labels that no Service of the namespace asks for tell no pods apart.
        """
        self._keys = self._keys_asked_for() if self._keys is None else self._keys
        keys = self._keys.get(namespace, ())
        told = tuple(label for label in labels if label[0] in keys)
        return self._selectors.remembered(
            (namespace, told), lambda: self._asked_together(namespace, told)
        )

    def _keys_asked_for(self) -> Mapping[str, Set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for service in self._known.values():
            found[service.namespace].update(key for key, _ in service.selector)
        return found

    def _asked_together(self, namespace: str, labels: Labels) -> Selector:
        asked: dict[str, str] = {}
        own = frozenset(labels)
        for label in labels:
            for each in self._by_label.get((namespace, label), {}).values():
                if own.issuperset(each.selector):
                    asked.update(each.selector)
        return tuple(Requirement(key, "In", (value,)) for key, value in sorted(asked.items()))

    def spread(self, shape: PodShape, namespace: str, labels: Labels) -> PodShape:
        """Return the shape of a pod with the default constraints that bind it now."""
        if not shape.spread_by_default:
            return shape
        return _spread(shape, namespace, self.selector(namespace, labels))

    def spread_all(self, pending: Sequence[PendingGang]) -> list[PendingGang]:
        """Return the gangs with the default constraints that bind their pods now.

        A gang that is asked about again gets the same answer, the very object, until a Service
        changes.
        """
        before = self._asked
        self._asked = {
            gang.key: known
            if (known := before.get(gang.key)) is not None and known[0] is gang
            else (gang, self._spread_gang(gang))
            for gang in pending
        }
        return [self._asked[gang.key][1] for gang in pending]

    def _spread_gang(self, gang: PendingGang) -> PendingGang:
        shapes = self._shapes(gang)
        if not shapes:
            return gang
        return gang.reshaped(lambda pods: shapes.get((pods.pod_set, pods.shape), pods.shape))

    def _shapes(self, gang: PendingGang) -> dict[Unit, PodShape]:
        """Return what becomes of the shapes with default constraints, per pod set."""
        namespace = gang.key.namespace
        bound = (each for each in gang.groups() if each.shape.spread_by_default)
        kinds: dict[Unit, set[Labels]] = {(each.pod_set, each.shape): set() for each in bound}
        for member in gang.members:
            if (member.pod_set, member.shape) in kinds:
                kinds[member.pod_set, member.shape].add(member.labels)
        return {
            (pod_set, shape): _judged(
                shape, namespace, {self.selector(namespace, k) for k in alike}
            )
            for (pod_set, shape), alike in kinds.items()
        }


def _judged(shape: PodShape, namespace: str, counted: Set[Selector]) -> PodShape:
    """Return a shape whose pods count these; they must all count the same."""
    if len(counted) == 1:
        return _spread(shape, namespace, *counted)
    unsupported = tuple(sorted({*shape.unsupported, TOLD_APART}))
    return replace(shape, unsupported=unsupported, came_as=shape.key)


def _spread(shape: PodShape, namespace: str, counted: Selector) -> PodShape:
    if not counted:
        return shape
    constraints = (
        replace(each, counted=PodTerm(each.counted.key, counted, (namespace,)))
        for each in shape.spread_by_default
    )
    return replace(shape, spread=tuple(constraints), came_as=shape.key)
