"""Reads a gang with its pods, its Events, its rivals and the nodes."""

import asyncio

from cli.endings import Absent, CannotRead
from cli.read.cluster import read_events, read_gangs_anywhere
from cli.read.own_queues import with_own_queues
from cli.read.reader import Reader
from cli.report.gangs import queue_of
from cli.report.no_gang import no_gang_of
from cli.report.objects import RayOwner
from cli.report.snapshot import GANGS, NODES, PODS, QUEUES, Snapshot, Unread
from cli.report.why import Case
from kube.api import resources
from kube.api.resources import Resource
from kube.objects import names
from kube.objects.base import Labels
from kube.objects.core import Namespace, Pod
from kube.objects.gang import Gang
from kube.ray.wrapped_by import wrapper_of_gang
from scheduling.model.holder import SENT_GANGS


async def read_case(reader: Reader, namespace: str, name: str) -> tuple[Snapshot, Case]:
    """Read all that `why` tells of one gang; raises Absent where there is none of that name."""
    gang = await _gang(reader, namespace, name)
    kinds = [GANGS, QUEUES, *((NODES, PODS) if _is_short(gang) else ())]
    found, pods, events = await asyncio.gather(
        read_gangs_anywhere(reader, *kinds, fallback=namespace),
        _pods(reader, gang),
        read_events(reader, namespace, gang.metadata.uid),
    )
    if pods is None and not found.lacks(PODS):
        found = found.with_unread(Unread("", "the pods of the gang cannot be listed"))
    found = await with_own_queues(reader, found, {queue_of(gang)})
    return found, Case(gang, pods or (), events)


def _is_short(gang: Gang) -> bool:
    return any(each.shortage is not None for each in gang.status.pod_sets)


async def _pods(reader: Reader, gang: Gang) -> tuple[Pod, ...] | None:
    """Read the pods of a gang, gated ones too; None where that is not allowed."""
    name = gang.metadata.name
    wrapper = wrapper_of_gang(name)
    label = names.RAY_CLUSTER if wrapper is None else names.APP_WRAPPER
    said = name if wrapper is None else wrapper.name
    try:
        return await reader.list(
            resources.PODS,
            Pod,
            namespace=gang.metadata.namespace,
            label_selector=f"{label}={said}",
        )
    except CannotRead:
        return None


async def _gang(reader: Reader, namespace: str, name: str) -> Gang:
    """Find the gang of an object, or of the RayCluster of a job or service."""
    for begin in ("", names.APP_WRAPPER_GANG, names.MCAD_GANG, *SENT_GANGS.values()):
        gang = await reader.get(resources.GANGS, Gang, f"{begin}{name}", namespace)
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
    """Say that there is no gang, and where there is a Ray object of that name, why it is none."""
    missing = f"no gang {name} in namespace {namespace}"
    for kind in (resources.RAY_CLUSTERS, resources.RAY_JOBS, resources.RAY_SERVICES):
        owner = await _owner(reader, kind, namespace, name)
        if owner is not None:
            said = no_gang_of(kind.plural, owner, await _namespace_labels(reader, namespace))
            return f"{missing}: {kind.plural} {name} is there and {said}"
    return f"{missing}; muster status -n {namespace} lists those there are"


async def _namespace_labels(reader: Reader, name: str) -> Labels:
    """Read the labels of a namespace; none where it may not be read."""
    try:
        found = await reader.get(resources.NAMESPACES, Namespace, name)
    except CannotRead:
        return {}
    return found.metadata.labels if found else {}
