"""Caches RayClusters, namespaces and AppWrappers, and reads missing ones before the deadline.

Reflectors hold the metadata of all of them, those of AppWrappers only where a setting says so. An
object that they lack is read from the API server: one GET at a time for each object, however many
reviews wait for it.

A GET is shared only among reviews that name the same uid: the RayCluster existed before the first
of them came, hence before the GET was sent, so "not found" is true for all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

import msgspec

from kube.api.client import Client
from kube.api.errors import KubeError, NotFound
from kube.api.resources import APP_WRAPPERS, MCAD_APP_WRAPPERS, NAMESPACES, RAY_CLUSTERS, Resource
from kube.objects.names import APP_WRAPPER_UID, CREATED_BY, OPT_IN
from kube.ray.wrapped_by import is_made_by
from webhook.metrics import Metrics
from webhook.owners import GONE, OFF, AppWrapperKey, ClusterKey, Gone, Key, Marks, NamespaceKey

# The API server sends a bookmark about once a minute. After this silence the watch may be dead and
# what it holds may be old (a namespace's label, above all); a GET is right whatever it holds.
SILENCE_SECONDS: Final = 90.0


WRAPPERS: Final[Mapping[str, Resource]] = {
    each.group: each for each in (APP_WRAPPERS, MCAD_APP_WRAPPERS)
}
"""AppWrappers by API group; either may be missing."""

_LONGEST: Final = 63  # as long as a label may be; an annotation may be of 256 KiB


class _Mark(msgspec.Struct, frozen=True, gc=False):
    """The labels or annotations that are read; the others are not even kept.

    Nor is more of a long value than tells it from those that have a meaning; of the note on an
    AppWrapper only that it is there.
    """

    gang: str | None = msgspec.field(default=None, name=OPT_IN)
    created_by: str | None = msgspec.field(default=None, name=CREATED_BY)
    wrapper: str | None = msgspec.field(default=None, name=APP_WRAPPER_UID)

    def __post_init__(self) -> None:
        if self.gang is not None and len(self.gang) > _LONGEST:
            msgspec.structs.force_setattr(self, "gang", self.gang[:_LONGEST])
        if self.wrapper is not None and len(self.wrapper) > _LONGEST:
            msgspec.structs.force_setattr(self, "wrapper", None)
        if self.created_by is not None:
            msgspec.structs.force_setattr(self, "created_by", "")


class _Owner(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: _Mark | None = None
    annotations: _Mark | None = None
    owner_references: tuple[_Owner, ...] | None = None


class Marked(msgspec.Struct, frozen=True, gc=False):
    """A RayCluster, a namespace or an AppWrapper, as far as it decides about pods."""

    metadata: _Metadata = _Metadata()


@dataclass(frozen=True, slots=True)
class Unknown:
    """It could not be found out; the text says why."""

    reason: str


Found: TypeAlias = Marks | Gone | Unknown


class Held(Protocol):
    """What is read of a reflector."""

    @property
    def store(self) -> Mapping[tuple[str, str], Marked]:
        """The objects by namespace and name."""

    @property
    def synced(self) -> bool:
        """Whether the objects were all there are, once at least."""

    @property
    def told_until(self) -> float | None:
        """When the objects were known to be all there are, on the monotonic clock."""


class Cache:
    """Answers from memory, or says that the API server has to be asked."""

    def __init__(
        self,
        clusters: Held,
        namespaces: Held,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        wrappers: Mapping[str, Held] = MappingProxyType({}),
    ) -> None:
        self._clusters = clusters
        self._namespaces = namespaces
        self._wrappers = wrappers
        self._clock = clock
        self._hits = metrics.lookups["cache"]

    @property
    def synced(self) -> bool:
        """Whether all caches have been complete."""
        held = (self._clusters, self._namespaces, *self._wrappers.values())
        return all(each.synced for each in held)

    def find(self, key: Key) -> Marks | Gone | None:
        """Return the marks of an object that is held; its absence proves nothing."""
        if isinstance(key, AppWrapperKey) and not self._wrappers:
            return OFF
        marked = self._held(key)
        if marked is None:
            return None
        self._hits.inc()
        return _marks(marked)

    def _held(self, key: Key) -> Marked | None:
        if isinstance(key, NamespaceKey):
            return self._current(self._namespaces, ("", key.name))
        held = self._clusters if isinstance(key, ClusterKey) else self._wrappers[key.group]
        found = self._current(held, (key.namespace, key.name))
        # Another uid: the reflector is behind, or the pod is. The API server knows which.
        return found if found is not None and found.metadata.uid == key.uid else None

    def _current(self, held: Held, place: tuple[str, str]) -> Marked | None:
        told = held.told_until
        if not held.synced or told is None or self._clock() - told > SILENCE_SECONDS:
            return None
        return held.store.get(place)


class Reader:
    """Reads from the API server what the cache does not hold."""

    def __init__(self, client: Client, deadline: float, limit: int, metrics: Metrics) -> None:
        self._client = client
        self._deadline = deadline
        self._limit = limit
        self._metrics = metrics
        self._flights: dict[Key, asyncio.Task[Found]] = {}

    async def read(self, key: Key) -> Found:
        """Read one object; callers that ask for it at the same time share the request."""
        flight = self._flights.get(key)
        if flight is None:
            if len(self._flights) >= self._limit:
                self._metrics.lookups["error"].inc()
                return Unknown(f"{self._limit} lookups are under way already")
            flight = self._take_off(key)
        # A caller that is cancelled must not cancel the request of the others.
        return await asyncio.shield(flight)

    async def close(self) -> None:
        """End what is under way."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _take_off(self, key: Key) -> asyncio.Task[Found]:
        flight = asyncio.create_task(self._get(key), name=f"read {key}")
        self._flights[key] = flight
        flight.add_done_callback(lambda _: self._flights.pop(key))
        return flight

    async def _get(self, key: Key) -> Found:
        try:
            found = await self._ask(key)
        except KubeError as error:
            self._metrics.lookups["error"].inc()
            return Unknown(str(error))
        self._metrics.lookups["get"].inc()
        return found

    async def _ask(self, key: Key) -> Marks | Gone:
        match key:
            case NamespaceKey(name):
                return await self._read_one(NAMESPACES.path(name=name), "")
            case ClusterKey(namespace, name, uid):
                return await self._read_one(RAY_CLUSTERS.path(namespace, name), uid)
            case AppWrapperKey(namespace, name, uid, group):
                path = WRAPPERS[group].path(namespace, name)
                return await self._read_one(path, uid, absent=True)

    async def _read_one(self, path: str, uid: str, *, absent: bool = False) -> Marks | Gone:
        """Read an object; without its API there is none of it only where that may be `absent`."""
        try:
            marked = await self._client.get(
                path, as_=Marked, metadata_only=True, timeout=self._deadline
            )
        except NotFound as error:
            # Without this reason it is the path that is unknown, not the object: the CRD is
            # missing, or the API server has not loaded it yet.
            if error.reason != "NotFound" and not absent:
                raise
            return GONE
        return GONE if uid and marked.metadata.uid != uid else _marks(marked)


def _marks(marked: Marked) -> Marks:
    """Return what decides; the AppWrapper of its labels only where it is made for that one."""
    labels = _mapping(marked.metadata.labels)
    owners = marked.metadata.owner_references or ()
    owner = next((each for each in owners if each.controller), _Owner())
    if not is_made_by(owner.kind, owner.uid, labels.get(APP_WRAPPER_UID, "")):
        labels.pop(APP_WRAPPER_UID, None)
    return Marks(labels, _mapping(marked.metadata.annotations))


def _mapping(mark: _Mark | None) -> dict[str, str]:
    if mark is None:
        return {}
    said = (OPT_IN, mark.gang), (CREATED_BY, mark.created_by), (APP_WRAPPER_UID, mark.wrapper)
    return {key: value for key, value in said if value is not None}
