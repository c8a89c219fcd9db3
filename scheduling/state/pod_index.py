"""Indexes existing and assumed pods by namespace and labels; answers terms per node.

Plugins InterPodAffinity and PodTopologySpread speak in terms: pods that a selector picks in some
namespaces, within one value of a node label. The table keeps what answers a term from events, by
kinds of pods (equal namespace and labels) and by term of those that keep others away, never by
single pods. An answer is kept up to date once it was asked for.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TypeVar

from scheduling.model.constraints import PodTerm, Requirement
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
    """How a pod is on its node: spread constraints count only those that are there to stay."""

    BOUND = "bound"
    LEAVING = "being deleted"
    NOMINATED = "expected, and nobody can take its room"
    NOMINATED_AT_PRIORITY = "expected, and passed over by pods of a higher priority"


_SHUNNED = (Presence.BOUND, Presence.LEAVING, Presence.NOMINATED)


@dataclass(frozen=True, slots=True)
class NominatedPod:
    """A pod that is expected on a node, in the way there of pods up to its priority."""

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
    """Pods that a term picks, per node: bound to stay, promised room, and those that may come.

    `nominated` are expected on a node, and asked about there alone.
    """

    bound: Counter[str]
    due: Counter[str]
    perhaps: Counter[str]
    nominated: Counter[str]


class PodIndex:
    """Who is where, kept from events by one owner; nodes need not be known."""

    def __init__(self) -> None:
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._nodes: dict[tuple[Presence, str], dict[PodKind, Counter[str]]] = {}
        self._apart: dict[PodTerm, Counter[str]] = {}
        self._yielding: Counter[NominatedPod] = Counter()
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
        apart: Iterable[PodTerm],
        node: str,
        sign: int,
        stay: Presence = Presence.BOUND,
    ) -> None:
        """Add (+1) or take back (-1) a pod of this kind, with those it keeps away, on a node.

        One that is nominated keeps away and is shunned as if it were there, but may never get
        there: nobody can count on its company.
        """
        for term in apart:
            _count(self._apart, term, node, sign)
        self._stand(kind, node, sign, stay)

    def nominate(self, pod: NominatedPod, sign: int) -> None:
        """Add (+1) or take back (-1) a pod that is expected on a node and may lose its room there.

        kube-scheduler asks of it only on that node, and only for pods of no higher priority.
        """
        self._yielding[pod] += sign
        if not self._yielding[pod]:
            del self._yielding[pod]
        self._stand(pod.kind, pod.node, sign, Presence.NOMINATED_AT_PRIORITY)

    def nominated_for(self, priority: int) -> Iterator[NominatedPod]:
        """Yield the expected pods, one by one, that are in the way of pods of a priority."""
        return (pod for pod in self._yielding.elements() if pod.priority >= priority)

    def _stand(self, kind: PodKind, node: str, sign: int, stay: Presence) -> None:
        here = stay, kind[0]
        _count(self._nodes.setdefault(here, {}), kind, node, sign)
        if not self._nodes[here]:
            del self._nodes[here]
        for terms, answer in self._answers.items():
            if self.picks(terms, kind):
                answer[stay][node] += sign

    def picks(self, terms: Iterable[PodTerm], kind: PodKind) -> bool:
        """Say whether all of the terms pick pods of this kind."""
        namespace, labels = kind
        return all(
            self._reaches(term, namespace) and selects(term.selector, dict(labels))
            for term in terms
        )

    def nodes_of(
        self, terms: tuple[PodTerm, ...], stays: Iterable[Presence] = Presence
    ) -> set[str]:
        """Return the nodes with pods that all of the terms pick and that are there like this."""
        answer = self.counts(terms)
        return {node for stay in stays for node, count in answer[stay].items() if count > 0}

    def counts(self, terms: tuple[PodTerm, ...]) -> Mapping[Presence, Counter[str]]:
        """Count the pods per node that all of the terms pick; the answer is not yours to write."""
        return self._answers.remembered(
            terms, lambda: {stay: self._looked_up(terms, stay) for stay in Presence}
        )

    def existing_anti_affinity(self) -> Mapping[PodTerm, Counter[str]]:
        """Return the terms of pods that keep others away, with the nodes of those pods."""
        return self._apart

    def _looked_up(self, terms: tuple[PodTerm, ...], stay: Presence) -> Counter[str]:
        found: Counter[str] = Counter()
        for kinds in self._kinds_for(terms, stay):
            for kind, nodes in kinds.items():
                if self.picks(terms, kind):
                    found.update(nodes)
        return found

    def _kinds_for(
        self, terms: tuple[PodTerm, ...], stay: Presence
    ) -> Iterator[Mapping[PodKind, Counter[str]]]:
        """Yield the kinds in the namespaces that a first look at the terms leaves."""
        if terms and terms[0].namespace_selector is None:
            yield from (self._nodes.get((stay, name), {}) for name in {*terms[0].namespaces})
        else:
            yield from (kinds for (each, _), kinds in self._nodes.items() if each is stay)

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


def selects(selector: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Say whether labels satisfy a selector; one without requirements picks everything."""
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in selector)


def _holds(requirement: Requirement, value: str | None) -> bool:
    """Judge one requirement; an operator that the API does not know never gets here."""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None


class ExistingPods:
    """The table at one moment of a cycle, with the pods that are promised room beside it."""

    def __init__(self, table: PodIndex, promised: Iterable[AssumedPods] = ()) -> None:
        self._table = table
        self._due: dict[frozenset[PodKind], Counter[str]] = {}
        self._strict: set[PodTerm] = set()
        self._existing_anti_affinity: defaultdict[PodTerm, set[str]] = defaultdict(set)
        self.assume(promised)

    def assume(self, pods: Iterable[AssumedPods]) -> None:
        """Count pods that this cycle gives room to."""
        for each in pods:
            self._strict.update(each.pinned_spread)
            for term in each.anti_affinity:
                self._existing_anti_affinity[term].add(each.node)
            self._due.setdefault(each.kinds, Counter())[each.node] += each.count

    def picks(self, terms: Iterable[PodTerm], kind: PodKind) -> bool:
        """Say whether all of the terms pick pods of this kind."""
        return self._table.picks(terms, kind)

    def nodes_of(self, terms: tuple[PodTerm, ...]) -> set[str]:
        """Return the nodes with pods, bound or promised, that all of the terms may pick.

        Pods that yield are left out: see `yielding`.
        """
        return self._table.nodes_of(terms, _SHUNNED) | self._promised_on(terms, any)

    def certain_nodes_of(self, terms: tuple[PodTerm, ...]) -> set[str]:
        """Return those with pods that the terms pick for certain; nominated only is not certain."""
        stays = (Presence.BOUND, Presence.LEAVING)
        return self._table.nodes_of(terms, stays) | self._promised_on(terms, all)

    def _promised_on(
        self, terms: tuple[PodTerm, ...], enough: Callable[[Iterable[bool]], bool]
    ) -> set[str]:
        found = (
            nodes
            for kinds, nodes in self._due.items()
            if enough(self.picks(terms, kind) for kind in kinds)
        )
        return set(chain.from_iterable(found))

    def existing_anti_affinity(self) -> dict[PodTerm, set[str]]:
        """Return the terms of pods that keep others away, with the nodes of those pods."""
        found = {term: set(nodes) for term, nodes in self._table.existing_anti_affinity().items()}
        for term, expected in self._existing_anti_affinity.items():
            found[term] = found.get(term, set()) | expected
        return found

    def constrain_others(self) -> bool:
        """Say whether anybody minds who comes; where not, only a gang's own terms count."""
        yielding = any(pod.anti_affinity for pod in self.nominated_for(LOWEST_PRIORITY))
        return (
            bool(
                self._table.existing_anti_affinity() or self._strict or self._existing_anti_affinity
            )
            or yielding
        )

    def nominated_for(self, priority: int) -> Iterator[NominatedPod]:
        """Yield the expected pods that are in the way of pods of a priority, each on its node."""
        return self._table.nominated_for(priority)

    def spread_counts(self, term: PodTerm, priority: int) -> SpreadCounts:
        """Count whom a spread constraint of pods of a priority counts in its one namespace.

        Not those that are being deleted.
        """
        counts = self._table.counts((term,))
        due, perhaps = Counter[str](), Counter[str]()
        yielding = (pod for pod in self.nominated_for(priority) if self.picks((term,), pod.kind))
        nominated = counts[Presence.NOMINATED] + Counter(pod.node for pod in yielding)
        for kinds, nodes in self._due.items():
            picked = {self.picks((term,), kind) for kind in kinds}
            if True in picked:
                (perhaps if False in picked else due).update(nodes)
        return SpreadCounts(counts[Presence.BOUND], due, perhaps, nominated)

    def assumed_in(self, terms: tuple[PodTerm, ...]) -> set[str]:
        """Return the namespaces of promised pods that all of the terms may pick."""
        kinds = set(chain.from_iterable(self._due))
        return {kind[0] for kind in kinds if self.picks(terms, kind)}

    def must_wait(self, kinds: Iterable[PodKind]) -> bool:
        """Say whether pods of these kinds would move a count that must not move now."""
        return any(self.picks((term,), kind) for term in self._strict for kind in kinds)
