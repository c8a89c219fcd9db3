"""Says which gated pods should be nominated to the node of their slot, and which must not be.

kube-scheduler keeps the room of a nominated pod from pods of no higher priority, also while the pod
is gated. To nominate a pod costs what its release costs, so only pods whose release lasts are. None
is in a gang with inter-pod constraints: nominated members count on the node under test alone, which
can make kube-scheduler refuse a member that it would take without them.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from coordinator.gang.pod_sets import Standing, releasable
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod

FIRST_RELEASES = 200
"""Pods of a gang that are released without being nominated: as many take some 0.2 seconds."""

Nodes = Mapping[str, str]
NOTHING_PLANNED: Nodes = MappingProxyType({})


class Guard(StrEnum):
    """What keeps others out of reserved room.

    The coordinator writes nominations, or an extender that is installed refuses, or nothing does.
    """

    NOMINATION = "Nomination"
    EXTENDER = "Extender"
    NONE = "None"


def wanted(view: GangView, *, held_up: bool, planned: Nodes = NOTHING_PLANNED) -> dict[str, str]:
    """The pods that should be nominated now: uid -> node.

    `held_up`: none of the gang is released for a time. `planned` are nodes where room for pods of
    the gang is being made; nothing is released on them.
    """
    standing = view.survey.standing
    if not may_be_nominated(standing):
        return {}
    placed = _lasting(standing, held_up=held_up) if view.survey.durable else ()
    return {**planned, **{pod.uid: node for pod, node in placed}}


def nominated_first(standing: Standing) -> set[str]:
    """The uids of the pods whose release waits until they are nominated."""
    if not may_be_nominated(standing):
        return set()
    return {pod.uid for pod, _ in _later_releases(standing)}


def contradicting(view: GangView, pod: ObservedPod, wanted: Nodes) -> bool:
    """Whether a gated pod is nominated to a node where no slot of its gang is for it."""
    if not pod.nominated_to or not pod.gated:
        return False
    standing = view.survey.standing
    slots = {each.uid: node for pod_set in standing for each, node in pod_set.with_slot}
    right = wanted.get(pod.uid) or slots.get(pod.uid)
    return pod.nominated_to != right or not may_be_nominated(standing)


def may_be_nominated(standing: Standing) -> bool:
    """Whether no pod of the gang has constraints on other pods, which may be those of the gang."""
    pods = (pod for each in standing for pod in (*each.gated, *each.settled))
    shapes = {id(pod.member.shape): pod.member.shape for pod in pods if pod.member is not None}
    return not any(
        shape.affinity or shape.anti_affinity or shape.spread
        for shape in shapes.values()
        if shape is not None
    )


def _lasting(standing: Standing, *, held_up: bool) -> Iterator[tuple[ObservedPod, str]]:
    if held_up:
        yield from (pair for each in standing for pair in each.with_slot)
        return
    for each in standing:
        yield from ((pod, node) for pod, node in each.with_slot if pod.foreign_gates)
    yield from _later_releases(standing)


def _later_releases(standing: Standing) -> list[tuple[ObservedPod, str]]:
    """The pods that are released after the first ones of their gang."""
    begun = sum(len(each.settled) for each in standing)
    return releasable(standing)[max(0, FIRST_RELEASES - begun) :]
