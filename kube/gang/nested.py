"""Reads the RayCluster that a Ray object makes, from the spec and status of that object. Pure.

For a RayCluster it is the object itself. This module alone says which objects may be sent to
another cluster.
"""

from typing import NamedTuple

import msgspec

from kube.objects.base import Labels, OrNull, Part
from kube.objects.ray import ABSENT, RayClusterSpec, RayClusterStatus
from kube.ray.gang_terms import Problem

RAY_CLUSTER, RAY_JOB, RAY_SERVICE = "RayCluster", "RayJob", "RayService"

SPEC_FIELDS = {RAY_JOB: "rayClusterSpec", RAY_SERVICE: "rayClusterConfig"}
"""By kind the field of the spec that is the spec of a RayCluster."""

SIDECAR = "SidecarMode"
_STAYS = "none: a job on a RayCluster that is there stays where that is"
_NO_SIDECAR = "another mode: what KubeRay adds to the head for it is not known before"


class Nested(NamedTuple):
    """The RayCluster that an object makes; `fault` says what of it cannot be read."""

    spec: RayClusterSpec
    stopped: bool = False
    """Its user suspended it."""
    problems: tuple[Problem, ...] = ()
    """Why it can be sent nowhere."""
    fault: str = ""


class _Spec(Part, frozen=True):
    suspend: bool | None = None
    cluster_selector: OrNull[Labels] = msgspec.field(default_factory=dict)
    submission_mode: str | None = None
    ray_cluster_spec: msgspec.Raw = ABSENT
    ray_cluster_config: msgspec.Raw = ABSENT


class _Serving(Part, frozen=True):
    ray_cluster_status: OrNull[RayClusterStatus] = RayClusterStatus()


class _Status(Part, frozen=True):
    ray_cluster_status: OrNull[RayClusterStatus] = RayClusterStatus()
    active_service_status: OrNull[_Serving] = _Serving()


def nested(kind: str, written: msgspec.Raw) -> Nested:
    """Read the spec of an object; its faults are for a message, and stop nothing else."""
    where = SPEC_FIELDS.get(kind)
    try:
        if where is None:
            itself = msgspec.json.decode(written, type=RayClusterSpec)
            return Nested(itself, bool(itself.suspend))
        outer = msgspec.json.decode(written, type=_Spec)
        inner = outer.ray_cluster_spec if kind == RAY_JOB else outer.ray_cluster_config
        found = msgspec.json.decode(inner, type=RayClusterSpec) if inner != ABSENT else None
    except (msgspec.ValidationError, msgspec.DecodeError) as fault:
        return Nested(RayClusterSpec(), fault=f"spec: {fault}")
    stopped = outer.suspend if kind == RAY_JOB else found is not None and found.suspend
    return Nested(found or RayClusterSpec(), bool(stopped), _problems(outer))


def nested_status(kind: str, written: msgspec.Raw) -> RayClusterStatus:
    """Read what an object says of its RayCluster; nothing where that cannot be read."""
    try:
        if kind == RAY_CLUSTER:
            return msgspec.json.decode(written, type=RayClusterStatus)
        found = msgspec.json.decode(written, type=_Status)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return RayClusterStatus()
    is_job = kind == RAY_JOB
    return found.ray_cluster_status if is_job else found.active_service_status.ray_cluster_status


def _problems(outer: _Spec) -> tuple[Problem, ...]:
    """Say why an object can be sent nowhere."""
    found = []
    if outer.cluster_selector:
        chosen = ",".join(f"{key}={value}" for key, value in outer.cluster_selector.items())
        found.append(Problem("spec.clusterSelector", chosen, _STAYS))
    if outer.submission_mode == SIDECAR:
        found.append(Problem("spec.submissionMode", SIDECAR, _NO_SIDECAR))
    return tuple(found)
