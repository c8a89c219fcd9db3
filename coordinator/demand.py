"""What does a gang ask of the next cycle: nothing, room, or is it not ready to ask?

A gang asks for its whole minimum at once; one that was placed before asks only for what it
has lost, and for its surplus replica by replica.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coordinator.standing import PodSetStanding, Standing
from kube.observed import ObservedPod
from scheduling.model import LOWEST_PRIORITY, GangKey, Group, Member, PendingGang, PodShape
from scheduling.verdict import Reason

NAMED_PODS = 3  # a message names so many pods and counts the rest


@dataclass(frozen=True, slots=True)
class Settled:
    """Every pod that exists has its room."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """The gang cannot be decided yet; why, for its user."""

    reason: Reason
    message: str


Demand = Settled | NotReady | PendingGang


def demand(
    key: GangKey, priority: int, created: float, standing: Standing, refused: str = ""
) -> Demand:
    """Say what the gang asks for; `refused` is what KubeRay says of pods it could not create."""
    hindrance = _unreadable(standing) or _blocked(standing) or _incomplete(standing, refused)
    if hindrance is not None:
        return hindrance
    minimum = tuple(g for each in standing for g in _groups(each.terms.name, _wanted(each)))
    surplus = tuple(unit for each in standing for unit in _surplus_units(each))
    if not minimum and not surplus:
        return Settled()
    members, lowest = tuple(_members(standing)), _lowest_priority(standing)
    return PendingGang(key, priority, created, minimum, surplus, members, lowest)


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


def _blocked(standing: Standing) -> NotReady | None:
    short = [each for each in standing if len(each.waiting) < each.missing]
    pods = [pod for each in short for pod in each.blocked]
    if not pods or any(len(s.waiting) + len(s.blocked) < s.missing for s in short):
        return None
    gates = sorted({gate for pod in pods for gate in pod.foreign_gates})
    message = f"{_some(p.name for p in pods)} still held by other gates: {_some(gates)}"
    return NotReady(Reason.FOREIGN_GATES, message)


def _incomplete(standing: Standing, refused: str) -> NotReady | None:
    if all(len(each.waiting) >= each.missing for each in standing):
        return None
    wanted = sum(each.terms.minimum for each in standing)
    exist = sum(min(each.exist, each.terms.minimum) for each in standing)
    sets = ", ".join(
        f"{each.terms.name} {each.exist} of {each.terms.minimum}"
        for each in standing
        if each.exist < each.terms.minimum
    )
    message = f"{exist} of {wanted} pods exist; missing: {sets or 'a pod whose seat was lost'}"
    if refused:
        return NotReady(Reason.PODS_REFUSED, f"{message}; KubeRay could not create more: {refused}")
    return NotReady(Reason.GANG_INCOMPLETE, message)


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    rest = len(every) - NAMED_PODS
    return ", ".join(every[:NAMED_PODS]) + (f" and {rest} more" if rest > 0 else "")


def _wanted(each: PodSetStanding) -> Sequence[ObservedPod]:
    return each.waiting[: each.missing]


def _groups(pod_set: str, pods: Iterable[ObservedPod]) -> Iterator[Group]:
    shapes: Counter[PodShape] = Counter(
        pod.member.shape for pod in pods if pod.member is not None and pod.member.shape is not None
    )
    for shape in sorted(shapes, key=lambda shape: shape.key):
        yield Group(pod_set=pod_set, replica="", shape=shape, count=shapes[shape])


def _members(standing: Standing) -> Iterator[Member]:
    for each in standing:
        for pod in each.waiting:
            if pod.member is not None and pod.member.shape is not None:
                yield Member(each.terms.name, pod.member.shape, pod.kind[1])


def _lowest_priority(standing: Standing) -> int:
    return min((pod.priority for each in standing for pod in each.waiting), default=LOWEST_PRIORITY)


def _surplus_units(each: PodSetStanding) -> Iterator[tuple[Group, ...]]:
    """Whole replicas above the minimum, as many as the RayCluster asks for."""
    rest = each.waiting[each.missing :]
    room = each.terms.count - each.placed - each.missing
    for pods in _replicas(rest, each.terms.hosts):
        room -= len(pods)
        if room < 0:
            return
        yield tuple(_groups(each.terms.name, pods))


def _replicas(pods: Sequence[ObservedPod], hosts: int) -> Iterator[Sequence[ObservedPod]]:
    if hosts == 1:
        yield from ([pod] for pod in pods)
        return
    by_name: defaultdict[str, list[ObservedPod]] = defaultdict(list)
    for pod in pods:
        by_name[pod.member.replica if pod.member else ""].append(pod)
    yield from (whole for whole in by_name.values() if len(whole) == hosts)
