"""Chooses the gated pods to nominate to the node of their slot, and those that must not be.

kube-scheduler keeps the room of a nominated pod from pods of no higher priority, also while the pod
is gated. A nomination costs as much as a release, so only pods whose release takes long get one. A
gang with inter-pod constraints gets none: kube-scheduler counts nominated members on the node under
test alone, and could refuse a member that it would take without them.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from coordinator.gang.pods.pod_sets import Standing, releasable
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from reservation.slots import assign, slots_of
from scheduling.model.pod import PodShape

FIRST_RELEASES = 200
"""Pods of a gang that are released without being nominated: as many take some 0.2 seconds."""

PER_SECOND = 300
"""New nominations of all gangs in a second, those that a release waits for not counted.

kube-scheduler binds no more pods than that.
"""

Nodes = Mapping[str, str]


@dataclass(slots=True)
class Pace:
    """How many nominations are left that may be written in the second from `began` on."""

    began: float = float("-inf")
    left: int = 0

    def spend(self, now: float) -> bool:
        """Whether one more may be written now; it is counted."""
        if now >= self.next_second:
            self.began, self.left = now, PER_SECOND
        self.left -= 1
        return self.left >= 0

    @property
    def next_second(self) -> float:
        """When more may be written."""
        return self.began + 1.0


FORBIDDEN_FOR = 300.0
"""Seconds without nominations after the API server said that the coordinator may not write any."""


class Guard(StrEnum):
    """What keeps others out of reserved room.

    The coordinator writes nominations, or an extender that is installed refuses, or nothing does.
    """

    NOMINATION = "Nomination"
    EXTENDER = "Extender"
    NONE = "None"


def lasting(view: GangView, *, held_up: bool) -> Nodes:
    """The pods with a slot that should be nominated now: uid -> node.

    `held_up`: none of the gang is released for a time.
    """
    placed = _lasting(view.survey.standing, held_up=held_up) if view.survey.durable else ()
    return {pod.uid: node for pod, node in placed}


def planned(view: GangView) -> Nodes:
    """The places that the plan has for pods without a slot: uid -> node."""
    plan = view.queueing.planned
    if plan is None:
        return {}
    waiting = [pod for each in view.survey.standing for pod in each.waiting]
    return assign(waiting, slots_of(plan), {})


def beside_no_reservation(plan: Nodes, reserved: Container[str]) -> Nodes:
    """What of a plan is nominated: nothing on nodes on which any gang reserves room.

    kube-scheduler counts those pods beside the ones that still end there. So it would refuse a pod
    whose room, reserved on that node, is free; one of the same gang as well.
    """
    return {uid: node for uid, node in plan.items() if node not in reserved}


def nominated_first(standing: Standing) -> set[str]:
    """The uids of the pods whose release waits until they are nominated; not those that are."""
    return {pod.uid for pod, node in _later_releases(standing) if pod.nominated_to != node}


def rightful(view: GangView, wanted: Nodes) -> Nodes:
    """The nodes to which gated pods may be nominated: of their slots, and those that are wanted."""
    slots = {pod.uid: node for each in view.survey.standing for pod, node in each.with_slot}
    return {**slots, **wanted}


def may_be_nominated(standing: Standing) -> bool:
    """Whether no pod of the gang has constraints on other pods, which may be those of the gang."""
    pods = (pod for each in standing for pod in (*each.gated, *each.settled))
    shapes = {id(pod.member.shape): pod.member.shape for pod in pods if pod.member is not None}
    return not any(counts_others(shape) for shape in shapes.values() if shape is not None)


def counts_others(shape: PodShape) -> bool:
    """Whether pods of a shape have constraints on other pods."""
    return bool(shape.affinity or shape.anti_affinity or shape.spread)


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
