"""Reads a gang with what is about it: its pods and Events, its rivals, the nodes."""

import asyncio

from cli.endings import Absent, CannotRead
from cli.read.cluster import read_events, read_gangs_anywhere
from cli.read.reader import Reader
from cli.report.objects import RayOwner
from cli.report.snapshot import GANGS, NODES, PODS, QUEUES, Snapshot, Unread
from cli.report.why import Case
from kube.api import resources
from kube.api.client import Resource
from kube.objects import names
from kube.objects.core import Pod
from kube.objects.gang import Gang
from kube.objects.names import APP_WRAPPER_GANG


async def read_case(reader: Reader, namespace: str, name: str) -> tuple[Snapshot, Case]:
    """Read all that `why` tells of one gang; raises Absent where there is none of that name."""
    gang = await _gang(reader, namespace, name)
    kinds = [GANGS, QUEUES, *((NODES, PODS) if _is_short(gang) else ())]
    found, pods, events = await asyncio.gather(
        read_gangs_anywhere(reader, *kinds, fallback=namespace),
        _pods(reader, gang),
        read_events(reader, namespace, "Gang", gang.metadata.name),
    )
    if pods is None and not found.lacks(PODS):
        found = found.with_unread(Unread("", "the pods of the gang cannot be listed"))
    return found, Case(gang, pods or (), events)


def _is_short(gang: Gang) -> bool:
    return any(each.shortage is not None for each in gang.status.pod_sets)


async def _pods(reader: Reader, gang: Gang) -> tuple[Pod, ...] | None:
    """Read the pods of a gang, gated ones too; None where that is not allowed."""
    name = gang.metadata.name
    wrapper = name.removeprefix(APP_WRAPPER_GANG)
    label = names.RAY_CLUSTER if wrapper == name else names.APP_WRAPPER
    try:
        return await reader.list(
            resources.PODS,
            Pod,
            namespace=gang.metadata.namespace,
            label_selector=f"{label}={wrapper}",
        )
    except CannotRead:
        return None


async def _gang(reader: Reader, namespace: str, name: str) -> Gang:
    """Find the gang of a RayCluster or AppWrapper, or of the RayCluster of a job or service."""
    for each in (name, f"{APP_WRAPPER_GANG}{name}"):
        gang = await reader.get(resources.GANGS, Gang, each, namespace)
        if gang is not None:
            return gang
    for kind in (resources.RAY_JOBS, resources.RAY_SERVICES):
        owner = await _owner(reader, kind, namespace, name)
        for cluster in owner.clusters if owner else ():
            gang = await reader.get(resources.GANGS, Gang, cluster, namespace)
            if gang is not None:
                return gang
    raise Absent(await _no_gang(reader, namespace, name))


async def _owner(reader: Reader, kind: Resource, namespace: str, name: str) -> RayOwner | None:
    """Read a RayJob or a RayService; none where it may not be read, or is not served."""
    try:
        return await reader.get(kind, RayOwner, name, namespace)
    except CannotRead:
        return None


async def _no_gang(reader: Reader, namespace: str, name: str) -> str:
    """Say that there is no gang, and where there is a Ray object of that name, what it lacks."""
    missing = f"no gang {name} in namespace {namespace}"
    for kind in (resources.RAY_CLUSTERS, resources.RAY_JOBS, resources.RAY_SERVICES):
        owner = await _owner(reader, kind, namespace, name)
        if owner is not None:
            opted = f'set label {names.OPT_IN}: "true" on it or on its namespace'
            return f"{missing}: {kind.plural} {name} is there and is no gang; {opted}"
    return f"{missing}; muster status -n {namespace} lists those there are"
