"""Makes one write to the API server: done, already done, or a sentence that says why not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from cli.endings import CannotRead, NotAllowed, NotServed
from cli.read.reader import ApiReader, one_line, open_client
from cli.read.target import Target
from cli.removal.objects import AnyObject
from kube.api.bodies import encode
from kube.api.client import Client
from kube.api.errors import (
    Conflict,
    KubeError,
    NotFound,
    ServerError,
    Timeout,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kube.api.kinds import Found, Kinds
from kube.api.resources import Resource

T = TypeVar("T")

_DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}
_MERGE = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}

TRIES = 4
"""Tries of a write that the API server could not take for now."""

PAUSE = 1.0
"""Seconds before such a write is tried again; twice as long each time."""


@dataclass(frozen=True, slots=True)
class NotWritten:
    """A write that was not carried out, and why; `outdated`: the object is another by now."""

    why: str
    error: KubeError | None = None

    @property
    def outdated(self) -> bool:
        """Whether the object is another than was read, or its name is taken."""
        return isinstance(self.error, Conflict)


class PatientReader(ApiReader):
    """A reader that asks again: what was begun must not end halfway because of one lost answer."""

    async def list(
        self,
        resource: Resource,
        as_: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        """Return all objects of a kind; raises CannotRead."""
        return await _patiently(
            lambda: ApiReader.list(
                self,
                resource,
                as_,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
            )
        )

    async def get(
        self, resource: Resource, as_: type[T], name: str, namespace: str = ""
    ) -> T | None:
        """Return one object, None where there is none; raises CannotRead."""
        return await _patiently(lambda: ApiReader.get(self, resource, as_, name, namespace))


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again where there was no answer; what is not allowed, or not served, is one.

    So is that the credentials are refused: a person waits to give others.
    """
    for left in reversed(range(TRIES)):
        try:
            return await ask()
        except (NotAllowed, NotServed):
            raise
        except CannotRead as error:
            if not left or isinstance(error.__cause__, Unauthorized):
                raise
            await asyncio.sleep(PAUSE * 2 ** (TRIES - 1 - left))
    raise AssertionError("the last try returns or raises")


class Writer:
    """Reads and writes with the rights of the caller; a failed write is a value."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.reader = PatientReader(client, namespace)

    async def json_patch(self, path: str, operations: object) -> NotWritten | None:
        """Apply JSON patch operations; what is gone needs none."""
        return await _written(lambda: self._client.json_patch(path, operations))

    async def merge_patch(self, path: str, changes: object) -> NotWritten | None:
        """Merge changes; what is gone needs none."""
        return await _written(lambda: self._client.merge_patch(path, changes))

    async def would_merge(self, path: str, changes: object) -> bytes:
        """Ask by a dry run what an object would become; raises KubeError, and writes nothing."""
        return await self._client.request(
            "PATCH", path, params=_DRY_RUN, body=encode(changes), headers=_MERGE
        )

    async def try_eviction(self, pods: Resource, namespace: str, name: str) -> NotWritten | None:
        """Ask by a dry run whether a pod may be evicted; one that is gone may.

        A budget that holds it back is an answer: it is not asked again.
        """
        path = pods.path(namespace, name, "eviction")
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"dryRun": ["All"]},
        }
        try:
            await self._client.create(path, body)
        except NotFound:
            return None
        except KubeError as error:
            return _not_written(error)
        return None

    async def create(self, path: str, obj: object) -> NotWritten | None:
        """Create an object."""
        return await _written(lambda: self._client.create(path, obj))

    async def delete(self, path: str, uid: str) -> NotWritten | None:
        """Delete this very object; what is gone is deleted."""
        return await _written(lambda: self._client.delete(path, uid=uid, propagation="Background"))

    async def is_at(self, path: str, uid: str) -> bool:
        """Say whether this very object is still there; one that cannot be read is."""
        try:
            found = await self._client.get(path, as_=AnyObject, metadata_only=True)
        except NotFound:
            return False
        except KubeError:
            return True
        return found.metadata.uid == uid

    async def served(self) -> Found:
        """Return all kinds that the API server serves; raises CannotRead."""
        try:
            return await Kinds(self._client).all()
        except KubeError as error:
            raise CannotRead(f"the kinds that are served cannot be read: {error}") from error


def _not_written(error: KubeError) -> NotWritten:
    return NotWritten(one_line(str(error)), error)


async def _written(send: Callable[[], Awaitable[T]]) -> NotWritten | None:
    """Send a write, again where the API server had no time for it, or nothing was heard of it.

    One that was carried out unheard is then gone, or another than was read: a value as well.
    """
    for left in reversed(range(TRIES)):
        try:
            await send()
        except NotFound as error:
            return None if error.reason else _not_written(error)
        except (TooManyRequests, ServerError, Timeout, Unreachable) as error:
            if not left:
                return _not_written(error)
            pause = PAUSE * 2 ** (TRIES - 1 - left)
            await asyncio.sleep(getattr(error, "retry_after", None) or pause)
        except KubeError as error:
            return _not_written(error)
        else:
            return None
    raise AssertionError("the last try returns")


@asynccontextmanager
async def open_writer(target: Target) -> AsyncIterator[Writer]:
    """Open the cluster that the command line names; raises CannotRead."""
    async with open_client(target) as (client, namespace):
        yield Writer(client, namespace)
