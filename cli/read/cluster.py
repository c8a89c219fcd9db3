"""Reads the lists for a report concurrently, and notes the lists that it could not read."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from cli.endings import CannotRead, NotAllowed
from cli.read.reader import Reader
from cli.report.objects import Event
from cli.report.snapshot import GANGS, Snapshot, Unread
from kube.api import resources
from kube.objects.core import Node, Pod
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue

ON_NODES = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that take room on a node."""


async def read_snapshot(
    reader: Reader, *kinds: str, namespace: str = "", essential: tuple[str, ...] = (GANGS,)
) -> Snapshot:
    """Read the kinds; `namespace` narrows the gangs alone, for nodes serve all.

    A kind that the caller may not list is noted, and the others are read; of an essential one,
    and of any other fault, the command cannot go on: raises CannotRead.
    """
    lists: Mapping[str, Coroutine[Any, Any, tuple[Any, ...]]] = {
        kind: _list(reader, kind, namespace) for kind in kinds
    }
    answers = await asyncio.gather(*lists.values(), return_exceptions=True)
    found: dict[str, Any] = {}
    unread: list[Unread] = []
    for kind, answer in zip(lists, answers, strict=True):
        if isinstance(answer, NotAllowed) and kind not in essential:
            unread.append(Unread(kind, str(answer)))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found[kind] = answer
    unread += [Unread("", fault) for fault in reader.faults]
    return Snapshot(**found, namespace=namespace, unread=tuple(unread))


async def read_gangs_anywhere(reader: Reader, *kinds: str, fallback: str = "") -> Snapshot:
    """Read the kinds, the gangs of all namespaces, or of one where that is not allowed.

    That one is `fallback`, or the reader's own where it is empty.
    """
    try:
        return await read_snapshot(reader, *kinds)
    except NotAllowed as refusal:
        namespace = fallback or reader.namespace
        found = await read_snapshot(reader, *kinds, namespace=namespace)
        return found.with_unread(
            Unread(GANGS, f"{refusal}; only gangs of namespace {namespace} count here")
        )


async def read_events(reader: Reader, namespace: str, uid: str) -> tuple[Event, ...]:
    """Read the Events of one object, not of an earlier one of its name; none if not allowed."""
    about = f"involvedObject.uid={uid}"
    try:
        return await reader.list(resources.EVENTS, Event, namespace=namespace, field_selector=about)
    except CannotRead:
        return ()


async def _list(reader: Reader, kind: str, namespace: str) -> tuple[Any, ...]:
    match kind:
        case "gangs":
            return await reader.list(resources.GANGS, Gang, namespace=namespace)
        case "queues":
            return await reader.list(resources.GANG_QUEUES, GangQueue)
        case "nodes":
            return await reader.list(resources.NODES, Node)
        case "pods":
            return await reader.list(resources.PODS, Pod, field_selector=ON_NODES)
    raise AssertionError(f"no kind of a snapshot: {kind}")
