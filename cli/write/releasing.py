"""Takes every gate of Muster off at once, and resumes what Muster suspended: the kill switch."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from cli.endings import NotAllowed
from cli.removal.objects import Cluster
from cli.removal.patches import UNGUARDED, is_guarded, job_resumption, resumption
from cli.removal.told import Told, counted, named
from cli.write.pacing import do_all, until_none_is_left
from cli.write.standstill import HEARD, stop_programs, take_rules_away
from cli.write.survey import (
    Survey,
    gating_counted,
    read_gangs,
    read_gated,
    read_held,
    read_jobs,
    read_pinned,
)
from cli.write.writer import NotWritten, Writer
from coordinator.state.rayjob_resumption import RESUMABLE
from kube.api.resources import GANGS, PODS, RAY_CLUSTERS, RAY_JOBS
from kube.codec.pod_patches import gate_removal_patch
from kube.objects.core import Pod
from kube.objects.gang import Gang
from kube.objects.ray import RayJob


def plan(survey: Survey) -> list[str]:
    """Say what would be done, in its order."""
    return [
        f"delete {gating_counted(survey.gating)}: no new pod gets a gate",
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

    Returns the programs that may run on. Raises StandsInTheWay, before any gate is taken off, where
    new pods would still get one, or a coordinator may lead.
    """
    await take_rules_away(writer, told)
    settled_at = time.monotonic() + HEARD
    elsewhere = await stop_programs(writer, survey, told)
    await unguard(writer, told, lambda: read_gangs(writer.reader))
    await _release_at_once(writer, told)
    await _release_the_rest(writer, told, settled_at)
    for each in _of_wrappers(survey):
        told.say(each)
    await _tell_pinned(writer, told)
    return elsewhere


async def unguard(
    writer: Writer, told: Told, find: Callable[[], Awaitable[Sequence[Gang]]]
) -> None:
    """Have the extender take the pods of gangs for any others, before they come to be scheduled.

    It lets a gang's pod pass on the node of a slot alone, and keeps that room from others.
    """

    async def guarded() -> list[Gang]:
        return [each for each in await find() if is_guarded(each)]

    async def mark(gang: Gang) -> NotWritten | None:
        meta = gang.metadata
        return await writer.merge_patch(GANGS.path(meta.namespace, meta.name, "status"), UNGUARDED)

    done = await until_none_is_left("Gangs to be marked", guarded, mark, told)
    told.say(f"{counted(done, 'Gang')} marked OptedOut")


async def _release_at_once(writer: Writer, told: Told) -> None:
    """Resume and release all that waits now; what fails is tried again with the rest."""
    clusters = await read_held(writer.reader)
    failed = await do_all(clusters, lambda each: resume(writer, each))
    told.say(f"{counted(len(clusters) - len(failed), 'held RayCluster')} resumed")
    pods = await read_gated(writer.reader)

    def show(count: int) -> None:
        told.progress(f"gated pods: {count} of {len(pods)}")

    failed_pods = await do_all(pods, lambda each: ungate(writer, each), show)
    told.say(f"gates taken off {counted(len(pods) - len(failed_pods), 'pod')}")


async def _release_the_rest(writer: Writer, told: Told, settled_at: float) -> None:
    """Go on until nothing waits and no API server knows of the rules any more.

    All at the same time: KubeRay may take long to have RayJobs resumed, and gates wait for none.
    """
    reader = writer.reader
    told.say(
        f"looking for more until {HEARD:.0f} s after that deletion: an API server may hear so late"
    )
    clusters, pods, jobs = await asyncio.gather(
        until_none_is_left(
            *("held RayClusters", lambda: read_held(reader), lambda each: resume(writer, each)),
            told,
            settled_at=settled_at,
        ),
        until_none_is_left(
            *("gated pods", lambda: read_gated(reader), lambda each: ungate(writer, each)),
            told,
            settled_at=settled_at,
        ),
        until_none_is_left(
            *(
                "suspended RayJobs",
                lambda: read_jobs(reader),
                lambda each: _resume_job(writer, each),
            ),
            told,
        ),
    )
    if clusters:
        told.say(f"{counted(clusters, 'more held RayCluster')} resumed")
    if pods:
        told.say(f"gates taken off {counted(pods, 'more pod')}")
    told.say(f"{counted(jobs, 'suspended RayJob')} resumed")


async def ungate(writer: Writer, pod: Pod) -> NotWritten | None:
    """Take Muster's gate off a pod."""
    path = PODS.path(pod.metadata.namespace, pod.metadata.name)
    return await writer.json_patch(path, gate_removal_patch(pod))


async def resume(writer: Writer, cluster: Cluster) -> NotWritten | None:
    """Resume a RayCluster."""
    path = RAY_CLUSTERS.path(cluster.metadata.namespace, cluster.metadata.name)
    return await writer.json_patch(path, resumption(cluster))


async def _resume_job(writer: Writer, job: RayJob) -> NotWritten | None:
    """Resume a RayJob; KubeRay takes that once its RayCluster is gone."""
    meta, state = job.metadata, job.status.job_deployment_status
    if state not in RESUMABLE:
        return NotWritten(f"KubeRay still suspends RayJob {meta.namespace}/{meta.name}")
    return await writer.merge_patch(RAY_JOBS.path(meta.namespace, meta.name), job_resumption(job))


_START_A_WRAPPER = (
    f"to start one, start Muster again, wait {HEARD:.0f} s, and create the AppWrapper anew: one "
    "that is older than the webhook's rules is not trusted"
)


def _of_wrappers(survey: Survey) -> list[str]:
    if not survey.wrappers:
        return []
    count = counted(len(survey.wrappers), "AppWrapper waits", "AppWrappers wait")
    said = "nothing of what they wrap exists, and nothing creates it while Muster is stopped"
    return [f"{count}: {said}: {named(survey.wrappers)}; {_START_A_WRAPPER}"]


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
