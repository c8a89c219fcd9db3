"""Reads Ray objects whole, as they are written back, and what belongs to them."""

from typing import Any

from cli.endings import Absent, CannotRead, Unusable
from cli.managing.owners import check_free
from cli.read.reader import Reader
from kube.api import resources
from kube.api.resources import Resource
from kube.objects import names
from kube.objects.core import Pod
from kube.objects.gang import Gang

Json = dict[str, Any]

_KINDS = {
    resources.RAY_CLUSTERS: "RayCluster",
    resources.RAY_JOBS: "RayJob",
    resources.GANG_QUEUES: "GangQueue",
}


async def read_object(reader: Reader, resource: Resource, namespace: str, name: str) -> Json:
    """Read one object; raises Absent where there is none of that name."""
    found = await reader.get(resource, Json, name, namespace)
    if found is None:
        where = f" in namespace {namespace}" if namespace else ""
        raise Absent(f"no {_KINDS[resource]} {name}{where}")
    return found


async def read_free(reader: Reader, resource: Resource, name: str, namespace: str) -> Json:
    """Read an object that may be changed; raises StandsInTheWay where it belongs to another."""
    place, short = placed(name, namespace, reader.namespace)
    found = await read_object(reader, resource, place, short)
    check_free(_KINDS[resource], found["metadata"])
    return found


def placed(name: str, namespace: str, usual: str) -> tuple[str, str]:
    """Return namespace and name of `NAME` or `NAMESPACE/NAME`; raises Unusable."""
    place, slash, short = name.rpartition("/")
    if not short or "/" in place or (slash and not place):
        raise Unusable(f"{name}: allowed: NAME or NAMESPACE/NAME")
    if place and namespace not in ("", place):
        raise Unusable(f"{name} is not in namespace {namespace}: name one of the two")
    found = place or namespace or usual
    if not found:
        raise Unusable("name a namespace: -n NAMESPACE, or NAMESPACE/NAME")
    return found, short


async def pods_of(reader: Reader, namespace: str, cluster: str) -> tuple[Pod, ...] | None:
    """Read the pods of a RayCluster; None where they may not be listed."""
    try:
        return await reader.list(
            resources.PODS,
            Pod,
            namespace=namespace,
            label_selector=f"{names.RAY_CLUSTER}={cluster}",
        )
    except CannotRead:
        return None


async def workers_of(reader: Reader, namespace: str, cluster: str) -> dict[str, str]:
    """Return the worker pods of a RayCluster with their groups."""
    found = await pods_of(reader, namespace, cluster) or ()
    labels = {each.metadata.name: each.metadata.labels for each in found}
    return {
        name: said.get(names.RAY_GROUP, "")
        for name, said in labels.items()
        if said.get(names.RAY_NODE_TYPE) == "worker"
    }


async def held_phase(reader: Reader, namespace: str, cluster: str) -> str:
    """Return how far the held start of a gang is; empty where it is none, or not known."""
    try:
        gang = await reader.get(resources.GANGS, Gang, cluster, namespace)
    except CannotRead:
        return ""
    return gang.status.held.phase if gang is not None and gang.status.held is not None else ""


async def list_objects(reader: Reader, resource: Resource, namespace: str) -> tuple[Json, ...]:
    """Read all objects of a kind; none where they may not be listed."""
    try:
        return await reader.list(resource, Json, namespace=namespace)
    except CannotRead:
        return ()
