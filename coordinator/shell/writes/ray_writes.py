"""Suspends and resumes RayJobs and RayClusters; only their watches report their new state."""

from collections.abc import Awaitable
from typing import Any, TypeAlias

import structlog

from coordinator.messages.actions import (
    ResumeRayCluster,
    ResumeRayJob,
    SuspendRayCluster,
    SuspendRayJob,
    WakeKubeRay,
)
from coordinator.messages.events import Event
from coordinator.messages.write_ends import RayClusterWriteEnded, RayJobWriteEnded
from coordinator.shell.writes.write_outcomes import Outcomes, is_refusal
from kube.api.client import Client
from kube.api.errors import KubeError, is_of_what_goes
from kube.api.resources import RAY_CLUSTERS, RAY_JOBS
from kube.codec.pod_patches import Operation
from kube.objects import names
from kube.objects.base import Present
from kube.objects.ray import RayCluster, RayJob
from kube.ray.held_start import HELD
from kube.ray.ray_owner import suspension_note
from scheduling.model.gang import GangKey

log = structlog.get_logger()

RayWrite: TypeAlias = (
    SuspendRayJob | ResumeRayJob | SuspendRayCluster | ResumeRayCluster | WakeKubeRay
)

_HELD = f"/metadata/annotations/{names.HELD.replace('/', '~1')}"


class RayWrites:
    """Carries out what is to be done to KubeRay's objects."""

    def __init__(self, client: Client, outcomes: Outcomes) -> None:
        self._client = client
        self._outcomes = outcomes

    async def carry_out(self, action: RayWrite) -> list[Event]:
        """Send one write, and say what became of it."""
        match action:
            case SuspendRayJob():
                changes = suspension(action.job, action.suspended_for)
                return await self._write_job(action, "rayjob_suspend", changes)
            case ResumeRayJob():
                changes = {"metadata": _noted(action.job, None), "spec": {"suspend": False}}
                return await self._write_job(action, "rayjob_resume", changes)
            case SuspendRayCluster():
                request = self._suspend_cluster(action.cluster)
                return await self._write_cluster(action, "raycluster_suspend", request)
            case ResumeRayCluster():
                request = self._resume_cluster(action.cluster)
                return await self._write_cluster(action, "raycluster_resume", request)
            case WakeKubeRay():
                return await self._wake(action)

    async def _write_job(
        self, action: SuspendRayJob | ResumeRayJob, what: str, changes: dict[str, Any]
    ) -> list[Event]:
        request = self._client.merge_patch(job_path(action.job), changes, as_=RayJob)
        gang, uid = action.gang, action.job.metadata.uid
        error = await self._error_of(request, "RayJob write failed", what, gang)
        if error is None:
            return [RayJobWriteEnded(gang, uid, None)]
        unknown = error.outcome_unknown
        return [RayJobWriteEnded(gang, uid, str(error), is_refusal(error), unknown)]

    async def _write_cluster(
        self, action: SuspendRayCluster | ResumeRayCluster, what: str, request: Awaitable[object]
    ) -> list[Event]:
        gang, uid = action.gang, action.cluster.metadata.uid
        error = await self._error_of(request, "RayCluster write failed", what, gang)
        if error is None:
            return [RayClusterWriteEnded(gang, uid, None)]
        return [RayClusterWriteEnded(gang, uid, str(error), is_refusal(error))]

    async def _error_of(
        self, request: Awaitable[object], said: str, what: str, gang: GangKey
    ) -> KubeError | None:
        try:
            await request
        except KubeError as error:
            self._outcomes.failed(what, error)
            if not is_of_what_goes(error):
                log.info(said, gang=str(gang), what=what, error=str(error))
            return error
        self._outcomes.done(what)
        return None

    async def _resume_cluster(self, cluster: RayCluster) -> None:
        """Resume a RayCluster as it was read, and take Muster's note off it.

        Only an explicit false wakes one that KubeRay has suspended.
        """
        noted = names.HELD in cluster.metadata.annotations
        note: list[Operation] = [{"op": "remove", "path": _HELD}] if noted else []
        operations = [*_with_suspend(cluster, value=False), *note]
        await self._client.json_patch(_cluster_path(cluster), operations, as_=Present)

    async def _suspend_cluster(self, cluster: RayCluster) -> None:
        """Suspend a RayCluster as it was read, and note on it that Muster did.

        The note tells it where the Gang is lost, and where Muster is removed. Where no annotation
        was read there may be none to add it to, or some that are not read: it is merged before.
        """
        path, operations = _cluster_path(cluster), _with_suspend(cluster, value=True)
        if cluster.metadata.annotations:
            operations += [{"op": "add", "path": _HELD, "value": HELD}]
        else:
            note = {"uid": cluster.metadata.uid, "annotations": {names.HELD: HELD}}
            await self._client.merge_patch(path, {"metadata": note})
        await self._client.json_patch(path, operations, as_=Present)

    async def _wake(self, action: WakeKubeRay) -> list[Event]:
        """Make KubeRay reconcile a RayCluster, as it does at each change of an annotation.

        If the patch fails, KubeRay looks by itself some minutes later.
        """
        cluster = action.cluster
        note = {"uid": cluster.metadata.uid, "annotations": {names.WOKEN: action.at}}
        try:
            await self._client.merge_patch(_cluster_path(cluster), {"metadata": note})
        except KubeError as error:
            self._outcomes.failed("raycluster_wake", error)
        else:
            self._outcomes.done("raycluster_wake")
        return []


def _cluster_path(cluster: RayCluster) -> str:
    return RAY_CLUSTERS.path(cluster.metadata.namespace, cluster.metadata.name)


def _with_suspend(cluster: RayCluster, *, value: bool) -> list[Operation]:
    """Set the field, unless the spec changed: then it is decided again what to do.

    A late suspension would end a gang that runs.
    """
    meta = cluster.metadata
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/generation", "value": meta.generation},
        {"op": "add", "path": "/spec/suspend", "value": value},
    ]


def job_path(job: RayJob) -> str:
    """Return where a RayJob is."""
    return RAY_JOBS.path(job.metadata.namespace, job.metadata.name)


def suspension(job: RayJob, suspended_for: str) -> dict[str, Any]:
    """Return what suspends a RayJob as it was read, and notes for what."""
    note = suspension_note(job, suspended_for)
    return {"metadata": _noted(job, note), "spec": {"suspend": True}}


def _noted(job: RayJob, note: str | None) -> dict[str, Any]:
    """Return metadata that fail the patch of any other version of the object than the one read."""
    meta = job.metadata
    annotations = {names.SUSPENDED_FOR: note}
    return {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": annotations}
