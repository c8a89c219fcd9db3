"""Reads what `muster doctor` checks, and notes what may not be read."""

import asyncio
import time
from importlib import metadata
from typing import Any, Final, TypeVar

from cli.endings import NotAllowed, NotServed
from cli.read.home import DEPLOYMENTS, find_home
from cli.read.reader import Reader
from cli.report.doctor.examined import (
    ConfigMap,
    Deployment,
    EndpointSlice,
    Examined,
    Lease,
    Looked,
    PolicyBinding,
    RayObject,
    SchedulerPod,
    ServerVersion,
    TlsSecret,
    WebhookConfiguration,
)
from cli.report.snapshot import Unread
from kube.api import resources
from kube.api.resources import CONFIG_MAPS, Resource
from kube.objects.core import Namespace
from kube.objects.crds.definition import Definition
from kube.objects.names import KUBE_SYSTEM
from kube.objects.queues.queue import GangQueue

T = TypeVar("T")

DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False
)
BINDINGS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", namespaced=False
)
SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices")
SECRETS: Final = Resource("", "v1", "secrets")
POD_GROUPS: Final = tuple(
    Resource("scheduling.k8s.io", version, "podgroups")
    for version in ("v1alpha2", "v1alpha3", "v1beta1", "v1")
)
SCHEDULERS: Final = "component=kube-scheduler"


class _ServerVersion(Resource):
    """What the API server says of itself, which is in no list."""

    def path(
        self,
        namespace: str | None = None,  # noqa: ARG002 - the signature of a resource
        name: str | None = None,  # noqa: ARG002
        subresource: str | None = None,  # noqa: ARG002
    ) -> str:
        """Return the path."""
        return "/version"


VERSION: Final = _ServerVersion("", "v1", "version", namespaced=False)


async def read_examined(reader: Reader) -> Examined:
    """Read all; raises CannotRead where the API server cannot be reached at all."""
    version = await _one(reader, VERSION, ServerVersion, "", "")
    namespace = await find_home(reader)
    (
        definitions,
        configurations,
        bindings,
        slices,
        secrets,
        leases,
        deployments,
        schedulers,
        config_maps,
        queues,
        namespaces,
        ray_clusters,
    ) = await asyncio.gather(
        _list(reader, DEFINITIONS, Definition),
        _list(reader, CONFIGURATIONS, WebhookConfiguration),
        _list(reader, BINDINGS, PolicyBinding),
        _list(reader, SLICES, EndpointSlice, namespace),
        _list(reader, SECRETS, TlsSecret, namespace),
        _list(reader, resources.LEASES, Lease, namespace),
        _list(reader, DEPLOYMENTS, Deployment),
        _list(reader, resources.PODS, SchedulerPod, KUBE_SYSTEM, SCHEDULERS),
        _list(reader, CONFIG_MAPS, ConfigMap, KUBE_SYSTEM),
        _list(reader, resources.GANG_QUEUES, GangQueue),
        _list(reader, resources.NAMESPACES, Namespace),
        _list(reader, resources.RAY_CLUSTERS, RayObject),
    )
    return Examined(
        time.time(),
        metadata.version("muster"),
        namespace,
        version,
        definitions,
        configurations,
        bindings,
        slices,
        secrets,
        leases,
        deployments,
        schedulers,
        config_maps,
        queues,
        namespaces,
        ray_clusters,
        await _serves_pod_groups(reader),
    )


async def _serves_pod_groups(reader: Reader) -> bool:
    """Say whether any version of native PodGroups is served; where it is not said, none."""
    found = await asyncio.gather(*(_list(reader, each, Definition) for each in POD_GROUPS))
    return any(not isinstance(each, Unread) for each in found)


async def _one(
    reader: Reader, resource: Resource, as_: type[T], name: str, namespace: str
) -> Looked[T]:
    try:
        found = await reader.get(resource, as_, name, namespace)
    except (NotAllowed, NotServed) as refusal:
        return Unread(resource.plural, str(refusal))
    return Unread(resource.plural, "there is none") if found is None else (found,)


async def _list(
    reader: Reader, resource: Resource, as_: type[Any], namespace: str = "", selector: str = ""
) -> Looked[Any]:
    try:
        return await reader.list(resource, as_, namespace=namespace, label_selector=selector)
    except (NotAllowed, NotServed) as refusal:
        return Unread(resource.plural, str(refusal))
