"""Reads objects of another system from the cluster, with the rights of the caller.

Importing the client takes longer than all else that `muster` does, so only the function that reads
imports this module.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from cli.endings import LOG_IN_AGAIN, NOT_REACHED
from cli.imports.outcome import NotRead, Source
from cli.imports.systems import System
from cli.stderr_log import log_to_stderr
from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.errors import KubeError, NotFound, Timeout, Unauthorized, Unreachable
from kube.api.resources import Resource


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    versions: list[_Version] = []


class _Page(msgspec.Struct):
    items: list[dict[str, object]] | None = None


def read_cluster(system: System, kubeconfig: str | None, context: str | None) -> list[Source]:
    """Return all objects of the system's kinds; raises NotRead."""
    log_to_stderr()
    try:
        return asyncio.run(_read(system, kubeconfig, context))
    except (KubeError, OSError) as error:
        raise NotRead(" ".join(f"{_why(error)}{error}".split())) from error


def _why(error: Exception) -> str:
    """Begin what is said where the fault is none of a single request."""
    match error:
        case Unauthorized():
            return f"{LOG_IN_AGAIN}: "
        case Unreachable() | Timeout():
            return f"{NOT_REACHED}: "
        case _:
            return ""


async def _read(system: System, kubeconfig: str | None, context: str | None) -> list[Source]:
    access = await load_access(kubeconfig, context, setting="--kubeconfig")
    async with Client(access, user_agent="muster") as client:
        versions = await _versions(client, system)
        found: list[Source] = []
        for kind, plural in system.kinds.items():
            found += await _listed(client, system.group, versions, kind, plural)
    return found


async def _versions(client: Client, system: System) -> list[str]:
    """Return the versions in which the group is served, the newest first."""
    try:
        group = await client.get(f"/apis/{system.group}", as_=_Group)
    except NotFound:
        raise NotRead(
            f"the cluster does not serve {system.group}: {system.title} is not installed there"
        ) from None
    return [each.version for each in group.versions]


async def _listed(
    client: Client, group: str, versions: list[str], kind: str, plural: str
) -> list[Source]:
    """Return the objects of a kind, in the newest version that has it; none where none has."""
    for version in versions:
        try:
            pages = _pages(client, Resource(group, version, plural))
            return [_source(group, kind, item) async for page in pages for item in page]
        except NotFound:
            continue
    return []


async def _pages(client: Client, resource: Resource) -> AsyncIterator[list[dict[str, object]]]:
    async for page in client.list(resource.path()):
        yield decode(page, _Page).items or []


def _source(group: str, kind: str, item: dict[str, object]) -> Source:
    return Source("the cluster", group, kind, item)
