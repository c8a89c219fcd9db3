"""Finds the RayJob or RayService that made a RayCluster."""

from msgspec.structs import replace

from kube.objects import names
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.ray import RayJob, RayOwner, RayService
from kube.ray.pod_templates import with_submitter

LONGEST_NAME = 512  # of a gang, with its namespace; what is longer is none

ENDED = ("Complete", "Failed")
"""The states of a RayJob that it does not leave; a try that failed and is followed by another
passes through neither."""

_KINDS: dict[str, type[RayOwner]] = {"RayJob": RayJob, "RayService": RayService}


def essential_job(job: RayJob) -> RayJob:
    """Return a RayJob without the labels, annotations and fields that are of no use."""
    return replace(job, metadata=_bare(job.metadata), spec=with_submitter(job.spec))


def essential_service(service: RayService) -> RayService:
    """Return a RayService without its labels and annotations."""
    return replace(service, metadata=_bare(service.metadata))


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """Find the RayJob or RayService that controls a RayCluster."""
    for owner in metadata.owner_references:
        if owner.controller and owner.kind in _KINDS and owner.api_version.startswith("ray.io/"):
            return owner
    return None


def is_the(owner: RayOwner, reference: OwnerReference) -> bool:
    """Say whether a reference means this very object."""
    meta = owner.metadata
    same = (meta.name, meta.uid) == (reference.name, reference.uid)
    return same and isinstance(owner, _KINDS[reference.kind])


def named_clusters(owner: RayOwner) -> set[str]:
    """Return the RayClusters that an owner itself calls its own; KubeRay writes that."""
    if isinstance(owner, RayJob):
        return {owner.status.ray_cluster_name} - {""}
    status = owner.status
    versions = (status.active_service_status, status.pending_service_status)
    return {each.ray_cluster_name for each in versions} - {""}


def is_suspended_by_muster(job: RayJob) -> bool:
    """Say whether Muster suspended this very RayJob, and is to resume it.

    A note that was copied with the manifest of another RayJob says nothing.
    """
    meta = job.metadata
    return bool(meta.uid) and meta.annotations.get(names.SUSPENDED_FOR, "").endswith(f" {meta.uid}")


def suspension_note(job: RayJob, suspended_for: str) -> str:
    """Return what the annotation says of a RayJob that Muster suspends."""
    return f"{suspended_for} {job.metadata.uid}"


def _bare(meta: ObjectMeta) -> ObjectMeta:
    said = meta.annotations.get(names.SUSPENDED_FOR)
    kept = {} if said is None else {names.SUSPENDED_FOR: said[:LONGEST_NAME]}
    return replace(meta, labels={}, annotations=kept)
