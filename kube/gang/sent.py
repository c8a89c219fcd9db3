"""Names the kinds of objects that may be sent to another cluster. Pure.

A kind is written as kubectl takes it: with its API group where two groups have a kind of that name.
"""

from collections.abc import Mapping

from kube.api.resources import (
    APP_WRAPPERS,
    MCAD_APP_WRAPPERS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    Resource,
)
from kube.gang.nested import RAY_CLUSTER, RAY_JOB, RAY_SERVICE
from kube.objects import names
from kube.objects.base import Labels, OwnerReference
from kube.ray.wrapped_by import gang_name

APP_WRAPPER = names.APP_WRAPPER_KIND
MCAD_APP_WRAPPER = f"{APP_WRAPPER}.{names.MCAD_GROUP}"

RAY_RESOURCES: Mapping[str, Resource] = {
    RAY_CLUSTER: RAY_CLUSTERS,
    RAY_JOB: RAY_JOBS,
    RAY_SERVICE: RAY_SERVICES,
}
WRAPPER_RESOURCES: Mapping[str, Resource] = {
    APP_WRAPPER: APP_WRAPPERS,
    MCAD_APP_WRAPPER: MCAD_APP_WRAPPERS,
}
"""Not every cluster serves them."""

RESOURCES: Mapping[str, Resource] = {**RAY_RESOURCES, **WRAPPER_RESOURCES}

ENDING = frozenset((RAY_JOB, *WRAPPER_RESOURCES))
"""Those that end: what is gone on its member may have been done there."""


def kind_of(api_version: str, kind: str) -> str:
    """Return the kind of an object as it is called here."""
    is_of_mcad = kind == APP_WRAPPER and api_version.partition("/")[0] == names.MCAD_GROUP
    return MCAD_APP_WRAPPER if is_of_mcad else kind


def kind_referred(owner: OwnerReference) -> str:
    """Return the same of an object that is referred to."""
    return kind_of(owner.api_version, owner.kind)


def is_noted(annotations: Labels) -> bool:
    """Say whether the webhook noted on an AppWrapper that another cluster runs it."""
    return annotations.get(names.DISPATCHED) == "true"


def typed(kind: str) -> dict[str, str]:
    """Return apiVersion and kind as manifests have them."""
    found = RESOURCES[kind]
    return {"apiVersion": f"{found.group}/{found.version}", "kind": kind.partition(".")[0]}


def own_gang(kind: str, name: str) -> str:
    """Name the gang that an object is itself; empty of one that makes RayClusters, which are."""
    if kind in WRAPPER_RESOURCES:
        return gang_name(WRAPPER_RESOURCES[kind].group, name)
    return name if kind == RAY_CLUSTER else ""
