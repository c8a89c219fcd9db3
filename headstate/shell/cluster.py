"""Writes Secrets, Events, the Service's endpoint and the report; reads nothing but RayClusters."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import structlog

from headstate.metrics import Metrics
from headstate.plan import Head, secret_for
from kube.api.client import Client
from kube.api.errors import Conflict, KubeError, NotFound
from kube.api.event_recorder import EventRecorder, ObjectEvent
from kube.api.resources import CONFIG_MAPS, ENDPOINT_SLICES, SECRETS, Resource
from kube.objects import names

log = structlog.get_logger(__name__)

REPORTER: Final = "muster.dev/redis"
SERVICE: Final = "muster-redis"
ENDPOINTS: Final = "muster-redis-primary"
REPORT: Final = "muster-redis-report"
REPORT_KEY: Final = "report.json"

Outcome: TypeAlias = Literal["made", "found", "failed"]
"""What became of a Secret: written now, there already and left, or refused."""


class Cluster:
    """Writes for one leader."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        identity: str,
        metrics: Metrics,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._metrics = metrics
        self._may_write = may_write
        self._recorder = EventRecorder(client, REPORTER, identity)

    async def write_secret(self, head: Head, password: str, *, replaced: bool) -> Outcome:
        """Write the Secret of a head; one that is there is written anew only where it is asked."""
        if not self._may_write():
            return "failed"
        body = secret_for(head, password)
        try:
            outcome = await self._create_secret(head, body, replaced=replaced)
        except KubeError as error:
            self._metrics.count("secret", done=False)
            log.warning("no Secret", namespace=head.metadata.namespace, error=str(error))
            return "failed"
        if outcome == "made":
            self._metrics.count("secret", done=True)
        return outcome

    async def _create_secret(
        self, head: Head, body: dict[str, Any], *, replaced: bool
    ) -> Literal["made", "found"]:
        place = SECRETS.path(head.metadata.namespace)
        try:
            await self._client.create(place, body)
        except Conflict:
            if not replaced:
                return "found"
            await self._delete_secret(head)
            await self._client.create(place, body)
        return "made"

    async def _delete_secret(self, head: Head) -> None:
        try:
            await self._client.delete(SECRETS.path(head.metadata.namespace, head.secret))
        except NotFound:
            log.info("the Secret went meanwhile", secret=head.secret)

    async def tell(self, head: Head, reason: str, message: str, *, warning: bool) -> None:
        """Write an Event on a RayCluster."""
        meta = head.metadata
        event = ObjectEvent(
            meta.namespace,
            names.RAY_API_VERSION,
            "RayCluster",
            meta.name,
            meta.uid,
            reason,
            message,
            warning,
        )
        await self._written("event", self._recorder.write(event))

    async def address_of(self, server: str) -> str | None:
        """Return the address of a server; None where its name has none now."""
        host, _, port = server.rpartition(":")
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except OSError as error:
            log.warning("no address", name=server, error=str(error))
            return None
        return str(found[0][4][0])

    async def point_to(self, address: str, port: int) -> bool:
        """Make the primary the one endpoint of the Service; says whether it is."""
        return await self._upsert("service", ENDPOINT_SLICES, _endpoints(address, port))

    async def publish(self, report: dict[str, Any]) -> None:
        """Write the report that `muster redis status` shows."""
        text = json.dumps(report, separators=(",", ":"))
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {REPORT_KEY: text}}
        await self._upsert("report", CONFIG_MAPS, {"metadata": _metadata(REPORT), **body})

    async def _upsert(self, what: str, resource: Resource, body: dict[str, Any]) -> bool:
        name = body["metadata"]["name"]

        async def write() -> None:
            try:
                await self._client.merge_patch(resource.path(self._namespace, name), body)
            except NotFound:
                await self._client.create(resource.path(self._namespace), body)

        return await self._written(what, write())

    async def _written(self, what: str, write: Any) -> bool:
        if not self._may_write():
            write.close()
            return False
        try:
            await write
        except KubeError as error:
            self._metrics.count(what, done=False)
            log.warning("not written", what=what, error=str(error))
            return False
        self._metrics.count(what, done=True)
        return True


def _metadata(name: str, **labels: str) -> dict[str, Any]:
    return {"name": name, "labels": {names.PART_OF: names.PART_OF_MUSTER, **labels}}


def _endpoints(address: str, port: int) -> dict[str, Any]:
    version = ipaddress.ip_address(address).version
    labels = {
        "kubernetes.io/service-name": SERVICE,
        "endpointslice.kubernetes.io/managed-by": "muster-redis",
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": _metadata(ENDPOINTS, **labels),
        "addressType": f"IPv{version}",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "redis", "port": port, "protocol": "TCP"}],
    }
