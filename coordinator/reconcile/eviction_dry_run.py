"""Asks the API server by dry run whether it would accept the evictions that a cycle chose."""

from collections.abc import Iterator

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.eviction.budgets import Objection
from coordinator.gang.eviction.endings import Probe, covered
from coordinator.gang.eviction.stop_method import (
    DELETE_OBJECTS,
    EVICT_PODS,
    Keep,
    StopMethod,
    Suspend,
    stop_method,
)
from coordinator.gang.view import GangView
from coordinator.messages.actions import Action, TryEviction, TrySuspension
from coordinator.queues.registry import QueueRegistry
from coordinator.reconcile.look import Look, StepResult
from kube.gang.source import GangSource
from kube.objects.ray import RayJob
from scheduling.model.verdict import Reason

AT_ONCE = 16
"""Dry runs for one gang that are under way at one time."""

OF_RUNNING = (Reason.BELOW_MINIMUM, Reason.QUEUE_STOPPED, Reason.MEMBER_ENDED)
"""Why a gang ends for its own sake that may have been submitted to."""


def probe(look: Look) -> StepResult:
    """Ask for the dry runs that are missing."""
    asked = [each for probe in look.view.eviction.probes.values() for each in _ask(look, probe)]
    return StepResult(asked)


def stop_method_of(look: Look) -> StopMethod:
    """Say how the gang can be stopped whole."""
    terms, scene, whole = look.view.understood.terms, look.scene, look.view.eviction.whole
    if look.source.stops_whole:
        return DELETE_OBJECTS
    if whole is not None and whole.preemptor is None and whole.reason not in OF_RUNNING:
        return EVICT_PODS  # it is not ready: nothing was submitted to it, or that is lost
    return eviction_method(scene.cache, scene.queues, look.source, terms.queue if terms else "")


def why_kept(look: Look) -> str:
    """Say why the gang cannot be stopped whole now; empty where it can."""
    method, kept = stop_method_of(look), look.view.eviction.kept_now("", look.now)
    return method.because if isinstance(method, Keep) else kept.because


def eviction_method(
    cache: ClusterCache, queues: QueueRegistry, source: GangSource, queue: str
) -> StopMethod:
    """Say how a gang of a queue can be stopped whole."""
    if source.stops_whole:
        return DELETE_OBJECTS
    if cache.owners.is_disowned(source):
        return EVICT_PODS
    owner, allowed = cache.owners.owner_of(source), queues.preemption(queue).jobs_may_be_lost
    return stop_method(source, owner, queue, jobs_may_be_lost=allowed)


def deletes_in_the_end(view: GangView, queues: QueueRegistry) -> bool:
    """Say whether the gang's queue has pods deleted whose eviction is refused for long."""
    terms = view.understood.terms
    rules = queues.preemption(terms.queue if terms is not None else "")
    return rules.delete_after_seconds is not None


def _ask(look: Look, probe: Probe) -> Iterator[Action]:
    if probe.is_over or not look.scene.sighted:
        return
    method = stop_method_of(look) if probe.ending.is_whole else None
    match method:
        case Keep(because, in_short):
            probe.objection = Objection(because, in_short=in_short)
        case Suspend(job):
            yield from _ask_for_job(look, probe, job)
        case _:
            yield from _ask_for_pods(look, probe)


def _ask_for_job(look: Look, probe: Probe, job: RayJob) -> Iterator[Action]:
    uid = job.metadata.uid
    probe.passed = probe.accepted.get(uid, False)
    if uid not in probe.accepted:
        probe.accepted[uid] = False
        yield TrySuspension(look.view.key, job, str(probe.ending.preemptor or probe.ending.reason))


def _ask_for_pods(look: Look, probe: Probe) -> Iterator[Action]:
    pods = covered(probe.ending, look.view.understood.terms, look.pods)
    left = [pod for pod in pods if pod.alive and not probe.accepted.get(pod.uid)]
    probe.passed = not left
    waiting = [pod for pod in left if pod.uid not in probe.accepted]
    under_way = list(probe.accepted.values()).count(False)
    for pod in waiting[: max(0, AT_ONCE - under_way)]:
        probe.accepted[pod.uid] = False
        yield TryEviction(look.view.key, pod.namespace, pod.name, pod.uid)
