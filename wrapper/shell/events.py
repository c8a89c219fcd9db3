"""Writes Events on AppWrappers, for `kubectl describe`."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kube.api.client import Client
from kube.api.errors import Conflict
from kube.api.resources import EVENTS
from kube.objects import names
from wrapper.messages import TellUser

REPORTER = "muster.dev/wrapper"
NOTE_LIMIT = 1024
INSTANCE_LIMIT = 128
NAME_LIMIT = 200


def _utc_now() -> datetime:
    return datetime.now(UTC)


class EventWriter:
    """Writes the Events of one leader; one that is there already gets a new time."""

    def __init__(
        self, client: Client, identity: str, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        self._client = client
        self._identity = identity[:INSTANCE_LIMIT]
        self._clock = clock

    async def write(self, told: TellUser) -> None:
        """Create or renew the Event; raises KubeError where it could not be done."""
        namespace, now = told.key.namespace, self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        name = _name(told)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "firstTimestamp": now,
            **self._content(told, now),
        }
        try:
            await self._client.create(EVENTS.path(namespace), body)
        except Conflict:
            path = EVENTS.path(namespace, name)
            await self._client.merge_patch(path, self._content(told, now))

    def _content(self, told: TellUser, now: str) -> dict[str, Any]:
        meta = told.wrapper.metadata
        return {
            "type": "Warning" if told.warning else "Normal",
            "reason": told.reason,
            "message": told.message[:NOTE_LIMIT],
            "lastTimestamp": now,
            "involvedObject": {
                "apiVersion": told.wrapper.api_version,
                "kind": names.APP_WRAPPER_KIND,
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
            },
            "source": {"component": REPORTER},
            "reportingComponent": REPORTER,
            "reportingInstance": self._identity,
        }


def _name(told: TellUser) -> str:
    meta = told.wrapper.metadata
    digest = hashlib.blake2b(f"{meta.uid} {told.reason}".encode(), digest_size=8).hexdigest()
    return f"{meta.name[:NAME_LIMIT].rstrip('-.')}.{digest}"
