"""Since when every AppWrapper was reviewed as it was created.

While the webhook's rules are not there, a tenant can write any user into the note on an AppWrapper.
So a note is trusted only on an AppWrapper that is younger than both rules are.
"""

from datetime import datetime, timedelta
from typing import Final

from kube.api.client import Client, Resource
from kube.api.errors import Garbled, NotFound
from kube.objects.base import ObjectMeta, Slim

NAME: Final = "muster-app-wrapper"
HEARD: Final = timedelta(seconds=30)
"""So long after a rule was made every API server has heard of it."""

_GROUP: Final = "admissionregistration.k8s.io"
RULES: Final = tuple(
    Resource(group=_GROUP, version="v1", plural=plural, namespaced=False)
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
)


class _Rules(Slim, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


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
