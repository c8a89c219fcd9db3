"""Reads what the page of one Ray cluster shows first, without the holders of the room it lacks.

The Gang of the cluster tells why it waits. The holders of the room need the lists of the whole
cluster, so a request of its own reads them (`read_why`), as `muster why` does.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from cli.endings import Absent, NotAllowed, NotServed
from cli.page.reading.cluster_report import ClusterReport, ShownPod, cluster_report
from cli.page.reading.clusters import gang_of
from cli.page.reading.links import Link
from cli.page.reading.timeline import timeline
from cli.read.case import read_case
from cli.read.reader import Reader
from cli.report.no_gang import no_gang_of
from cli.report.objects import Event, RayOwner
from cli.report.why import WhyReport, why_report
from kube.api import resources
from kube.objects import names
from kube.objects.core import Namespace
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster

T = TypeVar("T")


async def read_cluster(
    reader: Reader, namespace: str, name: str, links: Iterable[Link]
) -> ClusterReport:
    """Read one RayCluster; raises Absent where there is none of that name."""
    cluster = await reader.get(resources.RAY_CLUSTERS, RayCluster, name, namespace)
    if cluster is None:
        raise Absent(f"no RayCluster {name} in namespace {namespace}")
    unread: list[str] = []
    gang_name = gang_of(cluster.metadata)
    selector = f"{names.RAY_CLUSTER}={name}"
    gang, pods = await asyncio.gather(
        _noted(reader.get(resources.GANGS, Gang, gang_name, namespace), None, unread),
        _noted(
            reader.list(resources.PODS, ShownPod, namespace=namespace, label_selector=selector),
            (),
            unread,
        ),
    )
    about = [("RayCluster", cluster.metadata.uid)]
    about += [("Gang", gang.metadata.uid)] if gang is not None else []
    found = await asyncio.gather(*(_events(reader, namespace, uid, unread) for _, uid in about))
    events = [(kind, e) for (kind, _), each in zip(about, found, strict=True) for e in each]
    no_gang = "" if gang is not None or unread else await _no_gang(reader, namespace, name)
    times = timeline(cluster, gang, events)
    unread = list(dict.fromkeys([*unread, *reader.faults]))
    return cluster_report(cluster, (gang_name, gang, no_gang), pods, times, links, unread)


async def read_why(reader: Reader, namespace: str, gang: str) -> WhyReport:
    """Read why a gang waits with all who have to do with it, as `muster why` does."""
    found, case = await read_case(reader, namespace, gang)
    return why_report(found, case)


async def _noted(reading: Coroutine[Any, Any, T], other: T, unread: list[str]) -> T:
    """Return what is read; where that is not allowed, note it, and return the other."""
    try:
        return await reading
    except (NotAllowed, NotServed) as fault:
        unread.append(str(fault))
        return other


async def _events(reader: Reader, namespace: str, uid: str, unread: list[str]) -> tuple[Event, ...]:
    """Read the Events of one object, not of an earlier one of its name."""
    about = f"involvedObject.uid={uid}"
    found = reader.list(resources.EVENTS, Event, namespace=namespace, field_selector=about)
    return await _noted(found, (), unread)


async def _no_gang(reader: Reader, namespace: str, name: str) -> str:
    """Say why a RayCluster is no gang."""
    owner = await reader.get(resources.RAY_CLUSTERS, RayOwner, name, namespace) or RayOwner()
    labels: list[str] = []
    found = await _noted(reader.get(resources.NAMESPACES, Namespace, namespace), None, labels)
    said = no_gang_of("rayclusters", owner, found.metadata.labels if found else {})
    return f"{said} (the labels of the namespace are not known)" if labels else said
