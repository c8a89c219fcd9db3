"""Resumes RayJobs that Muster suspended, once KubeRay has deleted their RayClusters.

The RayJob shows all that this needs: Muster's annotation, and how far KubeRay has come. A RayJob
without the annotation was suspended by its user, and is left alone.
"""

from coordinator.messages.actions import Action, ResumeRayJob
from coordinator.messages.write_ends import RayJobWriteEnded
from coordinator.state.known import Known, Resumption
from kube.objects.clusters.gang_offer import OFFER_KIND
from kube.objects.ray import RayJob
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

NEVER = float("-inf")  # no moment to wait for

RESUMABLE = ("Suspended", "Complete", "Failed", "ValidationFailed")
"""States of a RayJob whose RayCluster is gone, or that has come to its end by itself."""


def resume_jobs(known: Known, moment: Moment) -> list[Action]:
    """Ask for the resumptions that are missing."""
    if known.blind:
        return []
    suspended = known.cache.owners.suspended
    for uid in known.term.resumptions.keys() - suspended.keys():
        del known.term.resumptions[uid]
    due = (job for job in suspended.values() if _is_due(known, job, moment))
    return [_resume(known, job) for job in sorted(due, key=lambda job: job.metadata.uid)]


def resumption_ended(known: Known, event: RayJobWriteEnded, moment: Moment) -> None:
    """Take in how a resumption ended; one that failed is tried again after a time."""
    tried = known.term.resumptions.get(event.uid)
    if tried is not None and event.error is not None:
        tried.version = ""
        tried.attempts.failed(moment.now, event.error)


def _is_due(known: Known, job: RayJob, moment: Moment) -> bool:
    tried, version = known.term.resumptions.get(job.metadata.uid), job.metadata.resource_version
    if any(each.kind == OFFER_KIND for each in job.metadata.owner_references):
        return False  # it goes back to the cluster that sent it
    over = not job.spec.suspend or job.status.job_deployment_status in RESUMABLE
    if tried is None:
        return over
    return over and tried.version != version and tried.attempts.not_before <= moment.now


def _resume(known: Known, job: RayJob) -> Action:
    tried = known.term.resumptions.setdefault(job.metadata.uid, Resumption())
    tried.version, tried.attempts.not_before = job.metadata.resource_version, NEVER
    return ResumeRayJob(GangKey(job.metadata.namespace, job.metadata.name), job)
