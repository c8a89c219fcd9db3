"""Explains why a RayCluster, RayJob or RayService has no gang: its opt-in, or its own state."""

from collections.abc import Iterator

from cli.report.objects import RayOwner
from kube.objects import names
from kube.objects.base import Labels
from kube.ray.ray_cluster import opt_in


def no_gang_of(kind: str, owner: RayOwner, namespace_labels: Labels) -> str:
    """Say why there is none, as the end of a sentence about the object."""
    meta = owner.metadata
    found = opt_in(meta.labels, meta.annotations, namespace_labels)
    if found.gated:
        return "; ".join(["has no gang yet", *_made(kind, owner), *_state(owner)])
    if found.value:
        return f'is no gang: its {found.where} {names.OPT_IN} is "{found.value}"; set it to "true"'
    return f'is no gang; set label {names.OPT_IN}: "true" on it or on its namespace'


def _made(kind: str, owner: RayOwner) -> Iterator[str]:
    """Yield which RayClusters KubeRay has made for a RayJob or a RayService."""
    if owner.clusters:
        yield f"its RayCluster is {', '.join(owner.clusters)}"
    elif kind != "rayclusters":
        yield "KubeRay has made no RayCluster for it"


def _state(owner: RayOwner) -> Iterator[str]:
    """Yield what the object itself says of where it stands."""
    status = owner.status
    if owner.spec.suspend:
        yield "its spec.suspend is true"
    said = status.job_deployment_status or status.service_status or status.state
    if said:
        why = ": ".join(each for each in (status.reason, status.message) if each and each != said)
        yield f"its status is {said}" + (f" ({why})" if why else "")
