"""Works out the deadline that a RayJob sets its gang, and what an upgrade of a RayService needs.

The deadlines of a RayJob run from its first moment on, also while its gang waits: KubeRay then ends
a job that never ran, and leaves its RayCluster unless it is told otherwise. A RayService that is
upgraded keeps the version that serves until the next one is ready, so both need their room at once.
"""

from dataclasses import dataclass

from coordinator.gang.setbacks.late_starts import stamp_of
from coordinator.messages.actions import Regarding
from kube.codec.fields import AFTER_ALL, moment_of
from kube.objects import names
from kube.objects.ray import RayJob, RayOwner, RayService
from kube.ray.ray_owner import ENDED

LONGEST_WARNING = 300.0
"""Seconds before a deadline at which its user is warned, at most; a quarter of it where shorter."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When KubeRay ends a RayJob (seconds since 1970), and the field of its spec that says so."""

    job: str
    field: str
    seconds: int
    at: float

    @property
    def warn_at(self) -> float:
        """When its user is to be warned (seconds since 1970)."""
        return self.at - min(LONGEST_WARNING, self.seconds / 4)

    @property
    def message(self) -> str:
        """Say when the job ends, and why."""
        return (
            f"KubeRay ends RayJob {self.job} at {stamp_of(self.at)}: its {self.field} of "
            f"{self.seconds} s runs while the gang waits"
        )


def deadline_of(job: RayJob) -> Deadline | None:
    """Return the first deadline of a RayJob that has begun; None where it has none, or is over.

    One that no calendar has, for the begin cannot be read or the time has no end, is none.
    """
    if end_in_words(job):
        return None
    began = moment_of(job.status.start_time or "")
    fields = {
        "activeDeadlineSeconds": job.spec.active_deadline_seconds,
        "preRunningDeadlineSeconds": job.spec.pre_running_deadline_seconds,
    }
    found = [
        Deadline(job.metadata.name, field, seconds, began + seconds)
        for field, seconds in fields.items()
        if seconds is not None and began
    ]
    told = (each for each in found if 0 < each.at < AFTER_ALL)
    return min(told, key=lambda each: each.at, default=None)


def end_in_words(job: RayJob) -> str:
    """Say that a RayJob is over, so that nothing would run on its RayCluster; else empty."""
    state = job.status.job_deployment_status
    if state not in ENDED:
        return ""
    return (
        f"RayJob {job.metadata.name} has ended ({state}), and nothing would run on its "
        "RayCluster, which KubeRay left: delete the RayJob"
    )


def regarding(owner: RayOwner | None) -> tuple[Regarding, ...]:
    """Return what Events on a gang are to be shown at as well: its owner, if there is one."""
    if owner is None:
        return ()
    kind = "RayJob" if isinstance(owner, RayJob) else "RayService"
    meta = owner.metadata
    return (Regarding(names.RAY_API_VERSION, kind, meta.name, meta.uid),)


def wait_in_words(owner: RayOwner | None, cluster: str) -> str:
    """Say what the owner of a RayCluster means for its wait; empty where nothing."""
    if isinstance(owner, RayService):
        serves = version_that_serves(owner, cluster)
        return upgrade_in_words(owner, serves) if serves else ""
    deadline = deadline_of(owner) if owner is not None else None
    return deadline.message if deadline is not None else ""


def version_that_serves(service: RayService, cluster: str) -> str:
    """Name the RayCluster that serves while another one of its RayService starts; else empty."""
    serves = service.status.active_service_status.ray_cluster_name
    starts = service.status.pending_service_status.ray_cluster_name
    return serves if starts == cluster != serves else ""


def upgrade_in_words(service: RayService, serves: str) -> str:
    """Say that two versions of a RayService need room at the same time."""
    return (
        f"RayService {service.metadata.name} keeps RayCluster {serves} until this version is "
        "ready, so both need room at once"
    )
