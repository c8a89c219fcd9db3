"""Chooses how to stop a whole gang: suspend it, delete its objects, evict its pods, or keep it."""

from dataclasses import dataclass

from kube.gang.source import GangSource
from kube.objects.ray import RayJob, RayOwner
from kube.ray.ray_owner import controller_of, is_suspended_by_muster

SUSPENDABLE = ("Initializing", "Running")
"""States of a RayJob in which KubeRay heeds spec.suspend (rayjob_controller.go)."""

OVER = ("Complete", "Failed", "ValidationFailed", "Suspending", "Suspended")
"""States of one that no other try follows."""

ENDED = (*OVER, "Retrying")
"""States in which there is no try that could be lost."""

HTTP_MODE = "HTTPMode"
"""The submission mode in which KubeRay itself submits the job, and asks how it is."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend the RayJob: KubeRay deletes its RayCluster, and makes another once it is resumed."""

    job: RayJob


@dataclass(frozen=True, slots=True)
class DeleteObjects:
    """Ask in the Gang that the program that created all objects of the gang deletes them.

    Dry runs of evictions tell whether its pods may end, as for pods that are evicted.
    """


@dataclass(frozen=True, slots=True)
class EvictPods:
    """Evict the pods: KubeRay makes them again, gated."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave the gang alone, and why; `in_short` is what gangs of other namespaces are told."""

    because: str
    in_short: str = "a RayJob might be lost"


StopMethod = Suspend | DeleteObjects | EvictPods | Keep
EVICT_PODS = EvictPods()
DELETE_OBJECTS = DeleteObjects()


def stop_method(
    source: GangSource, owner: RayOwner | None, queue: str, *, jobs_may_be_lost: bool
) -> StopMethod:
    """Say how to stop a gang so that its work begins again; the queue may allow that a job is lost.

    A job whose pods are evicted fails with its submitter, and is tried again while its backoffLimit
    allows that. Before the RayCluster is provisioned nothing was submitted. In HTTPMode there is no
    submitter: the job goes on, and KubeRay submits it again once a head answers. But from 1.7 on it
    fails after 300 s without an answer, and that failure is not retried.
    """
    if not isinstance(owner, RayJob):
        return _without_job(source, owner)
    if is_being_suspended(owner):
        return Suspend(owner)
    if _has_ended(owner):
        return EVICT_PODS
    if can_be_suspended(owner, source):
        return Suspend(owner)
    state = owner.status.job_deployment_status
    unsubmitted = state == "Waiting" or (state == "Initializing" and not source.was_provisioned)
    if unsubmitted or _is_tried_again(owner) or jobs_may_be_lost:
        return EVICT_PODS
    return Keep(
        f"RayJob {owner.metadata.name} would be lost: {_why_not_again(owner)} and "
        "cannot be suspended (that needs spec.shutdownAfterJobFinishes: true), and GangQueue "
        f"{queue} does not allow it (spec.preemption.jobsMayBeLost)"
    )


def _without_job(source: GangSource, owner: RayOwner | None) -> StopMethod:
    """Keep what a RayJob made that was not seen yet, or is gone: it may be lost with its pods."""
    reference = controller_of(source.metadata)
    if owner is None and reference is not None and reference.kind == "RayJob":
        return Keep(f"RayJob {reference.name} is not known to Muster, and might be lost")
    return EVICT_PODS


def _has_ended(job: RayJob) -> bool:
    """Say whether no try is under way, or a user is ending it."""
    by_user = bool(job.spec.suspend) and not is_suspended_by_muster(job)
    return by_user or job.status.job_deployment_status in ENDED


def is_over(job: RayJob) -> bool:
    """Say whether no try of a RayJob is under way, and none is to come as it is."""
    return bool(job.spec.suspend) or job.status.job_deployment_status in OVER


def is_being_suspended(job: RayJob) -> bool:
    """Say whether Muster suspended a RayJob and KubeRay is to delete its RayCluster, or does."""
    under_way = job.status.job_deployment_status in (*SUSPENDABLE, "Suspending")
    return under_way and bool(job.spec.suspend) and is_suspended_by_muster(job)


def can_be_suspended(job: RayJob, source: GangSource) -> bool:
    """Say whether KubeRay takes the suspension of a RayJob, and deletes this very RayCluster."""
    spec, status = job.spec, job.status
    allowed = bool(spec.shutdown_after_job_finishes) and not spec.cluster_selector
    mine = status.ray_cluster_name == source.metadata.name
    return allowed and mine and status.job_deployment_status in SUSPENDABLE


def _is_tried_again(job: RayJob) -> bool:
    retry_left = (job.status.failed or 0) < (job.spec.backoff_limit or 0)
    return retry_left and job.spec.submission_mode != HTTP_MODE


def _why_not_again(job: RayJob) -> str:
    if job.spec.submission_mode == HTTP_MODE:
        return "in HTTPMode (spec.submissionMode) it is not retried when its cluster is lost"
    return "it has no retry left (spec.backoffLimit)"
