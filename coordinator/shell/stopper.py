"""Sends what stops gangs and starts them: evictions, suspension, resumption of Ray objects."""

from typing import Any

from kube.api.client import Client
from kube.api.resources import PODS, RAY_CLUSTERS, RAY_JOBS
from kube.codec.pod_patches import Operation
from kube.objects import names
from kube.objects.base import Present
from kube.objects.core import BarePod
from kube.objects.ray import RayCluster, RayJob
from kube.ray.held_start import HELD
from kube.ray.ray_owner import suspension_note

DRY_RUN = "?dryRun=All"
_JOB_SELECTOR = ("batch.kubernetes.io/controller-uid", "controller-uid")
"""The labels by which a Job finds its pods, the present one and the earlier one."""

_HELD = f"/metadata/annotations/{names.HELD.replace('/', '~1')}"


class Stopper:
    """Writes what stops gangs, each of it also as a dry run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Evict this very pod."""
        await self._client.create(_eviction_of(namespace, name), _eviction(namespace, name, uid))

    async def try_to_evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask whether this very pod would be evicted."""
        path = f"{_eviction_of(namespace, name)}{DRY_RUN}"
        await self._client.create(path, _eviction(namespace, name, uid))

    async def suspend(self, job: RayJob, suspended_for: str) -> RayJob:
        """Suspend a RayJob as it was read, and note for what."""
        return await self._client.merge_patch(
            _path(job), _suspended(job, suspended_for), as_=RayJob
        )

    async def try_to_suspend(self, job: RayJob, suspended_for: str) -> None:
        """Ask whether a RayJob would be suspended, whichever its version is by now."""
        changes = _suspended(job, suspended_for)
        del changes["metadata"]["resourceVersion"]
        await self._client.merge_patch(f"{_path(job)}{DRY_RUN}", changes)

    async def resume(self, job: RayJob) -> RayJob:
        """Resume a RayJob as it was read, and take the note off it."""
        changes = {"metadata": _noted(job, None), "spec": {"suspend": False}}
        return await self._client.merge_patch(_path(job), changes, as_=RayJob)

    async def resume_cluster(self, cluster: RayCluster) -> None:
        """Resume a RayCluster as it was read, and take Muster's note off it.

        Only an explicit false wakes one that KubeRay has suspended.
        """
        noted = names.HELD in cluster.metadata.annotations
        note: list[Operation] = [{"op": "remove", "path": _HELD}] if noted else []
        operations = [*_with_suspend(cluster, value=False), *note]
        await self._client.json_patch(_cluster_path(cluster), operations, as_=Present)

    async def suspend_cluster(self, cluster: RayCluster) -> None:
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

    async def take_from_job(self, namespace: str, name: str, uid: str, version: str) -> str:
        """Take a pod off the selector of its Job, which gives it up; return its new version."""
        gone = dict.fromkeys(_JOB_SELECTOR)
        taken = {"metadata": {"uid": uid, "resourceVersion": version, "labels": gone}}
        found = await self._client.merge_patch(PODS.path(namespace, name), taken, as_=BarePod)
        return found.metadata.resource_version

    async def wake(self, cluster: RayCluster, at: str) -> None:
        """Have KubeRay reconcile a RayCluster: it does at each change of an annotation."""
        note = {"uid": cluster.metadata.uid, "annotations": {names.WOKEN: at}}
        await self._client.merge_patch(_cluster_path(cluster), {"metadata": note})


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


def _eviction_of(namespace: str, name: str) -> str:
    return PODS.path(namespace, name, "eviction")


def _eviction(namespace: str, name: str, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def _path(job: RayJob) -> str:
    return RAY_JOBS.path(job.metadata.namespace, job.metadata.name)


def _suspended(job: RayJob, suspended_for: str) -> dict[str, Any]:
    note = suspension_note(job, suspended_for)
    return {"metadata": _noted(job, note), "spec": {"suspend": True}}


def _noted(job: RayJob, note: str | None) -> dict[str, Any]:
    """Return metadata that fail the patch of any other version of the object than the one read."""
    meta = job.metadata
    annotations = {names.SUSPENDED_FOR: note}
    return {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": annotations}
