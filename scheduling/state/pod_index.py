"""Indexes existing and assumed pods by namespace and labels; answers terms per node.

Plugins InterPodAffinity and PodTopologySpread ask in terms: pods that a selector picks in some
namespaces, within one value of a node label. `PodIndex` keeps what answers a term from events, by
kinds of pods (equal namespace and labels) and by terms of existing anti-affinity, never by single
pods. Once asked for, an answer is kept up to date. `ExistingPods` is the index at one moment, with
the pods beside it that a cycle assumes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TypeVar

from scheduling.model.constraints import PodTerm
from scheduling.model.labels import selects
from scheduling.model.pod import LOWEST_PRIORITY
from scheduling.state.bounded_cache import MIB, SHARE, BoundedCache, weight

Labels = tuple[tuple[str, str], ...]
PodKind = tuple[str, Labels]
"""Namespace and labels, sorted."""

K = TypeVar("K", bound=Hashable)

TERMS_KEPT = 256
"""Answers kept; a pod event is compared with each of them."""

TERMS_BYTES = 4 * MIB
"""What the terms that they answer may take; the answers are counts by node."""


class Presence(Enum):
    """How a pod is on its node: spread constraints count only pods that are bound and stay."""

    BOUND = "bound"
    LEAVING = "being deleted"
    NOMINATED = "nominated, and it cannot lose its room"
    NOMINATED_AT_PRIORITY = "nominated, and pods of a higher priority may take its room"


_CERTAIN = (Presence.BOUND, Presence.LEAVING)
"""What satisfies affinity; of a nominated pod it is not certain that it will be bound."""

_IN_THE_WAY = (*_CERTAIN, Presence.NOMINATED)
"""What anti-affinity avoids, whatever the priority."""


@dataclass(frozen=True, slots=True)
class NominatedPod:
    """A pod that is nominated to a node, and in the way there of pods up to its priority."""

    kind: PodKind
    anti_affinity: tuple[PodTerm, ...]
    node: str
    priority: int


@dataclass(frozen=True, slots=True)
class AssumedPods:
    """Pods that have room on a node and are not bound to it yet; each is of one of the kinds.

    `strict` are the counts that must not move before it is bound.
    """

    kinds: frozenset[PodKind]
    node: str
    anti_affinity: tuple[PodTerm, ...] = ()
    pinned_spread: tuple[PodTerm, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class SpreadCounts:
    """Pods that a term picks, per node: bound, assumed, and possible ones.

    Of `possible` pods the labels are not known for certain. `nominated` ones count on their own
    node alone.
    """

    bound: Counter[str]
    assumed: Counter[str]
    possible: Counter[str]
    nominated: Counter[str]

    def all(self) -> tuple[Counter[str], ...]:
        """Return the counts of all kinds."""
        return self.bound, self.assumed, self.possible, self.nominated


class PodIndex:
    """Pods by namespace, labels and node, kept from events by one owner; nodes may be unknown."""

    def __init__(self) -> None:
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._nodes: dict[tuple[Presence, str], dict[PodKind, Counter[str]]] = {}
        self._anti_affinity: dict[PodTerm, Counter[str]] = {}
        self._nominated: Counter[NominatedPod] = Counter()
        self._answers: BoundedCache[tuple[PodTerm, ...], dict[Presence, Counter[str]]]
        self._answers = BoundedCache(TERMS_BYTES, _weight_of_terms, TERMS_KEPT)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Take in the labels of a namespace; None where it is gone."""
        if self._namespaces.get(name) == labels:
            return
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        self._answers.clear()

    def use(
        self,
        kind: PodKind,
        anti_affinity: Iterable[PodTerm],
        node: str,
        sign: int,
        presence: Presence = Presence.BOUND,
    ) -> None:
        """Add (+1) or take back (-1) a pod of this kind, with its anti-affinity, on a node.

        Anti-affinity of a nominated pod counts as if it were bound, and so does anti-affinity to
        it; affinity cannot be satisfied by it, for it may never be bound there.
        """
        for term in anti_affinity:
            _count(self._anti_affinity, term, node, sign)
        self._put(kind, node, sign, presence)

    def nominate(self, pod: NominatedPod, sign: int) -> None:
        """Add (+1) or take back (-1) a nominated pod that may lose its room there.

        kube-scheduler counts it only on that node, and only for pods of no higher priority.
        """
        self._nominated[pod] += sign
        if not self._nominated[pod]:
            del self._nominated[pod]
        self._put(pod.kind, pod.node, sign, Presence.NOMINATED_AT_PRIORITY)

    def nominated_for(self, priority: int) -> Iterator[NominatedPod]:
        """Yield the nominated pods, one by one, that are in the way of pods of a priority."""
        return (pod for pod in self._nominated.elements() if pod.priority >= priority)

    def _put(self, kind: PodKind, node: str, sign: int, presence: Presence) -> None:
        here = presence, kind[0]
        _count(self._nodes.setdefault(here, {}), kind, node, sign)
        if not self._nodes[here]:
            del self._nodes[here]
        for terms, answer in self._answers.items():
            if self.picks(terms, kind):
                answer[presence][node] += sign

    def picks(self, terms: Iterable[PodTerm], kind: PodKind) -> bool:
        """Say whether all of the terms pick pods of this kind."""
        namespace, labels = kind
        return all(
            self._reaches(term, namespace) and selects(term.selector, dict(labels))
            for term in terms
        )

    def nodes_of(
        self, terms: tuple[PodTerm, ...], presences: Iterable[Presence] = Presence
    ) -> set[str]:
        """Return the nodes with pods that all of the terms pick, of these presences."""
        answer = self.counts(terms)
        return {node for each in presences for node, count in answer[each].items() if count > 0}

    def counts(self, terms: tuple[PodTerm, ...]) -> Mapping[Presence, Counter[str]]:
        """Count the pods per node that all of the terms pick; the answer is not yours to write."""
        return self._answers.remembered(
            terms, lambda: {each: self._looked_up(terms, each) for each in Presence}
        )

    def existing_anti_affinity(self) -> Mapping[PodTerm, Counter[str]]:
        """Return the anti-affinity terms of pods, with the nodes of those pods."""
        return self._anti_affinity

    def _looked_up(self, terms: tuple[PodTerm, ...], presence: Presence) -> Counter[str]:
        found: Counter[str] = Counter()
        for kinds in self._kinds_for(terms, presence):
            for kind, nodes in kinds.items():
                if self.picks(terms, kind):
                    found.update(nodes)
        return found

    def _kinds_for(
        self, terms: tuple[PodTerm, ...], presence: Presence
    ) -> Iterator[Mapping[PodKind, Counter[str]]]:
        """Yield the kinds in the namespaces that a first look at the terms leaves."""
        if terms and terms[0].namespace_selector is None:
            yield from (self._nodes.get((presence, name), {}) for name in {*terms[0].namespaces})
        else:
            yield from (kinds for (each, _), kinds in self._nodes.items() if each is presence)

    def _reaches(self, term: PodTerm, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        if term.namespace_selector is None:
            return False
        return selects(term.namespace_selector, self._namespaces.get(namespace, {}))


def _weight_of_terms(terms: tuple[PodTerm, ...], _: object) -> int:
    return weight(terms, TERMS_BYTES // SHARE)


def _count(counts: dict[K, Counter[str]], key: K, node: str, sign: int) -> None:
    """Count on a node; what comes to nothing is forgotten."""
    nodes = counts.setdefault(key, Counter())
    nodes[node] += sign
    if not nodes[node]:
        del nodes[node]
    if not nodes:
        del counts[key]


class ExistingPods:
    """The index at one moment of a cycle, with assumed pods beside it."""

    def __init__(self, index: PodIndex, assumed: Iterable[AssumedPods] = ()) -> None:
        self._index = index
        self._assumed: dict[frozenset[PodKind], Counter[str]] = {}
        self._pinned_spread: set[PodTerm] = set()
        self._assumed_anti_affinity: defaultdict[PodTerm, set[str]] = defaultdict(set)
        self.assume(assumed)

    def assume(self, pods: Iterable[AssumedPods]) -> None:
        """Count pods that this cycle gives room to."""
        for each in pods:
            self._pinned_spread.update(each.pinned_spread)
            for term in each.anti_affinity:
                self._assumed_anti_affinity[term].add(each.node)
            self._assumed.setdefault(each.kinds, Counter())[each.node] += each.count

    def picks(self, terms: Iterable[PodTerm], kind: PodKind) -> bool:
        """Say whether all of the terms pick pods of this kind."""
        return self._index.picks(terms, kind)

    def nodes_of(self, terms: tuple[PodTerm, ...]) -> set[str]:
        """Return the nodes with existing or assumed pods that all of the terms may pick.

        Pods that are nominated at a priority are left out: see `nominated_for`.
        """
        return self._index.nodes_of(terms, _IN_THE_WAY) | self._assumed_on(terms, any)

    def certain_nodes_of(self, terms: tuple[PodTerm, ...]) -> set[str]:
        """Return the nodes with pods that the terms pick for certain, no nominated ones."""
        return self._index.nodes_of(terms, _CERTAIN) | self._assumed_on(terms, all)

    def _assumed_on(
        self, terms: tuple[PodTerm, ...], enough: Callable[[Iterable[bool]], bool]
    ) -> set[str]:
        found = (
            nodes
            for kinds, nodes in self._assumed.items()
            if enough(self.picks(terms, kind) for kind in kinds)
        )
        return set(chain.from_iterable(found))

    def existing_anti_affinity(self) -> dict[PodTerm, set[str]]:
        """Return the anti-affinity terms of pods, with the nodes of those pods."""
        found = {term: set(nodes) for term, nodes in self._index.existing_anti_affinity().items()}
        for term, nodes in self._assumed_anti_affinity.items():
            found[term] = found.get(term, set()) | nodes
        return found

    def constrain_others(self) -> bool:
        """Say whether they constrain incoming pods; where not, only a gang's own terms count."""
        by_nominated = any(pod.anti_affinity for pod in self.nominated_for(LOWEST_PRIORITY))
        return (
            bool(
                self._index.existing_anti_affinity()
                or self._pinned_spread
                or self._assumed_anti_affinity
            )
            or by_nominated
        )

    def nominated_for(self, priority: int) -> Iterator[NominatedPod]:
        """Yield the nominated pods that are in the way of pods of a priority, each on its node."""
        return self._index.nominated_for(priority)

    def spread_counts(self, term: PodTerm, priority: int) -> SpreadCounts:
        """Count the pods that a spread constraint counts, for pods of a priority.

        It picks pods in its one namespace, and none that are being deleted.
        """
        counts = self._index.counts((term,))
        assumed, possible = Counter[str](), Counter[str]()
        at_priority = (pod for pod in self.nominated_for(priority) if self.picks((term,), pod.kind))
        nominated = counts[Presence.NOMINATED] + Counter(pod.node for pod in at_priority)
        for kinds, nodes in self._assumed.items():
            picked = {self.picks((term,), kind) for kind in kinds}
            if True in picked:
                (possible if False in picked else assumed).update(nodes)
        return SpreadCounts(counts[Presence.BOUND], assumed, possible, nominated)

    def assumed_in(self, terms: tuple[PodTerm, ...]) -> set[str]:
        """Return the namespaces of assumed pods that all of the terms may pick."""
        kinds = set(chain.from_iterable(self._assumed))
        return {kind[0] for kind in kinds if self.picks(terms, kind)}

    def must_wait(self, kinds: Iterable[PodKind]) -> bool:
        """Say whether pods of these kinds would change a count that must not change now."""
        return any(self.picks((term,), kind) for term in self._pinned_spread for kind in kinds)
