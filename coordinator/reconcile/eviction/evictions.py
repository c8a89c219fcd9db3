"""Asks for what ends a gang or its surplus: evictions, a few at a time, or a suspended job."""

from collections.abc import Iterator

from coordinator.gang.eviction.endings import Ending, covered
from coordinator.gang.eviction.stop_method import DeleteObjects, Suspend
from coordinator.messages.actions import (
    STOPPED,
    Action,
    DeletePod,
    EmitEvent,
    EvictPod,
    SuspendRayJob,
)
from coordinator.reconcile.eviction_dry_run import stop_method_of
from coordinator.reconcile.look import Look
from kube.codec.fields import moment_of
from kube.codec.observed_pod import ObservedPod
from kube.ray.gang_terms import HEAD
from kube.ray.ray_owner import is_suspended_by_muster

AT_ONCE = 16
"""Evictions of one gang that are under way at one time."""


def ending_pods(look: Look) -> list[ObservedPod]:
    """Return the pods that end, by all endings."""
    terms = look.view.understood.terms
    found = (covered(each, terms, look.pods) for each in look.view.eviction.endings)
    return [pod for pods in found for pod in pods]


def tell_of_endings(look: Look) -> Iterator[Action]:
    """Tell once of surplus that ends; of a gang that ends its reason is told."""
    view, eviction = look.view, look.view.eviction
    for ending in eviction.endings:
        if not ending.is_whole and (ending.preemptor, ending.since) not in eviction.told:
            uid, text = view.cluster_uid, ending.in_words()
            yield EmitEvent(view.key, uid, warning=True, reason=ending.reason, message=text)
    eviction.told = {(each.preemptor, each.since) for each in eviction.endings}


def stop(look: Look) -> Iterator[Action]:
    """Ask for the writes that are missing to end what is to end."""
    whole = look.view.eviction.whole
    method = stop_method_of(look) if whole is not None else None
    if whole is not None and isinstance(method, Suspend):
        yield from _suspend(look, whole, method)
    elif not isinstance(method, DeleteObjects):
        yield from _evict(look)


def _suspend(look: Look, ending: Ending, method: Suspend) -> Iterator[Action]:
    """Suspend the RayJob, and anew where others resume it; KubeRay then deletes the RayCluster."""
    job, eviction = method.job, look.view.eviction
    uid, version = job.metadata.uid, job.metadata.resource_version
    if is_suspended_by_muster(job):
        return
    if eviction.begun and eviction.sent.get(uid, version) != version:
        del eviction.sent[uid]
        eviction.resumed(look.now)
    if uid not in eviction.sent and look.now >= eviction.pause.until:
        eviction.sent[uid] = version
        yield SuspendRayJob(look.view.key, job, str(ending.preemptor or ending.reason))


def _evict(look: Look) -> Iterator[Action]:
    """Evict the pods that are due, a few at a time; those that were refused least go first."""
    eviction, due = look.view.eviction, _due(look)
    overdue = [pod for pod in due if _is_overdue(look, pod)]
    others = [pod for pod in due if pod not in overdue] if look.now >= eviction.pause.until else []
    for pod in [*overdue, *others][: max(0, AT_ONCE - len(eviction.sent))]:
        look.view.pod_writes.note_deletion(pod.uid)
        eviction.sent[pod.uid] = pod.resource_version
        yield _delete(look, pod) if pod in overdue else _eviction(look, pod)


def _due(look: Look) -> list[ObservedPod]:
    """Return the pods to evict now: the workers, and the head once all of them are on their way.

    Those that were refused least come first.
    """
    writes = look.view.pod_writes
    pods = [pod for pod in ending_pods(look) if pod.alive]
    workers = [pod for pod in pods if not _is_head(pod)]
    accepted = writes.deleted - writes.inflight
    if all(pod.uid in accepted for pod in workers):
        workers = pods
    tried = {uid: each.failures for uid, each in writes.attempts.items()}
    due = (pod for pod in workers if pod.uid not in writes.deleted | writes.inflight)
    return sorted(due, key=lambda pod: (tried.get(pod.uid, 0), pod.name))


def _is_head(pod: ObservedPod) -> bool:
    return pod.member is not None and pod.member.pod_set == HEAD


def _is_overdue(look: Look, pod: ObservedPod) -> bool:
    """Say whether the queue has a pod deleted by now that was refused to be evicted."""
    view, terms = look.view, look.view.understood.terms
    tried = view.pod_writes.attempts.get(pod.uid)
    rules = look.scene.queues.preemption(terms.queue if terms is not None else "")
    if tried is None or not tried.refusal or rules.delete_after_seconds is None:
        return False
    began = min(moment_of(each.since) for each in view.eviction.endings)
    due = began + rules.delete_after_seconds
    return look.now >= view.deadlines.at("delete", due, look.scene.moment)


def _eviction(look: Look, pod: ObservedPod) -> EvictPod:
    return EvictPod(look.view.key, pod.namespace, pod.name, pod.uid)


def _delete(look: Look, pod: ObservedPod) -> DeletePod:
    node, version = pod.settled_on, pod.resource_version
    return DeletePod(look.view.key, pod.namespace, pod.name, pod.uid, version, node, STOPPED)
