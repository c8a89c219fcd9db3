"""Writes Events to the cluster, and renews them.

There is one Event for each reason on each object, as in client-go's recorder: it is changed when
the message changes, and counts how often it was written. Its name follows from its object and
reason, so that another leader goes on with the same Event. The message of an Event of events.k8s.io
cannot be changed, so this is the Event of the core group, which `kubectl describe` reads.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from coordinator.messages.actions import EmitEvent, Regarding
from kube.api.client import Client
from kube.api.errors import Conflict, NotFound
from kube.api.resources import EVENTS
from kube.objects import names
from kube.ray.wrapped_by import wrapper_of_gang
from scheduling.model.holder import gang_holder

Body = dict[str, Any]

REMEMBERED = 4096
"""Events whose count is remembered: client-go's number. Of others the next write asks."""

REPORTER = "muster.dev/coordinator"
NOTE_LIMIT = 1024
INSTANCE_LIMIT = 128
NAME_LIMIT = 200


class _Written(msgspec.Struct):
    count: int | None = None


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Recorder:
    """Writes the Events of one leader."""

    def __init__(
        self, client: Client, identity: str, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        self._client = client
        self._identity = identity[:INSTANCE_LIMIT]
        self._clock = clock
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    async def write(self, event: EmitEvent) -> None:
        """Create or renew the Event; raises KubeError where it could not be done.

        What was not written in this term is most often new, what was is most often still there.
        """
        if self._key(event) in self._counts:
            try:
                await self._renew(event)
            except NotFound:
                await self._create(event)
        else:
            try:
                await self._create(event)
            except Conflict:
                await self._renew(event)

    async def _create(self, event: EmitEvent) -> None:
        namespace, name = self._key(event)
        now = self._now()
        metadata = {"name": name, "namespace": namespace}
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            **self._content(event, now),
            "firstTimestamp": now,
            "count": 1,
        }
        await self._client.create(EVENTS.path(namespace), body)
        self._remember(event, 1)

    async def _renew(self, event: EmitEvent) -> None:
        namespace, name = self._key(event)
        changes = self._content(event, self._now())
        count = self._counts.get((namespace, name))
        if count is not None:
            changes["count"] = count + 1
        path = EVENTS.path(namespace, name)
        written = await self._client.merge_patch(path, changes, as_=_Written)
        self._remember(event, written.count or 1)

    def _content(self, event: EmitEvent, now: str) -> Body:
        return {
            "type": "Warning" if event.warning else "Normal",
            "reason": str(event.reason),
            "message": event.message[:NOTE_LIMIT],
            "lastTimestamp": now,
            "involvedObject": _reference(event),
            "source": {"component": REPORTER},
            "reportingComponent": REPORTER,
            "reportingInstance": self._identity,
        }

    def _key(self, event: EmitEvent) -> tuple[str, str]:
        about = _regarded(event)
        told_apart = f"{about.kind} {about.uid} {event.reason}".encode()
        digest = hashlib.blake2b(told_apart, digest_size=8).hexdigest()
        return event.key.namespace, f"{about.name[:NAME_LIMIT].rstrip('-.')}.{digest}"

    def _remember(self, event: EmitEvent, count: int) -> None:
        key = self._key(event)
        self._counts[key] = count
        self._counts.move_to_end(key)
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def _now(self) -> str:
        return self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")


def _regarded(event: EmitEvent) -> Regarding:
    if event.regarding is not None:
        return event.regarding
    holder = gang_holder(event.key)
    return Regarding(_api_version(event.key.name), holder.kind, holder.name, event.cluster_uid)


def _api_version(gang: str) -> str:
    """Return the API version of the RayCluster or AppWrapper that a gang is named after."""
    wrapper = wrapper_of_gang(gang)
    if wrapper is None:
        return names.RAY_API_VERSION
    return names.MCAD_V1BETA1 if wrapper.group == names.MCAD_GROUP else names.CODEFLARE_V1BETA2


def _reference(event: EmitEvent) -> dict[str, str]:
    about = _regarded(event)
    return {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": event.key.namespace,
        "name": about.name,
        "uid": about.uid,
    }
