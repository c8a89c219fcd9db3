"""Finds the resource of a kind through the API server's discovery.

Everything that is served is read with two requests, so that what is kept has the size of the
cluster, whatever kinds are asked for. A kind that is not there may just have been defined: then all
is read again, but not more often than every few seconds.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.errors import Garbled
from kube.api.resources import Resource
from kube.objects.base import OrNull, Part, Slim

REFRESH_SECONDS: Final = 2.0
"""So long what was read is taken for all there is."""

_LIST: Final = "APIGroupDiscoveryList"
_AGGREGATED: Final = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_LIST}"
_ROOTS: Final = ("/api", "/apis")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind as an object names it."""

    api_version: str
    name: str

    @property
    def group(self) -> str:
        """The API group; empty for the core's."""
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.name} of {self.api_version}"


@dataclass(frozen=True, slots=True)
class Served:
    """The resource of a kind, and what can be done with it."""

    resource: Resource
    verbs: frozenset[str]


class _ResponseKind(Slim, frozen=True):
    kind: str = ""


class _Resource(Part, frozen=True):
    resource: str = ""
    response_kind: OrNull[_ResponseKind] = _ResponseKind()
    scope: str = ""
    verbs: OrNull[tuple[str, ...]] = ()


class _Version(Part, frozen=True):
    version: str = ""
    resources: OrNull[tuple[_Resource, ...]] = ()


class _GroupMetadata(Slim, frozen=True):
    name: str = ""


class _Group(Part, frozen=True):
    metadata: _GroupMetadata = _GroupMetadata()
    versions: OrNull[tuple[_Version, ...]] = ()


class _Groups(Part, frozen=True):
    kind: str = ""
    items: OrNull[tuple[_Group, ...]] = ()


Found: TypeAlias = Mapping[Kind, Served]


class Kinds:
    """The kinds that the API server serves, read when one is asked for that is not known."""

    def __init__(
        self,
        client: Client,
        *,
        every: float = REFRESH_SECONDS,
        timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._every = every
        self._timeout = timeout
        self._clock = clock
        self._found: Found = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    async def find(self, kind: Kind) -> Served | None:
        """Return what serves a kind, None where nothing does; KubeError where that is unknown."""
        if kind not in self._found:
            await self._read_anew()
        return self._found.get(kind)

    async def all(self) -> Found:
        """Return all kinds, read anew; KubeError where that is not possible."""
        await self._read_anew()
        return self._found

    async def _read_anew(self) -> None:
        """Read all kinds, unless that was done just now; those that wait share one reading."""
        asked_at = self._clock()
        async with self._reading:
            read_at = self._read_at
            if read_at is not None and asked_at - read_at < self._every:
                return
            started_at = self._clock()
            found = [each for root in _ROOTS for each in await self._served_under(root)]
            # Two resources may have one kind: that of which more can be done is meant.
            self._found = dict(sorted(found, key=lambda each: len(each[1].verbs)))
            self._read_at = started_at

    async def _served_under(self, root: str) -> list[tuple[Kind, Served]]:
        headers = {"Accept": _AGGREGATED}
        body = await self._client.request("GET", root, headers=headers, timeout=self._timeout)
        groups = decode(body, _Groups)
        if groups.kind != _LIST:
            raise Garbled(f"GET {root}: an {_LIST} was asked for, and a {groups.kind!r} came")
        return list(_kinds_of(groups))


def _kinds_of(groups: _Groups) -> Iterator[tuple[Kind, Served]]:
    for group in groups.items:
        name = group.metadata.name
        for version in group.versions:
            api_version = f"{name}/{version.version}" if name else version.version
            for each in version.resources:
                place = each.scope == "Namespaced"
                resource = Resource(name, version.version, each.resource, place)
                kind = Kind(api_version, each.response_kind.kind)
                yield kind, Served(resource, frozenset(each.verbs))
