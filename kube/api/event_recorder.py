"""Writes Events to the cluster, and renews them.

There is one Event for each reason on each object, as in client-go's recorder: it is changed when
the message changes, and counts how often it was written. Its name follows from its reporter, object
and reason, so that another leader goes on with the same Event. The message of an Event of
events.k8s.io cannot be changed, so this is the Event of the core group, which `kubectl describe`
reads.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube.api.client import Client
from kube.api.errors import Conflict, NotFound, Timeout
from kube.api.resources import EVENTS

Body = dict[str, Any]

REMEMBERED = 4096
"""Events whose count is remembered: client-go's number. For others the next write asks."""

NOTE_LIMIT = 1024
INSTANCE_LIMIT = 128
NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """What is told of an object."""

    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool


class _Written(msgspec.Struct):
    count: int | None = None


def _utc_now() -> datetime:
    return datetime.now(UTC)


class EventRecorder:
    """Writes the Events of one leader; `reporter` is its program."""

    def __init__(
        self,
        client: Client,
        reporter: str,
        identity: str,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._client = client
        self._reporter = reporter
        self._identity = identity[:INSTANCE_LIMIT]
        self._clock = clock
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    async def write(self, event: ObjectEvent) -> None:
        """Create or renew the Event; raises KubeError where it could not be done.

        Where no answer comes it is tried once more: nothing else would tell of it again.
        """
        try:
            await self._create_or_renew(event)
        except Timeout:
            await self._create_or_renew(event)

    async def _create_or_renew(self, event: ObjectEvent) -> None:
        """Do what is needed: what was written in this term is there most often, else it is new."""
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

    async def _create(self, event: ObjectEvent) -> None:
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

    async def _renew(self, event: ObjectEvent) -> None:
        namespace, name = self._key(event)
        changes = self._content(event, self._now())
        count = self._counts.get((namespace, name))
        if count is not None:
            changes["count"] = count + 1
        path = EVENTS.path(namespace, name)
        written = await self._client.merge_patch(path, changes, as_=_Written)
        self._remember(event, written.count or 1)

    def _content(self, event: ObjectEvent, now: str) -> Body:
        return {
            "type": "Warning" if event.warning else "Normal",
            "reason": event.reason,
            "message": event.message[:NOTE_LIMIT],
            "lastTimestamp": now,
            "involvedObject": {
                "apiVersion": event.api_version,
                "kind": event.kind,
                "namespace": event.namespace,
                "name": event.name,
                "uid": event.uid,
            },
            "source": {"component": self._reporter},
            "reportingComponent": self._reporter,
            "reportingInstance": self._identity,
        }

    def _key(self, event: ObjectEvent) -> tuple[str, str]:
        told_apart = f"{self._reporter} {event.kind} {event.uid} {event.reason}".encode()
        digest = hashlib.blake2b(told_apart, digest_size=8).hexdigest()
        return event.namespace, f"{event.name[:NAME_LIMIT].rstrip('-.')}.{digest}"

    def _remember(self, event: ObjectEvent, count: int) -> None:
        key = self._key(event)
        self._counts[key] = count
        self._counts.move_to_end(key)
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def _now(self) -> str:
        return self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
