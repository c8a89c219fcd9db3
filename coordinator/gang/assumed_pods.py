"""Lists the pods of a gang that have a node assigned and are not bound yet.

Inter-pod constraints count them like existing pods, and they may use a claim that only one pod may
use. A slot without a pod is not listed, because the shape of its pod is not known yet. The slots of
a held gang are listed from the resumption of its RayCluster until its pods have come.
"""

from collections.abc import Iterator

from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from reservation.slots import assign, slot_of, slots_of
from scheduling.model.placement import Placement
from scheduling.state.pod_index import AssumedPods


def assumed_pods(view: GangView) -> Iterator[AssumedPods]:
    """List the pods of a gang that are on their way, each on its node."""
    for pod, node in _on_their_way(view):
        shape = pod.member.shape if pod.member is not None else None
        strict = shape.pinned_spread if shape is not None else ()
        yield AssumedPods(frozenset((pod.kind,)), node, pod.anti_affinity, strict)


def assumed_claims(view: GangView) -> Iterator[tuple[str, str]]:
    """List the claims, by namespace and name, of pods of a gang that are on their way."""
    for pod, _ in _on_their_way(view):
        for mount in pod.mounts:
            yield pod.namespace, mount.claim


def _on_their_way(view: GangView) -> Iterator[tuple[ObservedPod, str]]:
    for each in view.survey.standing:
        yield from each.with_slot
        for pod in each.settled:
            if not pod.holds:
                yield pod, pod.settled_on
    if view.expects_pods and view.reservation.placement is not None:
        yield from _to_come(view, view.reservation.placement)


def _to_come(view: GangView, placement: Placement) -> Iterator[tuple[ObservedPod, str]]:
    """Give the slots that no pod has come for yet to those that are foreseen."""
    left = slots_of(placement)
    for each in view.survey.standing:
        left.subtract(slot for pod, node in each.with_slot if (slot := slot_of(pod, node)))
    given = assign(view.held.expected.pods, +left, {})
    yield from ((pod, given[pod.uid]) for pod in view.held.expected.pods if pod.uid in given)
