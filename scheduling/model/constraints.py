"""Tolerations, terms and spread constraints: what a pod may ask of nodes and of other pods.

Everything here is a value: frozen, compared by content, free of clocks and clients.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

T = TypeVar("T")

NODE_NAME = "the name of the node"
"""A key that stands for the name of the node; keys of labels have no blanks."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod as the API defaults it: `operator` is Equal where none was given.

    An empty `key` with Exists tolerates every taint; an empty `effect` matches all effects.
    """

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node selector term: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One nodeSelectorTerm: all its requirements hold, on labels and on fields (metadata.name).

    A term with neither matches no node.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A term of affinity, anti-affinity or spread: pods, by values of the node label `key`.

    It selects pods in one of the namespaces, or in a namespace that the namespace selector selects
    (None: in no other; without requirements: in all).
    """

    key: str
    selector: tuple[Requirement, ...]
    namespaces: tuple[str, ...]
    namespace_selector: tuple[Requirement, ...] | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """Within one value of the key, at most `max_skew` more `counted` pods than the global minimum.

    The minimum is taken over the values of nodes that count: those with the keys of all the
    constraints of the pod and, where it honors them, with the node affinity and the taints that
    suit the pod; it is 0 where fewer values than `min_domains` are found.
    """

    counted: PodTerm
    max_skew: int
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    @property
    def binds_pinned(self) -> bool:
        """Say whether kube-scheduler still checks it once the pod is pinned to its node.

        The pin is node affinity and leaves one node to count, where nothing is above the least.
        """
        return not self.honors_affinity or self.min_domains > 1


class HashedOnce(tuple[T, ...]):  # noqa: SLOT001 # the hash is kept in the instance
    """A long tuple, perhaps one item for each node, that is hashed once.

    Equal to any tuple of the same things.
    """

    def __hash__(self) -> int:
        """Return the hash of the tuple."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()


class NodeTerms(HashedOnce[NodeTerm]):
    """Alternatives."""


class NodeNames(HashedOnce[str]):
    """Names of nodes, sorted."""


@dataclass(frozen=True, slots=True)
class VolumeNodeRestriction:
    """What one volume claim leaves of the choice of nodes: those that one of the terms matches.

    `predicate` is the plugin of kube-scheduler that asks. `claim` says which claim it is and, where
    there are no terms and so no node is left, why.
    """

    predicate: str
    claim: str
    terms: tuple[NodeTerm, ...]
