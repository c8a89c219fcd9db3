"""Takes every gate of Muster off at once, and resumes what Muster suspended: the kill switch."""

import time

from cli.endings import NotAllowed
from cli.removal.objects import Cluster
from cli.removal.patches import UNGUARDED, is_guarded, job_resumption, resumption
from cli.removal.told import Told, counted, named
from cli.write.pacing import until_none_is_left
from cli.write.standstill import HEARD, stop_programs, take_rules_away
from cli.write.survey import (
    Survey,
    read_gangs,
    read_gated,
    read_held,
    read_jobs,
    read_pinned,
)
from cli.write.writer import NotWritten, Writer
from coordinator.state.resuming import RESUMABLE
from kube.api.resources import GANGS, PODS, RAY_CLUSTERS, RAY_JOBS
from kube.codec.pod_patches import gate_removal_patch
from kube.objects.core import Pod
from kube.objects.gang import Gang
from kube.objects.ray import RayJob


def plan(survey: Survey) -> list[str]:
    """Say what would be done, in its order."""
    return [
        f"delete {counted(len(survey.rules), 'webhook configuration')}: no new pod gets a gate",
        f"delete {counted(len(survey.bindings), 'policy binding')}",
        f"stop the programs that decide ({counted(len(survey.programs), 'Deployment')} to 0)",
        f"mark {counted(len(survey.gangs), 'Gang')} OptedOut: the extender guards nothing for them",
        f"resume {counted(len(survey.clusters), 'RayCluster')} that Muster suspended",
        f"take Muster's gate off {counted(len(survey.gated), 'pod')}",
        f"resume {counted(len(survey.jobs), 'RayJob')} that Muster suspended",
        *_of_wrappers(survey),
    ]


async def release_all(writer: Writer, survey: Survey, told: Told) -> frozenset[str]:
    """Do it; what fails is told, and the rest goes on.

    Returns the programs that may run outside of their Deployments.
    """
    await take_rules_away(writer, told)
    settled_at = time.monotonic() + HEARD
    elsewhere = await stop_programs(writer, survey, told)
    await _unguard_gangs(writer, told)
    await resume_clusters(writer, told, settled_at)
    await take_gates_off(writer, told, settled_at)
    await _resume_jobs(writer, told)
    for each in _of_wrappers(survey):
        told.say(each)
    await _tell_pinned(writer, told)
    return elsewhere


async def _unguard_gangs(writer: Writer, told: Told) -> None:
    """Have the extender take the pods of gangs for any others, before they come to be scheduled.

    It lets a gang's pod pass on the node of a slot alone, and keeps that room from others.
    """

    async def guarded() -> list[Gang]:
        return [each for each in await read_gangs(writer.reader) if is_guarded(each)]

    async def unguard(gang: Gang) -> NotWritten | None:
        meta = gang.metadata
        return await writer.merge_patch(GANGS.path(meta.namespace, meta.name, "status"), UNGUARDED)

    done = await until_none_is_left("Gangs to be marked", guarded, unguard, told)
    told.say(f"{counted(done, 'Gang')} marked OptedOut")


async def take_gates_off(writer: Writer, told: Told, settled_at: float = 0.0) -> None:
    """Take the gates off all pods, those that still get one after `settled_at` too."""

    async def ungate(pod: Pod) -> NotWritten | None:
        meta = pod.metadata
        return await writer.json_patch(
            PODS.path(meta.namespace, meta.name), gate_removal_patch(pod)
        )

    done = await until_none_is_left(
        "gated pods", lambda: read_gated(writer.reader), ungate, told, settled_at=settled_at
    )
    told.say(f"gates taken off {counted(done, 'pod')}")


async def resume_clusters(writer: Writer, told: Told, settled_at: float = 0.0) -> None:
    """Resume the RayClusters that Muster suspended, those held before `settled_at` too."""

    async def resume(cluster: Cluster) -> NotWritten | None:
        meta = cluster.metadata
        path = RAY_CLUSTERS.path(meta.namespace, meta.name)
        return await writer.json_patch(path, resumption(cluster))

    done = await until_none_is_left(
        *("held RayClusters", lambda: read_held(writer.reader), resume, told),
        settled_at=settled_at,
    )
    told.say(f"{counted(done, 'held RayCluster')} resumed")


async def _resume_jobs(writer: Writer, told: Told) -> None:
    """Resume the RayJobs that Muster suspended; KubeRay takes that once their clusters are gone."""

    async def resume(job: RayJob) -> NotWritten | None:
        meta, state = job.metadata, job.status.job_deployment_status
        if state not in RESUMABLE:
            return NotWritten(f"KubeRay still suspends RayJob {meta.namespace}/{meta.name}")
        path = RAY_JOBS.path(meta.namespace, meta.name)
        return await writer.merge_patch(path, job_resumption(job))

    done = await until_none_is_left(
        "suspended RayJobs", lambda: read_jobs(writer.reader), resume, told
    )
    told.say(f"{counted(done, 'suspended RayJob')} resumed")


def _of_wrappers(survey: Survey) -> list[str]:
    if not survey.wrappers:
        return []
    count = counted(len(survey.wrappers), "AppWrapper waits", "AppWrappers wait")
    said = "nothing of what they wrap exists, and nothing creates it while Muster is stopped"
    return [f"{count}: {said}: {named(survey.wrappers)}"]


async def _tell_pinned(writer: Writer, told: Told) -> None:
    try:
        count = await read_pinned(writer.reader)
    except NotAllowed:
        return
    if count:
        told.say(
            f"{counted(count, 'pod')} released to a node by Muster and not bound yet: one that "
            "stays Pending has no room there; delete it, and KubeRay makes another, without a node"
        )
