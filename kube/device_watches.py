"""Watches devices and claims, starting with the first relevant pod that asks for devices.

Most clusters have no such pods, and their API servers get no requests for devices. Once the watches
run they stay, for claims must be known whoever made them.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from kube.api.client import Client
from kube.api.errors import KubeError, NotFound
from kube.api.watch.events import Sink
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.codec.node import resources_of_class
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_facts import DEVICE_WATCHES, GROUP, DeviceWatch, ObservedDeviceFact
from kube.objects.core import DeviceClass, DeviceObject
from scheduling.model.gang import GangKey

log = structlog.get_logger()

EVERY: Final = 300.0
"""Seconds until the version is read again: an upgrade of the control plane may bring the API."""

AGAIN: Final = 5.0
"""Seconds until a read that failed is tried again."""

MOST_ASKED: Final = 1_000
"""Names of extended resources that are kept; where pods ask for more, any of them may be given."""

_VERSION: Final = "/version"
_GROUP_VERSION: Final = f"/apis/{GROUP}/v1"


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


class DeviceApi(NamedTuple):
    """The version of Kubernetes, and whether it serves devices by claim (`resource.k8s.io/v1`)."""

    version: str
    served: bool


class DeviceWatches:
    """The watches by name; `started` are those that run. `sink_of` takes what one of them tells."""

    def __init__(
        self,
        client: Client,
        sink_of: Callable[[DeviceWatch], Sink[ObservedDeviceFact]],
        on_api: Callable[[DeviceApi], None],
    ) -> None:
        self._client, self._sink_of, self._on_api = client, sink_of, on_api
        self._wanted = asyncio.Event()
        self._asked: set[str] = set()
        self._given: set[str] = set()
        self.all: dict[str, Reflector[Any]] = {
            f"devices/{each.resource.plural}": self._reflector(each) for each in DEVICE_WATCHES
        }
        self.started: dict[str, Reflector[Any]] = {}

    def _reflector(self, watch: DeviceWatch) -> Reflector[Any]:
        return Reflector(
            self._client,
            watch.resource,
            DeviceObject,
            self._sink_of(watch),
            project=watch.observe,
            selection=Selection(may_be_absent=True),
        )

    def note(self, pod: ObservedPod) -> None:
        """Begin to watch where a pod asks for devices by claim, or for what a class gives."""
        if self._wanted.is_set():
            return
        if pod.claims or pod.extended_claim:
            self._begin(namespace=pod.namespace, pod=pod.name)
        elif pod.extended and len(self._asked) < MOST_ASKED:
            self._asked.update(each.resource for each in pod.extended)
            self._begin_where_given()

    def note_gang(self, gang: GangKey) -> None:
        """Begin to watch where the pods of a gang will claim devices once they are made."""
        self._begin(namespace=gang.namespace, gang=gang.name)

    def note_class(self, found: DeviceClass) -> None:
        """Begin to watch where a class names a resource, or a pod asks for that of its own name."""
        if found.spec.extended_resource_name:
            self._begin(device_class=found.metadata.name)
        elif not self._wanted.is_set():
            self._given.update(resources_of_class(found))
            self._begin_where_given()

    def _begin_where_given(self) -> None:
        if self._given and (self._given & self._asked or len(self._asked) >= MOST_ASKED):
            self._begin(resource=min(self._given & self._asked, default=""))

    def _begin(self, **why: str) -> None:
        if not self._wanted.is_set():
            log.info("devices by claim are watched", **why)
            self._wanted.set()

    async def run(self) -> None:
        """Wait for such a pod, then watch until cancelled."""
        await self._wanted.wait()
        async with asyncio.TaskGroup() as tasks:
            while True:
                api = await self._read_api()
                if api is not None:
                    self._on_api(api)
                if api is not None and api.served and not self.started:
                    self.started = self.all
                    for each in self.started.values():
                        tasks.create_task(each.run())
                await asyncio.sleep(AGAIN if api is None else EVERY)

    async def _read_api(self) -> DeviceApi | None:
        """Read the version, and whether the API is served; None where there is no answer."""
        try:
            return await read_device_api(self._client)
        except KubeError as error:
            log.info("the version of Kubernetes is not read", error=str(error))
            return None


async def read_device_api(client: Client) -> DeviceApi:
    """Read the version, and whether the API is served; raises KubeError."""
    found = await client.get(_VERSION, as_=_Version)
    return DeviceApi(f"{found.major}.{found.minor.rstrip('+')}", await _is_served(client))


async def _is_served(client: Client) -> bool:
    try:
        await client.get(_GROUP_VERSION)
    except NotFound:
        return False
    return True
