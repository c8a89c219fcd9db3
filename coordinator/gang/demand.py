"""Derives the request of a gang to the next cycle from its pods, or why it cannot ask yet.

A gang asks for its whole minimum at once. A gang that was placed before asks only for the pods that
it has lost, and for its surplus replica by replica.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from kube.ray.gang_terms import HEAD, TopologyTerms
from scheduling.model.gang import GangKey, Group, Member, Occupied, PendingGang, Topology
from scheduling.model.placement import Placement
from scheduling.model.pod import LOWEST_PRIORITY, PodShape
from scheduling.model.shape import node_restrictions
from scheduling.model.verdict import Reason

NAMED_PODS = 3  # a message names so many pods and counts the rest
SETS_NAMED = 6


@dataclass(frozen=True, slots=True)
class Settled:
    """Every pod that exists has its room."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """The gang cannot be decided yet; why, for its user."""

    reason: Reason
    message: str

    @property
    def is_final(self) -> bool:
        """Whether what the gang was for has ended, so that it never starts."""
        return self.reason in (Reason.JOB_ENDED, Reason.WRAPPER_ENDED)


Demand = Settled | NotReady | PendingGang


@dataclass(frozen=True, slots=True)
class _Share:
    """What one pod set asks for: the pods that its minimum lacks, and units of surplus.

    Of both only whole replicas; no unit of surplus while the minimum is `short` of pods.
    """

    pod_set: PodSetStanding
    minimum: Sequence[ObservedPod]
    surplus: Sequence[Sequence[ObservedPod]]

    @property
    def short(self) -> bool:
        return len(self.minimum) < self.pod_set.missing


def demand(
    key: GangKey,
    priority: int,
    created: float,
    standing: Standing,
    refused: str = "",
    topology: Topology | None = None,
) -> Demand:
    """Say what the gang asks for; `refused` is what KubeRay says of pods it could not create."""
    shares = [_share(each) for each in standing]
    hindrance = _unreadable(standing) or _blocked(shares) or _incomplete(shares, refused)
    hindrance = hindrance or (_nameless(standing) if topology and topology.replica else None)
    if hindrance is not None:
        return hindrance
    named = [(share.pod_set.terms.name, share) for share in shares]
    minimum = tuple(group for name, share in named for group in _groups(name, share.minimum))
    surplus = tuple(tuple(_groups(name, unit)) for name, share in named for unit in share.surplus)
    if not minimum and not surplus:
        return Settled()
    members, lowest = tuple(_members(standing)), _lowest_priority(standing)
    return PendingGang(key, priority, created, minimum, surplus, members, lowest, topology)


def as_far_as_made(standing: Standing) -> Standing:
    """Return what a gang that runs asks for if it does without the lost pods that are to be made.

    The others need not wait for them: Ray goes on with each worker that comes back, to its head.
    """
    shares = [_share(each) for each in standing]
    if any(share.short for share in shares if share.pod_set.terms.name == HEAD):
        return standing
    return tuple(_as_made(share) if share.short else share.pod_set for share in shares)


def _as_made(share: _Share) -> PodSetStanding:
    made, terms = share.pod_set.placed + len(share.minimum), share.pod_set.terms
    return replace(share.pod_set, terms=replace(terms, minimum=made))


def avoiding(asked: PendingGang, avoided: Mapping[str, tuple[str, ...]]) -> PendingGang:
    """Return what is asked for, with the nodes (by shape) that its pods are to avoid."""

    shapes = {each.shape for each in asked.groups() if each.shape.key in avoided}
    if not shapes:
        return asked
    changed = {each: node_restrictions.avoiding(each, avoided[each.key]) for each in shapes}
    return asked.reshaped(lambda pods: changed.get(pods.shape, pods.shape))


def topology_of(terms: TopologyTerms, standing: Standing, placement: Placement | None) -> Topology:
    """Say how the workers are to be together, and where some of them are or have a slot."""
    workers = tuple(sorted(each.terms.name for each in standing if each.terms.name != HEAD))
    slots = {
        Occupied(each.pod_set, each.replica, node)
        for each in (placement.assignments if placement else ())
        for node, _ in each.nodes
    }
    pods = {
        Occupied(pod.member.pod_set, pod.member.replica, pod.settled_on)
        for each in standing
        for pod in each.settled
        if pod.member is not None and pod.settled_on
    }
    occupied = sorted(each for each in slots | pods if each.pod_set in workers)
    return Topology(workers, terms.required, terms.preferred, terms.replica, tuple(occupied))


def is_gathered(standing: Standing) -> bool:
    """Whether every pod of the minimum exists, and there is a minimum."""
    wanted = any(each.terms.minimum for each in standing)
    return wanted and all(each.exist >= each.terms.minimum for each in standing)


def _unreadable(standing: Standing) -> NotReady | None:
    for each in standing:
        for pod in each.waiting:
            if pod.member is not None and pod.member.invalid:
                return NotReady(Reason.MISCONFIGURED, f"pod {pod.name}: {pod.member.invalid}")
    return None


def _blocked(shares: Sequence[_Share]) -> NotReady | None:
    short = [share.pod_set for share in shares if share.short]
    pods = [pod for each in short for pod in each.blocked]
    if not pods or any(len(s.waiting) + len(s.blocked) < s.missing for s in short):
        return None
    gates = sorted({gate for pod in pods for gate in pod.foreign_gates})
    message = f"{_some(p.name for p in pods)} still held by other gates: {_some(gates)}"
    return NotReady(Reason.FOREIGN_GATES, message)


def _nameless(standing: Standing) -> NotReady | None:
    """Pods of multi-host groups without the label that names their replica."""
    for each in standing:
        for pod in each.waiting:
            if each.terms.hosts > 1 and pod.member is not None and not pod.member.replica:
                message = (
                    f"not supported by Muster; {names.REPLICA_TOPOLOGY_REQUIRED} for pods that do "
                    f"not say their replica: {pod.name} has no label {names.RAY_REPLICA_NAME} "
                    "(switch KubeRay's feature RayMultiHostIndexing on, or drop the annotation)"
                )
                return NotReady(Reason.UNSUPPORTED, message)
    return None


def _incomplete(shares: Sequence[_Share], refused: str) -> NotReady | None:
    short = [share.pod_set for share in shares if share.short]
    if not short:
        return None
    message = _in_numbers(share.pod_set for share in shares) or _in_halves(short)
    return _refused(message, refused) or NotReady(Reason.GANG_INCOMPLETE, message)


def unmade(standing: Standing, refused: str) -> NotReady | None:
    """Say that KubeRay cannot create pods of the minimum, also where their slots are kept."""
    if all(each.exist >= each.terms.minimum for each in standing):
        return None
    return _refused(_in_numbers(standing), refused)


def _refused(message: str, refused: str) -> NotReady | None:
    if not refused:
        return None
    return NotReady(Reason.PODS_REFUSED, f"{message}; KubeRay could not create more: {refused}")


def _in_numbers(standing: Iterable[PodSetStanding]) -> str:
    """Say which pods do not exist yet, the first few pod sets by name."""
    short = [each for each in standing if each.exist < each.terms.minimum]
    said = [_said_of(each) for each in short[:SETS_NAMED]]
    more = len(short) - SETS_NAMED
    return "; ".join([*said, *([f"and {more} more groups"] if more > 0 else [])])


def _in_halves(short: Sequence[PodSetStanding]) -> str:
    first = short[0].terms
    return f"group {first.name}: the pods that wait make up no whole replica of {first.hosts} pods"


def _said_of(each: PodSetStanding) -> str:
    if each.terms.name == HEAD:
        return "the head pod does not exist yet"
    return f"group {each.terms.name}: {each.exist} of {each.terms.minimum} pods exist"


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    rest = len(every) - NAMED_PODS
    return ", ".join(every[:NAMED_PODS]) + (f" and {rest} more" if rest > 0 else "")


def _share(each: PodSetStanding) -> _Share:
    replicas = _whole_replicas(each)
    minimum: list[ObservedPod] = []
    while len(minimum) < each.missing and (replica := next(replicas, None)):
        minimum += replica
    surplus = list(_within(replicas, each.terms.count - each.placed - len(minimum)))
    return _Share(each, minimum, surplus)


def _within(units: Iterable[Sequence[ObservedPod]], most: int) -> Iterator[Sequence[ObservedPod]]:
    """Units as they come, as long as they are no more pods than the RayCluster asks for."""
    for unit in units:
        most -= len(unit)
        if most < 0:
            return
        yield unit


def _whole_replicas(each: PodSetStanding) -> Iterator[Sequence[ObservedPod]]:
    """The waiting pods by replica, where all pods of it are there and none is held by others.

    Where pods do not say their replica, any pods make up one.
    """
    hosts = each.terms.hosts
    if hosts <= 1:
        yield from ([pod] for pod in each.waiting)
        return
    waiting: defaultdict[str, list[ObservedPod]] = defaultdict(list)
    for pod in each.waiting:
        waiting[_replica(pod)].append(pod)
    placed = Counter(_replica(pod) for pod in (*each.settled, *(pod for pod, _ in each.with_slot)))
    for name, pods in waiting.items():
        if not name:
            yield from (pods[at : at + hosts] for at in range(0, len(pods) - hosts + 1, hosts))
        elif len(pods) + placed[name] == hosts:
            yield pods


def _replica(pod: ObservedPod) -> str:
    return pod.member.replica if pod.member is not None else ""


def _groups(pod_set: str, pods: Iterable[ObservedPod]) -> Iterator[Group]:
    kinds: Counter[tuple[str, PodShape]] = Counter(
        (pod.member.replica, pod.member.shape)
        for pod in pods
        if pod.member is not None and pod.member.shape is not None
    )
    for replica, shape in sorted(kinds, key=lambda kind: (kind[0], kind[1].key)):
        yield Group(pod_set, replica, shape, kinds[replica, shape])


def _members(standing: Standing) -> Iterator[Member]:
    for each in standing:
        for pod in each.waiting:
            if pod.member is not None and pod.member.shape is not None:
                member = pod.member
                labels, shape = pod.kind[1], pod.member.shape
                yield Member(each.terms.name, shape, labels, member.replica, pod.mounts)


def _lowest_priority(standing: Standing) -> int:
    return min((pod.priority for each in standing for pod in each.waiting), default=LOWEST_PRIORITY)
