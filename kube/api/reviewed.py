"""Says since when the webhook has reviewed every AppWrapper at its creation.

While the webhook's rules are not there, a tenant can write any user into the note on an AppWrapper.
So a note is trusted only on an AppWrapper that is younger than both rules are.
"""

import asyncio
from datetime import datetime
from typing import Final

from kube.api.client import Client
from kube.api.errors import Garbled, NotFound
from kube.api.resources import Resource
from kube.objects.base import ObjectMeta, Slim
from kube.objects.names import CONFIGURATION_HEARD

NAME: Final = "muster-app-wrapper"
HEARD: Final = CONFIGURATION_HEARD
"""So long after a rule was made every API server has heard of it."""

_GROUP: Final = "admissionregistration.k8s.io"
RULES: Final = tuple(
    Resource(group=_GROUP, version="v1", plural=plural, namespaced=False)
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
)


class _Rules(Slim, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class SharedReview:
    """Reads the rules once for all that ask at about the same time.

    Who asks while they are being read waits for the next reading: an answer that was on its way
    when an AppWrapper was created may be older than that AppWrapper.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._one_reads = asyncio.Lock()
        self._begun = self._answered = 0
        self._answer: datetime | None = None

    async def since(self) -> datetime | None:
        """Return what `reviewed_since` does, and raise what it raises."""
        fit = self._begun + 1
        async with self._one_reads:
            if self._answered < fit:
                self._begun += 1
                self._answer = await reviewed_since(self._client)
                self._answered = self._begun
            return self._answer


async def reviewed_since(client: Client) -> datetime | None:
    """Return since when AppWrappers are reviewed; None while one of the rules is missing."""
    try:
        made = [await _made_at(client, each.path(name=NAME)) for each in RULES]
    except NotFound:
        return None
    return max(made) + HEARD


async def _made_at(client: Client, path: str) -> datetime:
    found = await client.get(path, as_=_Rules, metadata_only=True)
    stamp = found.metadata.creation_timestamp or ""
    try:
        return datetime.fromisoformat(stamp)
    except ValueError as error:
        raise Garbled(f"GET {path}: metadata.creationTimestamp is {stamp!r}") from error
