"""A gang that waits for its placement: its groups, its members, its order in the queue."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from math import inf
from typing import NamedTuple

from scheduling.model.pod import LOWEST_PRIORITY, Mount, PodShape
from scheduling.model.queue import DEFAULT_QUEUE

LAST = 1 << 20
"""Setbacks of a gang that comes after all others, more than any gang has of its own."""

SUBMITTER = "its submitter"
"""In the place of a pod set, no name of which has a blank: of the pod that submits a job once the
gang runs. It needs room beside the gang and is none of it, so that no quota counts it."""


@dataclass(frozen=True, slots=True)
class Group:
    """`count` pods of one shape in one pod set; `replica` is set only where numOfHosts > 1."""

    pod_set: str
    replica: str
    shape: PodShape
    count: int


GroupKey = tuple[str, PodShape]
"""Pod set and shape: what terms select, and claims restrict, as one."""


@dataclass(frozen=True, slots=True)
class GangKey:
    """Namespace and name of a gang, those of its RayCluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Print it as kubectl does: namespace/name."""
        return f"{self.namespace}/{self.name}"


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
    """The node labels within one value of which pods of a gang are to be placed.

    `required` and `preferred` are for all pods of the `pod_sets`, `replica` is for the pods of each
    of their replicas; each is the key of a label, empty where nothing is asked. `occupied`, sorted,
    is where pods of these sets are: the rest of the gang must be in the same domain.
    """

    pod_sets: tuple[str, ...]
    required: str = ""
    preferred: str = ""
    replica: str = ""
    occupied: tuple[Occupied, ...] = ()
    is_own: bool = False
    """Whether gangs that start together with this one have no say in its domain."""
    apart: tuple["Topology", ...] = ()
    """Of gangs that are joined: what each asks for, where that is its own."""

    @property
    def domains(self) -> tuple["Topology", ...]:
        """Return what is asked for, domain by domain."""
        return self.apart or (self,)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Pods of the minimum that share claims which are not bound yet.

    The first of them to be bound decides where the volumes are; from there they are reached by all
    nodes that have its values of all the `keys`. `certain` says that no other node reaches them.
    `claims` names them for messages.
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
    `pod_priority` is the lowest that kube-scheduler knows of its pods: pods nominated with no lower
    priority are in their way. `members` are the waiting pods one by one: their labels and claims
    are asked only where they matter. `topology` is None where the gang asks for none. `setbacks`
    says how often of late the gang had room and gave it back without having run. `sharing` is no
    part of the gang: it follows from its volumes at one moment (`shared_claims`). `queue` is the
    one that it waits in, `duration` how long it is expected to run, in seconds. `is_repair` says
    that the gang holds a placement and asks for lost parts of its minimum: no other gang's wait may
    keep it from them. `is_separable` says that where not all of the minimum fits, as many of its
    replicas as do may start: the gang runs, and each of them is of use to it.
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
    queue: str = DEFAULT_QUEUE
    duration: float = inf
    is_repair: bool = False
    is_separable: bool = False
    needs_nodes: bool = True
    """Else its pods run elsewhere: it takes quota alone, and is placed on no node."""
    yields: bool = False
    """No other gang waits for it: another cluster asks whether it would fit, and asks elsewhere."""

    @property
    def only_repairs(self) -> bool:
        """Say whether lost parts of its minimum are all that the gang asks for."""
        return self.is_repair and not self.surplus

    @property
    def has_inter_pod_constraints(self) -> bool:
        """Say whether pods of the gang have affinity, anti-affinity or spread constraints."""
        return any(
            group.shape.affinity or group.shape.anti_affinity or group.shape.spread
            for group in self.groups()
        )

    @property
    def claims_devices(self) -> bool:
        """Say whether devices are to be allocated for pods of the gang."""
        return any(group.shape.restrictions.claims_devices for group in self.groups())

    @property
    def mounts_volumes(self) -> bool:
        """Say whether pods of the gang mount claims."""
        return any(group.shape.volumes for group in self.groups())

    def replicas(self) -> Iterator[tuple[Group, ...]]:
        """Yield the minimum replica by replica; pods that are of none are each their own."""
        named: defaultdict[tuple[str, str], list[Group]] = defaultdict(list)
        for group in self.minimum:
            if group.replica:
                named[group.pod_set, group.replica].append(group)
            else:
                yield from repeat((replace(group, count=1),), group.count)
        yield from map(tuple, named.values())

    def with_replicas(self, replicas: Iterable[tuple[Group, ...]]) -> "PendingGang":
        """Return the gang with no more than these replicas of its minimum."""
        counts: Counter[Group] = Counter()
        for each in (group for replica in replicas for group in replica):
            counts[replace(each, count=1)] += each.count
        minimum = tuple(replace(group, count=count) for group, count in counts.items())
        return replace(self, minimum=minimum)

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
