"""Releases the pods whose slot is written to the record, in the order of the placement."""

from collections.abc import Iterator

from coordinator.gang import placement_faults
from coordinator.gang.pods.pod_sets import ready_for_release
from coordinator.gang.start_window import is_failing
from coordinator.messages.actions import Action, FencePod, ReleasePod
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.pod_writes.fences import fence_holds, is_writable
from coordinator.reconcile.pod_writes.nominations import awaits_nomination, in_the_way
from coordinator.reconcile.together.starts import may_begin
from kube.codec.observed_pod import ObservedPod


def release_pods(look: Look) -> StepResult:
    """Release what may go now; nothing in the step in which pods are fenced."""
    fenced = any(isinstance(each, FencePod) for each in look.actions)
    if fenced or not _may_release(look):
        return NOTHING_DONE
    ready = ready_for_release(look.view.survey.standing)
    if not ready or not _may_begin(look):
        return NOTHING_DONE
    later = awaits_nomination(look) | look.view.repairs.devices.pods
    free = (pair for pair in ready if pair[0].uid not in later and _is_free(look, *pair))
    return StepResult([_release(look, pod, node) for pod, node in free])


def release_unpinned(look: Look) -> Iterator[Action]:
    """Release all gated pods to whatever node kube-scheduler finds."""
    for pod in look.pods:
        if pod.gated and pod.alive and is_writable(look, pod):
            look.view.pod_writes.inflight.add(pod.uid)
            assert pod.raw is not None
            yield ReleasePod(look.view.key, pod.raw, "")


def _may_release(look: Look) -> bool:
    """Whether the placement is written, everything is seen, and the gang is not held back."""
    view = look.view
    broken = bool(view.understood.problem) and view.understood.terms is None
    if not view.survey.durable or not look.scene.sighted or broken:
        return False
    if view.understood.head_lost or not may_begin(look):
        return False
    if view.repairs.devices.unclaimed and not any(each.settled for each in view.survey.standing):
        return False  # all start, or none
    return not placement_faults.is_hindered(view) and not view.gives_up


def _may_begin(look: Look) -> bool:
    """Whether a gang may be released now; where a part of it is, the rest does not wait."""
    view, scene = look.view, look.scene
    if any(each.settled for each in view.survey.standing) or is_failing(view):
        return True
    arrived = scene.cache.owners.arrived_at(look.source)
    rank = (view.reservation.admitted_as, -view.understood.priority, arrived, str(view.key))
    return scene.window.admits(view.key, rank, look.now)


def _is_free(look: Look, pod: ObservedPod, node: str) -> bool:
    if in_the_way(look.scene.misnominated, pod, node):
        return False
    return is_writable(look, pod) and fence_holds(look.view, pod)


def _release(look: Look, pod: ObservedPod, node: str) -> ReleasePod:
    look.view.pod_writes.targets[pod.uid] = node
    look.view.pod_writes.withdrawn_since = None
    look.view.pod_writes.inflight.add(pod.uid)
    assert pod.raw is not None
    return ReleasePod(look.view.key, pod.raw, node, look.view.reservation.queue)
