"""Takes gangs out of Muster's hands one by one: opts them out, and sees to it that they go.

The label is the way: the coordinator then takes the gates off and resumes what is held, within
seconds. Where none leads, or it does not, that is done from here.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Final

from cli.endings import Absent, NotAllowed, Unusable
from cli.read.reader import Reader
from cli.removal.objects import AnyObject, Cluster
from cli.removal.patches import OPTED_OUT, held_by_muster, resumption
from cli.removal.told import Told, counted, named
from cli.report.objects import RayOwner
from cli.write.pacing import until_none_is_left
from cli.write.survey import NOT_BOUND, has_gate, list_served, read_gangs
from cli.write.writer import NotWritten, Writer
from kube.api import resources
from kube.api.client import Resource
from kube.codec.pod_patches import gate_removal_patch
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Pod
from kube.ray.ray_cluster import owner_cluster

PATIENCE: Final = 30.0
"""Seconds that the coordinator has to release what is opted out; it takes some two."""

Owner = tuple[Resource, RayOwner]


async def find_gangs(
    reader: Reader, namespace: str, name: str
) -> tuple[list[Owner], list[Cluster]]:
    """Find what is to be labelled: the Ray object of a name and its RayClusters, or all gangs.

    Raises Absent where there is none.
    """
    clusters = await list_served(reader, resources.RAY_CLUSTERS, Cluster, namespace=namespace)
    if not name:
        gangs = {
            each.metadata.name
            for each in await read_gangs(reader)
            if each.metadata.namespace == namespace
        }
        return [], [each for each in clusters if each.metadata.name in gangs]
    owners, of_owners = await _owners(reader, namespace, name)
    mine = [each for each in clusters if each.metadata.name in {name, *of_owners}]
    if not mine and not owners:
        raise Absent(f"no RayCluster, RayJob or RayService {name} in namespace {namespace}")
    return owners, mine


async def _owners(reader: Reader, namespace: str, name: str) -> tuple[list[Owner], list[str]]:
    found: list[Owner] = []
    clusters: list[str] = []
    for kind in (resources.RAY_JOBS, resources.RAY_SERVICES):
        for each in await list_served(reader, kind, RayOwner, namespace=namespace):
            if each.metadata.name == name:
                found.append((kind, each))
                clusters += each.clusters
    return found, clusters


async def is_namespace_opted_in(reader: Reader, namespace: str) -> bool:
    """Say whether new Ray clusters of a namespace are gangs by its label."""
    try:
        found = await reader.get(resources.NAMESPACES, AnyObject, namespace)
    except NotAllowed:
        return False
    if found is None:
        raise Unusable(f"there is no namespace {namespace}")
    return found.metadata.labels.get(names.OPT_IN) == "true"


async def opt_out(
    writer: Writer, owners: Iterable[Owner], clusters: Sequence[Cluster], told: Told
) -> None:
    """Label all, wait for the coordinator, and do the rest where it does not."""
    labelled: list[tuple[Resource, ObjectMeta]] = [(kind, each.metadata) for kind, each in owners]
    labelled += [(resources.RAY_CLUSTERS, each.metadata) for each in clusters]
    for kind, meta in labelled:
        failed = await writer.merge_patch(kind.path(meta.namespace, meta.name), OPTED_OUT)
        if failed is not None:
            told.leave(f"{kind.plural} {meta.namespace}/{meta.name}: {failed.why}")
    said = named(f"{meta.namespace}/{meta.name}" for _, meta in labelled)
    told.say(f'{names.OPT_IN}: "false" set on {said}')
    if await _goes_by_itself(writer.reader, clusters):
        told.say("the coordinator took the gates off")
        return
    told.say(f"no coordinator took the gates off within {PATIENCE:.0f} s: doing it from here")
    await _by_hand(writer, clusters, told)


async def _goes_by_itself(reader: Reader, clusters: Sequence[Cluster]) -> bool:
    until = time.monotonic() + PATIENCE
    while await _gated_of(reader, clusters) or await _held_of(reader, clusters):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(1)
    return True


async def _gated_of(reader: Reader, clusters: Sequence[Cluster]) -> list[Pod]:
    uids = {each.metadata.uid for each in clusters}
    found: list[Pod] = []
    for namespace in sorted({each.metadata.namespace for each in clusters}):
        pods = await reader.list(resources.PODS, Pod, namespace=namespace, field_selector=NOT_BOUND)
        found += [each for each in pods if has_gate(each) and _owner_uid(each) in uids]
    return found


def _owner_uid(pod: Pod) -> str:
    owner = owner_cluster(pod.metadata)
    return owner.uid if owner is not None else ""


async def _held_of(reader: Reader, clusters: Sequence[Cluster]) -> list[Cluster]:
    uids = {each.metadata.uid for each in clusters}
    now = await list_served(reader, resources.RAY_CLUSTERS, Cluster)
    mine = [each for each in now if each.metadata.uid in uids]
    return held_by_muster(mine, await read_gangs(reader)) if mine else []


async def _by_hand(writer: Writer, clusters: Sequence[Cluster], told: Told) -> None:
    async def resume(cluster: Cluster) -> NotWritten | None:
        meta = cluster.metadata
        path = resources.RAY_CLUSTERS.path(meta.namespace, meta.name)
        return await writer.json_patch(path, resumption(cluster))

    async def ungate(pod: Pod) -> NotWritten | None:
        path = resources.PODS.path(pod.metadata.namespace, pod.metadata.name)
        return await writer.json_patch(path, gate_removal_patch(pod))

    reader = writer.reader
    resumed = await until_none_is_left(
        "held RayClusters", lambda: _held_of(reader, clusters), resume, told
    )
    done = await until_none_is_left("gated pods", lambda: _gated_of(reader, clusters), ungate, told)
    told.say(f"gates taken off {counted(done, 'pod')}, {counted(resumed, 'RayCluster')} resumed")
