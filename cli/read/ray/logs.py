"""Reads logs piece by piece, and waits for those that are followed before they begin."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from cli.endings import Absent
from cli.read.ray.jobs import read_job
from cli.read.ray.ray_object import read_object
from cli.read.reader import Reader
from cli.report.ray.jobs import Job
from cli.report.ray.log_sources import LogSource, is_over, named, of_cluster, of_job
from kube.api import resources
from kube.objects import names
from kube.objects.core import Pod

PAUSE: Final = 1.0
"""Seconds between two looks whether a log has begun."""

ENDING: Final = 60.0
"""Seconds that KubeRay has to say how a job ended, once its log has."""

_JOB_NAME: Final = "batch.kubernetes.io/job-name"


class Out(Protocol):
    """Where logs go."""

    def take(self, name: str, prefix: str, piece: bytes | None) -> None:
        """Take a piece of the log of a pod, with what its lines begin with; None is its end."""

    def say(self, text: str) -> None:
        """Take what is said beside the logs."""


async def cluster_logs(
    reader: Reader, namespace: str, name: str, group: str, container: str, *, every: bool
) -> list[LogSource]:
    """Find the logs of a RayCluster; raises Absent where it, or its pods, are not there."""
    await read_object(reader, resources.RAY_CLUSTERS, namespace, name)
    pods = await _pods(reader, namespace, f"{names.RAY_CLUSTER}={name}")
    return of_cluster(pods, name, group, container, every=every)


async def job_logs(reader: Reader, namespace: str, name: str) -> list[LogSource]:
    """Find the log of a job; raises Absent where there is none, or not yet."""
    job = await read_job(reader, namespace, name)
    submitters = await _pods(reader, namespace, f"{_JOB_NAME}={name}")
    sidecar = job.spec.submission_mode == "SidecarMode" and job.cluster
    pods = await _pods(reader, namespace, f"{names.RAY_CLUSTER}={job.cluster}") if sidecar else ()
    return of_job(job, submitters, pods)


async def _pods(reader: Reader, namespace: str, selector: str) -> tuple[Pod, ...]:
    return await reader.list(resources.PODS, Pod, namespace=namespace, label_selector=selector)


async def pass_all(
    reader: Reader,
    namespace: str,
    sources: Sequence[LogSource],
    params: Mapping[str, str],
    out: Out,
) -> None:
    """Pass logs on: those that are followed at the same time, others one after the other.

    Of several, one that has not begun keeps no other back.
    """
    several = len(sources) > 1

    async def one(source: LogSource, prefix: str) -> None:
        try:
            await _pass_one(reader, namespace, source, prefix, params, out)
        except Absent as fault:
            if not several:
                raise
            out.say(str(fault))

    if "follow" in params:
        await asyncio.gather(*(one(*each) for each in named(sources)))
        return
    for source, prefix in named(sources):
        await one(source, prefix)


async def _pass_one(
    reader: Reader,
    namespace: str,
    source: LogSource,
    prefix: str,
    params: Mapping[str, str],
    out: Out,
) -> None:
    if not source.has_node:
        raise Absent(f"pod {namespace}/{source.pod}: it has no node yet")
    asked = {**params, "container": source.container}
    async with reader.log(namespace, source.pod, asked) as pieces:
        async for piece in pieces:
            out.take(source.pod, prefix, piece)
    out.take(source.pod, prefix, None)


async def follow_job(
    reader: Reader,
    namespace: str,
    name: str,
    params: Mapping[str, str],
    out: Out,
) -> Job:
    """Pass the log of a job on, from when it begins until it ends; returns the job as it ended.

    A submitter that dies has a successor, whose log has all that the job has printed.
    """
    said = ""
    while True:
        try:
            sources = await job_logs(reader, namespace, name)
            await pass_all(reader, namespace, sources, params, out)
            ended = await _ended(reader, namespace, name, sources)
            if ended is not None:
                return ended
            out.say("its submitter ended early: the log of the next one begins anew")
        except Absent as not_yet:
            job = await read_job(reader, namespace, name)
            if is_over(job) or job.spec.submission_mode in ("HTTPMode", "InteractiveMode"):
                raise
            if str(not_yet) != said:
                said = str(not_yet)
                out.say(f"waiting: {said}")
        await asyncio.sleep(PAUSE)


async def _ended(
    reader: Reader, namespace: str, name: str, followed: list[LogSource]
) -> Job | None:
    """Wait until KubeRay says how a job ended; one whose submitter ended early may run on.

    None where another submitter has taken over from the one that was followed.
    """
    for _ in range(int(ENDING / PAUSE)):
        job = await read_job(reader, namespace, name)
        if is_over(job):
            return job
        if await job_logs(reader, namespace, name) != followed:
            return None
        await asyncio.sleep(PAUSE)
    return job
