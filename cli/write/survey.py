"""Reads the objects to stop and release, before any change."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cli.endings import NotServed
from cli.read.home import DEPLOYMENTS, find_home
from cli.read.reader import Reader
from cli.removal.objects import AnyObject, Cluster
from cli.removal.ours import STOPPED_PROGRAMS, is_rule
from cli.removal.patches import held_by_muster, is_guarded
from cli.removal.told import counted
from kube.api import resources
from kube.api.resources import Resource
from kube.codec.pod_patches import pinned_node
from kube.objects import names
from kube.objects.core import Pod
from kube.objects.gang import Gang
from kube.objects.ray import RayJob
from kube.ray.ray_cluster import owner_cluster
from kube.ray.ray_owner import is_suspended_by_muster
from kube.ray.wrapped_by import wrapper_of_gang

ADMISSION: Final = "admissionregistration.k8s.io"
CONFIGURATIONS: Final = tuple(
    Resource(ADMISSION, "v1", plural, namespaced=False)
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
)
BINDINGS: Final = Resource(ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False)
"""The bindings of policies that refuse."""

GATING_BINDINGS: Final = tuple(
    Resource(ADMISSION, version, "mutatingadmissionpolicybindings", namespaced=False)
    for version in ("v1", "v1beta1", "v1alpha1")
)
"""The bindings of policies that gate, in the versions in which they may be served."""

NOT_BOUND: Final = "spec.nodeName=,status.phase=Pending"
"""No other pod has a gate."""


Rules = tuple[tuple[Resource, AnyObject], ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """What stands between the pods and their nodes."""

    home: str
    """The namespace of Muster."""

    gating: Rules
    bindings: Rules
    programs: tuple[AnyObject, ...]
    gangs: tuple[Gang, ...]
    """Those that the extender may guard."""

    gated: tuple[Pod, ...]
    clusters: tuple[Cluster, ...]
    jobs: tuple[RayJob, ...]
    wrappers: tuple[str, ...]
    """AppWrappers that wait: nothing of what they wrap exists."""


async def read_survey(reader: Reader) -> Survey:
    """Read all of it; raises CannotRead where anything may not be read."""
    home = await find_home(reader)
    programs = await read_programs(reader, home)
    gating, bindings, gated, clusters, jobs, gangs = await asyncio.gather(
        read_gating(reader),
        read_bindings(reader),
        read_gated(reader),
        read_held(reader),
        read_jobs(reader),
        read_gangs(reader),
    )
    return Survey(
        home=home,
        gating=gating,
        bindings=bindings,
        programs=programs,
        gangs=tuple(each for each in gangs if is_guarded(each)),
        gated=gated,
        clusters=clusters,
        jobs=jobs,
        wrappers=_wrappers(gangs),
    )


async def list_served(
    reader: Reader, resource: Resource, as_: type[Any], **selectors: str
) -> tuple[Any, ...]:
    """List a kind that need not be served."""
    try:
        return await reader.list(resource, as_, **selectors)
    except NotServed:
        return ()


async def read_programs(reader: Reader, home: str) -> tuple[AnyObject, ...]:
    """Read the Deployments of the programs that decide, in Muster's namespace."""
    found = await reader.list(DEPLOYMENTS, AnyObject, namespace=home)
    return tuple(each for each in found if each.metadata.name in STOPPED_PROGRAMS)


async def read_gating(reader: Reader) -> Rules:
    """Read what gives pods a gate: the webhook's configurations, and the binding of a policy."""
    found = [(each, await reader.list(each, AnyObject)) for each in CONFIGURATIONS]
    configurations = ((kind, each) for kind, all_ in found for each in all_)
    bindings = await _gating_bindings(reader)
    mine = [each for each in (*configurations, *bindings) if is_rule(each[1].metadata)]
    return tuple(mine)


async def _gating_bindings(reader: Reader) -> Rules:
    for kind in GATING_BINDINGS:
        try:
            return tuple((kind, each) for each in await reader.list(kind, AnyObject))
        except NotServed:
            continue
    return ()


def gating_counted(found: Rules) -> str:
    """Count what gates pods, by what it is."""
    webhooks = sum(kind in CONFIGURATIONS for kind, _ in found)
    bindings = len(found) - webhooks
    said = counted(webhooks, "webhook configuration")
    return f"{said} and {counted(bindings, 'gating policy binding')}" if bindings else said


async def read_bindings(reader: Reader) -> Rules:
    """Read the bindings of the policies that refuse."""
    found = await list_served(reader, BINDINGS, AnyObject)
    return tuple((BINDINGS, each) for each in found if is_rule(each.metadata))


async def read_gated(reader: Reader, namespace: str = "") -> tuple[Pod, ...]:
    """Read the pods with Muster's gate, of one namespace or of all."""
    found = await reader.list(resources.PODS, Pod, namespace=namespace, field_selector=NOT_BOUND)
    return tuple(each for each in found if has_gate(each))


def has_gate(pod: Pod) -> bool:
    """Say whether a pod has Muster's gate."""
    return any(each.name == names.GATE for each in pod.spec.scheduling_gates)


async def read_pinned(reader: Reader) -> int:
    """Count the Ray pods that Muster released to a node and that are not bound to it."""
    found = await reader.list(resources.PODS, Pod, field_selector=NOT_BOUND)
    mine = (each for each in found if owner_cluster(each.metadata) and not has_gate(each))
    return sum(pinned_node(each) is not None for each in mine)


async def read_held(reader: Reader) -> tuple[Cluster, ...]:
    """Read the RayClusters that Muster suspended."""
    clusters = await list_served(reader, resources.RAY_CLUSTERS, Cluster)
    return tuple(held_by_muster(clusters, await read_gangs(reader)))


async def read_jobs(reader: Reader) -> tuple[RayJob, ...]:
    """Read the RayJobs that Muster suspended."""
    found = await list_served(reader, resources.RAY_JOBS, RayJob)
    return tuple(each for each in found if each.spec.suspend and is_suspended_by_muster(each))


async def read_gangs(reader: Reader, namespace: str = "") -> tuple[Gang, ...]:
    """Read the Gangs, of one namespace or of all; none where their definition is gone."""
    return await list_served(reader, resources.GANGS, Gang, namespace=namespace)


def _wrappers(gangs: Sequence[Gang]) -> tuple[str, ...]:
    waiting = (each for each in gangs if each.status.held is not None and _waits(each))
    found = ((each.metadata.namespace, wrapper_of_gang(each.metadata.name)) for each in waiting)
    return tuple(f"{place}/{wrapper.name}" for place, wrapper in found if wrapper is not None)


def _waits(gang: Gang) -> bool:
    return gang.status.held is not None and gang.status.held.phase == "Waiting"
