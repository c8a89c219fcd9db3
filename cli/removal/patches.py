"""Builds the patches that resume what Muster suspended, opt out, and free GangQueues."""

from collections.abc import Iterable
from typing import Any

from cli.removal.objects import AnyObject, Cluster
from kube.codec.pod_patches import JsonPatch
from kube.objects import names
from kube.objects.gang import Gang
from kube.objects.ray import RayJob
from kube.ray.held_start import HELD
from scheduling.model.verdict import Reason

SUSPENDED_BY_MUSTER = ("Waiting", "Suspending")
"""Phases of a held start in which the RayCluster is suspended, or is to be."""

UNGUARDED: dict[str, Any] = {
    "status": {
        "reason": Reason.OPTED_OUT,
        "message": "muster release: nothing is reserved, and no pod is released to a node",
    }
}
"""Marks a Gang so that the extender guards nothing for it, and takes its pods for any others."""

_HELD = f"/metadata/annotations/{names.HELD.replace('/', '~1')}"
OPTED_OUT: dict[str, Any] = {"metadata": {"labels": {names.OPT_IN: "false"}}}


def held_by_muster(clusters: Iterable[Cluster], gangs: Iterable[Gang]) -> list[Cluster]:
    """Return the RayClusters that Muster suspended: by their Gang, or by Muster's note on them."""
    phases = {
        each.spec.ray_cluster_uid: each.status.held.phase
        for each in gangs
        if each.status.held is not None
    }
    return [each for each in clusters if each.spec.suspend and _is_held(each, phases)]


def _is_held(cluster: Cluster, phases: dict[str, str]) -> bool:
    noted = cluster.metadata.annotations.get(names.HELD) == HELD
    return noted or phases.get(cluster.metadata.uid) in SUSPENDED_BY_MUSTER


def is_guarded(gang: Gang) -> bool:
    """Say whether the extender may keep room for a gang, and its own pods out of all other."""
    return gang.status.reason != Reason.OPTED_OUT


def resumption(cluster: Cluster) -> JsonPatch:
    """Resume a RayCluster and take Muster's note off: only an explicit false wakes it."""
    meta = cluster.metadata
    noted = names.HELD in meta.annotations
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "add", "path": "/spec/suspend", "value": False},
        *([{"op": "remove", "path": _HELD}] if noted else []),
    ]


def job_resumption(job: RayJob) -> dict[str, Any]:
    """Resume a RayJob as it was read, and take Muster's note off it."""
    meta = job.metadata
    note = {names.SUSPENDED_FOR: None}
    told = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": note}
    return {"metadata": told, "spec": {"suspend": False}}


def without_finalizer(held: AnyObject, finalizer: str = names.QUEUE_FINALIZER) -> JsonPatch:
    """Take one of Muster's finalizers off an object; nothing where it does not have it."""
    found = held.metadata.finalizers
    if finalizer not in found:
        return []
    path = f"/metadata/finalizers/{found.index(finalizer)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": held.metadata.uid},
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]
