"""Reads GangQueues by name, for callers that may get their own and not list all."""

import asyncio
from collections.abc import Collection
from dataclasses import replace

from cli.endings import NotAllowed
from cli.read.reader import Reader
from cli.report.snapshot import QUEUES, Snapshot, Unread
from kube.api import resources
from kube.objects.queues.queue import GangQueue


async def get_queues(reader: Reader, names: Collection[str]) -> tuple[GangQueue, ...]:
    """Return those queues of these names that there are and that the caller may get."""
    found = await asyncio.gather(*(_get(reader, each) for each in sorted({*names} - {""})))
    return tuple(each for each in found if each is not None)


async def _get(reader: Reader, name: str) -> GangQueue | None:
    try:
        return await reader.get(resources.GANG_QUEUES, GangQueue, name)
    except NotAllowed:
        return None


async def with_own_queues(reader: Reader, found: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the same with the queues of these names, where queues cannot be listed."""
    queues = await get_queues(reader, names) if found.lacks(QUEUES) else ()
    if not queues:
        return found
    unread = (_narrowed(each, queues) if each.kind == QUEUES else each for each in found.unread)
    return replace(found, queues=queues, unread=tuple(unread))


def _narrowed(unread: Unread, queues: Collection[GangQueue]) -> Unread:
    return Unread(QUEUES, f"{unread.message}: {only(queues)}")


def only(queues: Collection[GangQueue]) -> str:
    """Say which queues are known, of those that others cannot be listed beside."""
    said = ", ".join(each.metadata.name for each in queues)
    known = "queue {} is" if len(queues) == 1 else "queues {} are"
    return f"only {known.format(said)} known, not what others lend"
