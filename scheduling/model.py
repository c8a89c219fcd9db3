"""What are the nouns of the core, and what does each one hold?

Everything here is a value: frozen, compared by content, free of clocks and clients. Amounts
are whole numbers: milli-CPU for `cpu`, base units (bytes, devices, pods) for the rest.
A pod's request for one pod slot is written into its requests as `pods: 1`, so that slots
are one more resource and no special case.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from scheduling.ports import is_port

T = TypeVar("T")

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

LOWEST_PRIORITY, HIGHEST_PRIORITY = -(2**31), 2**31 - 1
"""Priorities are of 32 bits."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node; `value` is empty where the node gives none."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod as the API defaults it: `operator` is Equal where none was given.

    An empty `key` with Exists tolerates every taint; an empty `effect` matches all effects.
    """

    key: str
    operator: str
    value: str
    effect: str


NODE_NAME = "the name of the node"
"""In a bound: that, and not one of its labels, whose keys have no blanks."""


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
    """Pods whose company somebody wants or shuns, within one value of the node label `key`.

    They are those that the selector picks in one of the namespaces, or in a namespace that the
    namespace selector picks (None: in no other; without requirements: in all).
    """

    key: str
    selector: tuple[Requirement, ...]
    namespaces: tuple[str, ...]
    namespace_selector: tuple[Requirement, ...] | None = None


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """Within one value of the key, at most `max_skew` more pods that `counted` picks than least.

    The least is taken over the values of nodes that count: those with the keys of all the
    constraints of the pod and, as it heeds them, with the node affinity and the taints that suit
    the pod; it is 0 where fewer values than `min_domains` are found.
    """

    counted: PodTerm
    max_skew: int
    min_domains: int = 1
    heeds_affinity: bool = True
    heeds_taints: bool = False

    @property
    def binds_pinned(self) -> bool:
        """Say whether kube-scheduler still minds it once the pod is pinned to its node.

        The pin is node affinity and leaves one node to count, where nothing is above the least.
        """
        return not self.heeds_affinity or self.min_domains > 1


class HashedOnce(tuple[T, ...]):  # noqa: SLOT001 # the hash is kept in the instance
    """As many things as there are nodes perhaps: hashed once, for they are looked up often.

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
class Reach:
    """What one volume claim leaves of the choice of nodes: those that one of the terms matches.

    `predicate` is the plugin of kube-scheduler that asks. `claim` says which claim it is and, where
    there are no terms and so no node is left, why.
    """

    predicate: str
    claim: str
    terms: tuple[NodeTerm, ...]


@dataclass(frozen=True)
class PodShape:
    """What of a pod matters to the scheduler: pods of one shape are interchangeable.

    `requests` is sorted by resource name, without zeros, `pods: 1` included. `node_affinity`
    is the ORed list of required terms; None where the pod has no required node affinity (an
    empty tuple would match nothing), `added_affinity` the same of what the pod's scheduler adds of
    itself: a node must match one of each. `features` are those that a node must declare, sorted.
    `unsupported` names the constraints of the pod that the core does not model, sorted; such a
    shape is never placed. `near` and `apart` are the terms of required affinity and anti-affinity
    between pods, `spread` how they are to be spread. `volumes` names the claims that pods of the
    shape mount, and their generic ephemeral volumes, sorted.

    `bounds`, `inside` and `reach` are no part of the pod, and no part of the key either: they are
    what pods around (`neighbours`) and volumes (`volumes`) leave of the choice of nodes at one
    moment, and the domain that its gang is tried in (`topology`). Nor is `avoided`: nodes, sorted,
    that are not to be tried now, for whatever reason the caller has. `came_as` is the key of the
    shape before its volumes were looked at.
    """

    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    added_affinity: tuple[NodeTerm, ...] | None = None
    features: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[str, ...] = ()
    bounds: tuple[Requirement, ...] = ()
    inside: tuple[Requirement, ...] = ()
    reach: tuple[Reach, ...] = ()
    avoided: tuple[str, ...] = field(default=(), repr=False)
    came_as: str = ""

    @cached_property
    def key(self) -> str:
        """Short content hash, equal in every process: a placement names shapes by it."""
        if self.came_as:
            return self.came_as
        if self.bounds or self.inside:
            return replace(self, bounds=(), inside=()).key
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    @cached_property
    def told_apart_by(self) -> HashedOnce[Hashable]:
        """Return all of it that tells nodes apart, the room on them left aside."""
        terms = self.node_affinity, self.added_affinity
        keys = tuple(each.counted.key for each in self.spread)
        reach = tuple((each.predicate, each.terms) for each in self.reach)
        rest = self.features, keys, self.bounds, self.inside, self.avoided, reach
        return HashedOnce((self.tolerations, self.node_selector, *terms, *rest))

    @cached_property
    def fitting(self) -> HashedOnce[Hashable]:
        """Return all of it that says how often it fits on each node: many shapes have it equal."""
        return HashedOnce((self.requests, self.told_apart_by))

    @cached_property
    def amounts(self) -> Mapping[str, int]:
        """Return its requests by resource."""
        return dict(self.requests)

    @cached_property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """Return the host ports among its requests."""
        return tuple(each for each in self.requests if is_port(each[0]))

    @cached_property
    def counted(self) -> tuple[tuple[str, int], ...]:
        """Return its requests without host ports: what nodes have in numbers."""
        if not self.ports:
            return self.requests
        return tuple(each for each in self.requests if not is_port(each[0]))

    @property
    def strict(self) -> tuple[PodTerm, ...]:
        """Return whom the constraints count that bind the pod even when it is pinned."""
        return tuple(each.counted for each in self.spread if each.binds_pinned)

    def __hash__(self) -> int:
        """Hash once per object: a cycle looks shapes up thousands of times."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        terms = (self.node_affinity, self.added_affinity)
        moment = (self.bounds, self.inside, self.reach, self.avoided)
        rest = (self.tolerations, self.features, self.volumes, *moment)
        return hash((self.requests, self.node_selector, *terms, *rest))


@dataclass(frozen=True)
class Node:
    """A node as the scheduler judges it; `allocatable` holds `pods` like any other resource."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Mapping[str, int]
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """`count` pods of one shape in one pod set; `replica` is set only where numOfHosts > 1."""

    pod_set: str
    replica: str
    shape: PodShape
    count: int


@dataclass(frozen=True, slots=True)
class GangKey:
    """Namespace and name of a gang, those of its RayCluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Print it as kubectl does: namespace/name."""
        return f"{self.namespace}/{self.name}"


class Mount(NamedTuple):
    """A claim that a pod mounts; of a generic ephemeral volume also its name and the pod's uid."""

    claim: str
    volume: str = ""
    owner: str = ""


class Member(NamedTuple):
    """A waiting pod: its pod set, shape, labels, sorted, replica as in `Group`, and claims."""

    pod_set: str
    shape: PodShape
    labels: tuple[tuple[str, str], ...]
    replica: str = ""
    mounts: tuple[Mount, ...] = ()


class Occupied(NamedTuple):
    """A node on which a pod of a gang is, or has room already."""

    pod_set: str
    replica: str
    node: str


@dataclass(frozen=True, slots=True)
class Topology:
    """Within one value of which node labels pods of a gang are to be together.

    `required` and `preferred` are for all pods of the `pod_sets`, `replica` is for the pods of each
    of their replicas; each is the key of a label, empty where nothing is asked. `occupied`, sorted,
    is where pods of these sets are: from there the rest of the gang may not stray.
    """

    pod_sets: tuple[str, ...]
    required: str = ""
    preferred: str = ""
    replica: str = ""
    occupied: tuple[Occupied, ...] = ()


@dataclass(frozen=True, slots=True)
class Sharing:
    """Pods of the minimum that share claims which are not bound yet.

    The first of them to be bound decides where the volumes are; from there they are reached by all
    nodes that have its values of all the `keys`. `certain` says that no other node reaches them.
    `claims` is how people call them.
    """

    pod_sets: tuple[str, ...]
    keys: tuple[str, ...]
    claims: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class PendingGang:
    """A gang that asks for room in this cycle.

    `minimum` is what must be placed at once (for a gang that has a placement already: what of
    its minimum has lost its room). `surplus` are units (whole replicas) that are placed one
    after the other as long as they fit, only after the minimum. `created` is the creation
    time in seconds since the epoch; together with the name it makes the order total.
    `pod_priority` is the lowest that kube-scheduler knows of its pods: what is nominated with no
    lower one is in their way. `members` are the waiting pods one by one: their labels and claims
    are asked only where they matter. `topology` is None where the pods may be anywhere. `setbacks`
    says how often of late the gang had room and gave it back without having run. `sharing` is no
    part of the gang: it is what volumes mean to it at one moment (`mounting`).
    """

    key: GangKey
    priority: int
    created: float
    minimum: tuple[Group, ...]
    surplus: tuple[tuple[Group, ...], ...] = ()
    members: tuple[Member, ...] = ()
    pod_priority: int = LOWEST_PRIORITY
    topology: Topology | None = None
    setbacks: int = 0
    sharing: Sharing | None = None

    def groups(self) -> Iterator[Group]:
        """Return all groups, of the minimum and of the surplus."""
        yield from self.minimum
        for unit in self.surplus:
            yield from unit

    def reshaped(self, shape: Callable[[Group | Member], PodShape]) -> "PendingGang":
        """Return the gang with the shapes that `shape` gives to its groups and members."""

        def changed(groups: tuple[Group, ...]) -> tuple[Group, ...]:
            return tuple(Group(g.pod_set, g.replica, shape(g), g.count) for g in groups)

        return replace(
            self,
            minimum=changed(self.minimum),
            surplus=tuple(map(changed, self.surplus)),
            members=tuple(Member(each.pod_set, shape(each), *each[2:]) for each in self.members),
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where the pods of one shape (and replica) of a pod set go: node name -> number of pods.

    `requests` are those of the shape, so that the room stays reserved even when no pod of the
    shape exists for the moment. The pods are released in their `turn`: once all pods of the gang
    that have an earlier one are bound.
    """

    pod_set: str
    replica: str
    shape: str
    requests: tuple[tuple[str, int], ...]
    nodes: tuple[tuple[str, int], ...]
    turn: int = 0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Placement:
    """The assignments of a whole gang; written down, it is the gang's reservation.

    What is worked out of one is kept for as long as it lives (`bounded.while_alive`).
    """

    assignments: tuple[Assignment, ...] = field(default=())
