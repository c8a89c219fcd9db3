"""Opts gangs out of Muster one by one, and waits until each is released.

A label opts a gang out: the coordinator then takes the gates off and resumes held clusters, within
seconds. If no coordinator leads, or it does not act, this module does so itself.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Final

from cli.endings import Absent, NotAllowed, Unusable
from cli.read.reader import Reader
from cli.removal.objects import AnyObject, Cluster
from cli.removal.patches import OPTED_OUT, held_by_muster
from cli.removal.told import Told, counted, named
from cli.report.objects import RayOwner
from cli.write.pacing import until_none_is_left
from cli.write.releasing import resume, ungate, unguard
from cli.write.survey import list_served, read_gangs, read_gated
from cli.write.writer import Writer
from kube.api import resources
from kube.api.resources import Resource
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Pod
from kube.objects.gang import Gang
from kube.ray.ray_cluster import owner_cluster
from kube.ray.wrapped_by import is_made_for_wrapper

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
        return [], await _gangs_among(reader, namespace, clusters)
    owners, of_owners = await _owners(reader, namespace, name)
    mine = [each for each in clusters if each.metadata.name in {name, *of_owners}]
    if not mine and not owners:
        raise Absent(f"no RayCluster, RayJob or RayService {name} in namespace {namespace}")
    return owners, mine


async def _gangs_among(
    reader: Reader, namespace: str, clusters: Sequence[Cluster]
) -> list[Cluster]:
    """Return those that have a Gang, a gated pod, or that Muster suspended.

    Without a coordinator the first may not be there yet.
    """
    gangs = await read_gangs(reader, namespace)
    known = {each.metadata.name for each in gangs}
    uids = {_owner_uid(each) for each in await read_gated(reader, namespace)}
    uids |= {each.metadata.uid for each in held_by_muster(clusters, gangs)}
    return [
        each
        for each in clusters
        if (each.metadata.name in known or each.metadata.uid in uids)
        and not is_made_for_wrapper(each.metadata)
    ]


async def others_gated(reader: Reader, namespace: str, clusters: Sequence[Cluster]) -> int:
    """Count the gated pods of a namespace that no label on these RayClusters lets go."""
    uids = {each.metadata.uid for each in clusters}
    found = await read_gated(reader, namespace)
    return sum(_owner_uid(each) not in uids for each in found)


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
    """Label all, wait for the coordinator, and do the rest where it does not.

    What could not be labelled is left as it is: a coordinator would take it for a gang on.
    """
    labelled = [
        each.metadata for kind, each in owners if await _label(writer, kind, each.metadata, told)
    ]
    mine = [
        each
        for each in clusters
        if await _label(writer, resources.RAY_CLUSTERS, each.metadata, told)
    ]
    labelled += [each.metadata for each in mine]
    if not labelled:
        return
    said = named(f"{meta.namespace}/{meta.name}" for meta in labelled)
    told.say(f'{names.OPT_IN}: "false" set on {said}')
    if await _goes_by_itself(writer.reader, mine):
        told.say("the coordinator took the gates off")
        return
    told.say(f"no coordinator took the gates off within {PATIENCE:.0f} s: doing it from here")
    await _by_hand(writer, mine, told)


async def _label(writer: Writer, kind: Resource, meta: ObjectMeta, told: Told) -> bool:
    failed = await writer.merge_patch(kind.path(meta.namespace, meta.name), OPTED_OUT)
    if failed is not None:
        told.leave(f"{kind.plural} {meta.namespace}/{meta.name}: {failed.why}")
    return failed is None


async def _goes_by_itself(reader: Reader, clusters: Sequence[Cluster]) -> bool:
    until = time.monotonic() + PATIENCE
    while await _gated_of(reader, clusters) or await _held_of(reader, clusters):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(1)
    return True


async def _gated_of(reader: Reader, clusters: Sequence[Cluster]) -> list[Pod]:
    if not clusters:
        return []
    uids = {each.metadata.uid for each in clusters}
    pods = await read_gated(reader, _namespace_of(clusters))
    return [each for each in pods if _owner_uid(each) in uids]


def _namespace_of(clusters: Sequence[Cluster]) -> str:
    """Name their one namespace: a tenant may read no other."""
    return clusters[0].metadata.namespace


def _owner_uid(pod: Pod) -> str:
    owner = owner_cluster(pod.metadata)
    return owner.uid if owner is not None else ""


async def _gangs_of(reader: Reader, clusters: Sequence[Cluster]) -> list[Gang]:
    if not clusters:
        return []
    uids = {each.metadata.uid for each in clusters}
    gangs = await read_gangs(reader, _namespace_of(clusters))
    return [each for each in gangs if each.spec.ray_cluster_uid in uids]


async def _held_of(reader: Reader, clusters: Sequence[Cluster]) -> list[Cluster]:
    if not clusters:
        return []
    uids, namespace = {each.metadata.uid for each in clusters}, _namespace_of(clusters)
    now = await list_served(reader, resources.RAY_CLUSTERS, Cluster, namespace=namespace)
    mine = [each for each in now if each.metadata.uid in uids]
    return held_by_muster(mine, await read_gangs(reader, namespace))


async def _by_hand(writer: Writer, clusters: Sequence[Cluster], told: Told) -> None:
    reader = writer.reader
    await unguard(writer, told, lambda: _gangs_of(reader, clusters))
    resumed = await until_none_is_left(
        "held RayClusters",
        lambda: _held_of(reader, clusters),
        lambda each: resume(writer, each),
        told,
    )
    done = await until_none_is_left(
        "gated pods", lambda: _gated_of(reader, clusters), lambda each: ungate(writer, each), told
    )
    told.say(f"gates taken off {counted(done, 'pod')}, {counted(resumed, 'RayCluster')} resumed")
