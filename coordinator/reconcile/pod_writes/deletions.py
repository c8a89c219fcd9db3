"""Deletes pods that cannot stay: KubeRay creates them again, gated.

For a pod that nothing creates again the whole gang is stopped instead.
"""

from collections.abc import Iterator

from coordinator.gang import placement_faults
from coordinator.gang.eviction.endings import Ending
from coordinator.gang.pods import adoption
from coordinator.messages.actions import ADOPTED, STRANDED, TORN, Action, DeletePod, EmitEvent
from coordinator.reconcile.look import Look, StepResult
from kube.codec.observed_pod import ObservedPod
from scheduling.model.verdict import Reason


def delete_pods(look: Look) -> StepResult:
    """Delete pods that are stranded, that have no place, or whose gang never ran whole."""
    doomed = [*_stranded(look), *_without_place(look), *_torn(look)]
    writes = look.view.pod_writes
    return StepResult(doomed, resurvey=bool(writes.leaving - writes.deleted or doomed))


def delete_stranded_pods(look: Look) -> StepResult:
    """Delete released pods that cannot get onto their node; nothing else of a gang at its end."""
    doomed = list(_stranded(look))
    return StepResult(doomed, resurvey=bool(doomed))


def _stranded(look: Look) -> Iterator[Action]:
    """Also where the placement is gone: a release may have arrived after its node was lost."""
    view, scene, columns = look.view, look.scene, look.scene.cache.columns()
    news = []
    for pod in placement_faults.stranded(view, columns, look.now, scene.patience.bind):
        if placement_faults.node_accepts(pod, pod.settled_on, columns):
            news.append(scene.refusals.note(pod, look.now + scene.patience.refusal))
        yield from _delete(look, pod, STRANDED)
    text = next(filter(None, news), "")
    if text:
        uid, reason = view.cluster_uid, Reason.BIND_REFUSED
        yield EmitEvent(view.key, uid, warning=True, reason=reason, message=text)


def _without_place(look: Look) -> Iterator[Action]:
    """Delete pods that Muster did not release and that kube-scheduler cannot place."""
    now, patience = look.now, look.scene.patience.bind
    late = placement_faults.unplaceable(look.view, now, patience)
    if late and look.scene.sighted and look.view.repairs.rounds.are_open(now, patience):
        for pod in late:
            yield from _delete(look, pod, ADOPTED)


def _torn(look: Look) -> Iterator[Action]:
    """Give back the room of a gang that never ran whole and will not.

    Nothing is given up on what cannot be seen: the clock stands still while a watch is down.
    """
    view, scene, now = look.view, look.scene, look.now
    if not placement_faults.is_torn(view) or not scene.sighted:
        view.repairs.torn_since = None
        return
    if view.repairs.torn_since is None:
        view.repairs.torn_since = now
    if now < view.repairs.torn_since + scene.patience.torn:
        return
    if look.source.stops_whole:
        _stop_torn(look)
        return
    ours, others = (
        list(placement_faults.released(view)),
        list(adoption.removable(view.survey.standing)),
    )
    if others and view.repairs.rounds.are_open(now, scene.patience.bind):
        ours += others
    for pod in ours:
        yield from _delete(look, pod, TORN)


def _stop_torn(look: Look) -> None:
    """Have the gang stopped whole, which is never stopped pod by pod."""
    seconds = look.scene.patience.torn
    said = f"not all of its pods were on their nodes within {seconds:.0f} s of the first"
    look.view.eviction.decide(Ending(Reason.READY_TIMEOUT, said, look.scene.moment.stamp))


def _stop_for(look: Look, pod: ObservedPod) -> None:
    """Have the gang stopped whole for a pod that would be gone for good."""
    seconds, eviction = look.scene.patience.bind, look.view.eviction
    where = f" on node {pod.settled_on}" if pod.settled_on else ""
    said = f"Pod {pod.name} could not start{where} within {seconds:.0f} s; all starts anew"
    if eviction.whole is None:
        eviction.decide(Ending(Reason.BIND_REFUSED, said, look.scene.moment.stamp))


def _is_never_replaced(look: Look, pod: ObservedPod) -> bool:
    """Say whether nothing makes a pod again that the gang cannot go on without."""
    return pod.member is not None and not look.source.replaces(pod.member.pod_set)


def _delete(look: Look, pod: ObservedPod, why: str) -> Iterator[Action]:
    if _is_never_replaced(look, pod):
        _stop_for(look, pod)
        return
    view, writes = look.view, look.view.pod_writes
    writes.leaving.add(pod.uid)
    wanted = pod.uid not in writes.deleted and pod.uid not in writes.inflight
    if wanted and writes.attempts_at(pod.uid).not_before <= look.now:
        writes.note_deletion(pod.uid)
        node, version = pod.settled_on, pod.resource_version
        yield DeletePod(
            view.key,
            pod.namespace,
            pod.name,
            pod.uid,
            version,
            node,
            why,
            of_job=_is_of_job(look, pod),
        )


def _is_of_job(look: Look, pod: ObservedPod) -> bool:
    return pod.member is not None and pod.member.pod_set in look.source.completions
