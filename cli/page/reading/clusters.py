"""Lists Ray clusters and gangs in pieces, so that the first are seen before the last are read.

Both lists come at the same time; who reads them joins a cluster with its gang by name.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from cli.endings import CannotRead, NotAllowed
from cli.managing.owners import owner_among
from cli.page.reading.tables import TableRow, table_pages
from kube.api import resources
from kube.api.client import Client
from kube.objects.base import ObjectMeta
from kube.ray.wrapped_by import gang_name, is_made_for_wrapper, wrapped_by

AHEAD: Final = 4
"""Pieces that are kept while the browser is slower than the API server."""


class ClusterRow(msgspec.Struct, frozen=True, rename="camel"):
    """A RayCluster; `gang` is the name that its gang has, if it is one."""

    namespace: str
    name: str
    gang: str
    state: str
    desired: int
    ready: int
    gpus: str
    created: str
    owner: str


class GangRow(msgspec.Struct, frozen=True, rename="camel"):
    """What of a gang stands beside its RayCluster."""

    namespace: str
    name: str
    phase: str
    queue: str
    position: int
    ready: str
    reason: str
    message: str


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some of the rows, or what could not be read; `whole` is the last one."""

    clusters: Sequence[ClusterRow] = ()
    gangs: Sequence[GangRow] = ()
    unread: str = ""
    choose: bool = False
    """Whether namespaces are to be named: all of them may not be listed."""
    whole: bool = False


async def cluster_pieces(
    client: Client, namespaces: Sequence[str], usual: str
) -> AsyncIterator[Piece]:
    """Yield the clusters and gangs of these namespaces, of all where none is named.

    Where those of all may not be listed, `usual` is asked. Raises CannotRead before the first
    piece, where nothing can be read; later it is a piece.
    """
    pieces: asyncio.Queue[Piece | CannotRead | None] = asyncio.Queue(AHEAD)

    async def read() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for list_ in (_clusters, _gangs):
                    group.create_task(_listed(client, list_, namespaces, usual, pieces))
        except* CannotRead as faults:
            await pieces.put(faults.exceptions[0])  # type: ignore[arg-type] # of a flat group
        await pieces.put(None)

    reading = asyncio.create_task(read())
    began = False
    try:
        while (found := await pieces.get()) is not None:
            if isinstance(found, CannotRead):
                if not began:
                    raise found
                found = Piece(unread=str(found))
            began = True
            yield found
        yield Piece(whole=True)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


_List = Callable[[Client, str], AsyncIterator[Piece]]


async def _listed(
    client: Client,
    list_: _List,
    namespaces: Sequence[str],
    usual: str,
    pieces: "asyncio.Queue[Piece | CannotRead | None]",
) -> None:
    """Put the pieces of one list into the queue, namespace by namespace where some are named."""
    if not namespaces:
        try:
            await _put(list_(client, ""), pieces)
        except NotAllowed as refusal:
            where = f"; only those of namespace {usual} are shown" if usual else ""
            await pieces.put(Piece(unread=f"{refusal}{where}", choose=list_ is _clusters))
            namespaces = (usual,) if usual else ()
    for each in namespaces:
        try:
            await _put(list_(client, each), pieces)
        except NotAllowed as refusal:
            await pieces.put(Piece(unread=str(refusal)))


async def _put(
    found: AsyncIterator[Piece], pieces: "asyncio.Queue[Piece | CannotRead | None]"
) -> None:
    async for each in found:
        await pieces.put(each)


async def _clusters(client: Client, namespace: str) -> AsyncIterator[Piece]:
    async for page in table_pages(client, resources.RAY_CLUSTERS, namespace):
        yield Piece(clusters=[_cluster(each) for each in page])


async def _gangs(client: Client, namespace: str) -> AsyncIterator[Piece]:
    async for page in table_pages(client, resources.GANGS, namespace):
        yield Piece(gangs=[_gang(each) for each in page])


def _cluster(row: TableRow) -> ClusterRow:
    """Read the columns of KubeRay's definition; one that a release has not is empty."""
    meta = row.metadata
    return ClusterRow(
        namespace=meta.namespace,
        name=meta.name,
        gang=gang_of(meta),
        state=row.text("status"),
        desired=row.number("desired workers"),
        ready=row.number("available workers"),
        gpus=row.text("gpus"),
        created=meta.creation_timestamp or "",
        owner=owner_among(meta.owner_references),
    )


def gang_of(meta: ObjectMeta) -> str:
    """Name the gang that the pods of a RayCluster are in: its own, or that of its AppWrapper."""
    wrapper = wrapped_by(meta.labels)
    if wrapper is None or not is_made_for_wrapper(meta):
        return meta.name
    return gang_name(wrapper.group, wrapper.name)


def _gang(row: TableRow) -> GangRow:
    return GangRow(
        namespace=row.metadata.namespace,
        name=row.metadata.name,
        phase=row.text("phase"),
        queue=row.text("queue"),
        position=row.number("position"),
        ready=row.text("ready"),
        reason=row.text("reason"),
        message=row.text("message"),
    )
