"""Nominates pods whose release lasts, and takes back what contradicts the placement.

kube-scheduler forgets gated pods when it starts, and notices them again when they are written. The
annotation says which kube-scheduler, by the holder of its Lease, was told of a nomination: so each
leader sees on the pod itself whether the field and the annotation are as they should be.
"""

from collections.abc import Iterator

from coordinator.gang import repair
from coordinator.gang.nominations import Guard, Nodes, contradicting, nominated_first, wanted
from coordinator.gang.start_window import is_failing
from coordinator.messages.actions import NominatePod
from coordinator.reconcile.look import NOTHING_DONE, Done, Look
from kube.codec.observed_pod import ObservedPod

PAUSE = 0.5
"""Seconds for which a gang waits to be released before its pods are nominated."""


def nominate_pods(look: Look) -> Done:
    """Ask for the nominations that are missing, and for the end of those that are wrong."""
    state = look.view.nominating
    state.next_at = None
    if not look.scene.sighted or look.view.retreat.under_way:
        return NOTHING_DONE
    return Done(list(_writes(look, _wanted(look))))


def take_back_nominations(look: Look) -> Done:
    """Have no gated pod nominated that has no slot any more."""
    look.view.nominating.next_at = None
    return Done(list(_writes(look, {})))


def awaits_nomination(look: Look) -> set[str]:
    """The uids of pods that are not released before kube-scheduler keeps their room."""
    if look.scene.guard is not Guard.NOMINATION:
        return set()
    return nominated_first(look.view.survey.standing) - look.view.nominating.tries.keys()


def _wanted(look: Look) -> Nodes:
    if look.scene.guard is not Guard.NOMINATION:
        return {}
    return wanted(look.view, held_up=_is_held_up(look))


def _is_held_up(look: Look) -> bool:
    """Whether none of the gang was released for a time that pays for nominations."""
    state = look.view.nominating
    if not _waits(look):
        state.held_up_since = None
        return False
    if state.held_up_since is None:
        state.held_up_since = look.now
    end = state.held_up_since + PAUSE
    if look.now < end:
        state.due_by(end)
    return look.now >= end


def _waits(look: Look) -> bool:
    view = look.view
    in_line = look.scene.window.has_in_line(view.key)
    return in_line or is_failing(view) or repair.is_hindered(view) or bool(view.understood.problem)


def _writes(look: Look, right: Nodes) -> Iterator[NominatePod]:
    view, state = look.view, look.view.nominating
    for pod in look.pods:
        if not pod.gated or pod.uid in state.inflight | view.pod_writes.inflight:
            continue
        node = "" if contradicting(view, pod, right) else right.get(pod.uid)
        if node is None or not _is_news(look, pod, node) or not state.may_write(pod.uid, look.now):
            continue
        state.ask(pod.uid, look.now)
        assert pod.raw is not None
        yield NominatePod(view.key, pod.raw, node, look.scene.scheduler)


def _is_news(look: Look, pod: ObservedPod, node: str) -> bool:
    """Whether the field is another one, or another kube-scheduler was told of it."""
    told = pod.member.told if pod.member is not None else ""
    forgotten = bool(node) and bool(look.scene.scheduler) and told != look.scene.scheduler
    return pod.nominated_to != node or forgotten
