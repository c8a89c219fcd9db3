"""Reports jobs: how far each is, the Ray cluster that it runs on, and why it waits."""

from collections.abc import Iterable, Mapping

import msgspec

from cli.report.order import natural
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim
from kube.objects.gang import Gang

_RUNNING = ("Running", "Finished")


class JobSpec(Part, frozen=True):
    """What of a RayJob says where it runs, and how it is submitted."""

    entrypoint: str = ""
    cluster_selector: OrNull[Labels] = msgspec.field(default_factory=dict)
    submission_mode: str = ""


class JobTimes(Slim, frozen=True):
    """When Ray began the job and ended it."""

    start_time: str | None = None
    end_time: str | None = None


class JobStatus(Slim, frozen=True):
    """How far KubeRay, and Ray, have come with a job."""

    job_id: str = ""
    job_status: str = ""
    job_deployment_status: str = ""
    ray_cluster_name: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    end_time: str | None = None
    ray_job_info: JobTimes = JobTimes()


class Job(Slim, frozen=True):
    """A RayJob."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def cluster(self) -> str:
        """The RayCluster that it runs on; empty before it has one."""
        return self.status.ray_cluster_name or self.spec.cluster_selector.get(names.RAY_CLUSTER, "")

    @property
    def succeeded(self) -> bool:
        """Whether Ray says that its command ended well."""
        return self.status.job_status == "SUCCEEDED"


def ending(job: Job) -> str:
    """Say how a job ended."""
    meta, status = job.metadata, job.status
    state = status.job_status or status.job_deployment_status or "not known how it ended"
    said = f"{state}: {status.message}" if status.message else state
    return f"RayJob {meta.namespace}/{meta.name}: {said}"


class JobReport(Slim, frozen=True):
    """One job. `deployment` is KubeRay's word for it, `job` is Ray's."""

    namespace: str
    name: str
    cluster: str
    job: str
    deployment: str
    queue: str
    reason: str
    message: str
    created: str
    began: str
    ended: str
    entrypoint: str


class JobsReport(Slim, frozen=True):
    """All jobs, the newest last."""

    jobs: tuple[JobReport, ...]
    namespace: str = ""
    unread: tuple[str, ...] = ()


def jobs_report(
    jobs: Iterable[Job], gangs: Iterable[Gang], namespace: str, unread: Iterable[str]
) -> JobsReport:
    """Report on jobs with the gangs of the Ray clusters that they run on."""
    by_cluster = {(each.metadata.namespace, each.metadata.name): each for each in gangs}
    found = sorted(jobs, key=_place)
    return JobsReport(
        tuple(job_report(each, by_cluster) for each in found), namespace, tuple(unread)
    )


def _place(job: Job) -> tuple[object, ...]:
    meta = job.metadata
    return meta.creation_timestamp or "", meta.namespace, natural(meta.name)


def job_report(job: Job, gangs: Mapping[tuple[str, str], Gang]) -> JobReport:
    """Report on one job; while its gang waits the reason is the gang's."""
    meta, status = job.metadata, job.status
    gang = gangs.get((meta.namespace, job.cluster))
    waits = gang is not None and not status.job_status and gang.status.phase not in _RUNNING
    said = (gang.status.reason, gang.status.message) if gang is not None and waits else None
    reason, message = said or (status.reason, status.message)
    return JobReport(
        meta.namespace,
        meta.name,
        job.cluster,
        status.job_status,
        status.job_deployment_status,
        gang.spec.queue if gang is not None else "",
        reason,
        message,
        meta.creation_timestamp or "",
        status.ray_job_info.start_time or status.start_time or "",
        status.ray_job_info.end_time or status.end_time or "",
        job.spec.entrypoint,
    )
