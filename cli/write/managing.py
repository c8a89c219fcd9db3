"""Creates, changes and deletes what people manage; nothing that others wrote meanwhile is lost.

A change is a merge patch that applies only to the version that was read. If only the status has
changed meanwhile, the patch is sent again; if the spec has changed, nothing is written, and the
command says so.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cli.endings import Absent, Outdated, StandsInTheWay
from cli.managing.patches import as_read, is_in, same_as_read
from cli.read.ray.ray_object import read_object
from cli.read.reader import called, one_line
from cli.write.writer import NotWritten, Writer
from kube.api.errors import Conflict, KubeError
from kube.api.resources import Resource

Json = dict[str, Any]

TRIES: Final = 5
"""Tries of a change whose object gets its status at the same time."""

_NO_RIGHT: Final = re.compile(
    r'User "(?P<user>.*?)" cannot (?P<verb>\w+) resource "[^"]*"( in API group "[^"]*")?'
)


def title(kind: str, metadata: Mapping[str, Any]) -> str:
    """Name an object: `RayCluster team/train`."""
    place = metadata.get("namespace")
    return f"{kind} {place}/{metadata['name']}" if place else f"{kind} {metadata['name']}"


async def create(writer: Writer, resource: Resource, body: Json) -> None:
    """Create an object; raises StandsInTheWay with why it was not."""
    name, place = title(body["kind"], body["metadata"]), body["metadata"].get("namespace")
    failed = await writer.create(resource.path(place), body)
    if failed is None:
        return
    if failed.outdated:
        raise Outdated(f"{name} exists already, and nothing was changed") from failed.error
    why = worded(failed.why, resource, place)
    raise StandsInTheWay(f"{name} was not created: {why}") from failed.error


async def admitted(writer: Writer, resource: Resource, read: Json, patch: Json) -> Json:
    """Return what an object would become, as the API server says; nothing is written."""
    now = read
    for _ in range(TRIES):
        try:
            answer = await writer.would_merge(_path(resource, now), as_read(patch, now))
        except Conflict:
            now = _only_told(read, await _read_again(writer, resource, read))
        except KubeError as error:
            raise _not_changed(resource, read, str(error)) from error
        else:
            found: Json = msgspec.json.decode(answer, type=Json)
            return found
    raise outdated(read)


async def change(writer: Writer, resource: Resource, read: Json, patch: Json) -> None:
    """Write a patch of an object that was read; raises StandsInTheWay where that is not written."""
    now = read
    for _ in range(TRIES):
        failed = await writer.merge_patch(_path(resource, now), as_read(patch, now))
        if failed is None:
            return
        if not failed.outdated:
            raise _not_changed(resource, read, failed.why) from failed.error
        now = await _read_again(writer, resource, read)
        if is_in(patch, now):
            return  # an answer was lost, and the write was not
        _only_told(read, now)
    raise outdated(read)


def _only_told(read: Json, now: Json) -> Json:
    """Return an object as it is now; raises Outdated where more than its status is another."""
    if not same_as_read(read, now):
        raise outdated(read)
    return now


async def _read_again(writer: Writer, resource: Resource, read: Json) -> Json:
    meta = read["metadata"]
    return await read_object(writer.reader, resource, meta.get("namespace") or "", meta["name"])


def _path(resource: Resource, read: Json) -> str:
    meta = read["metadata"]
    return resource.path(meta.get("namespace") or None, meta["name"])


def outdated(read: Json) -> Outdated:
    """Say that an object is another by now than was read."""
    name = title(read["kind"], read["metadata"])
    return Outdated(
        f"{name} was changed by others meanwhile, and nothing was written: look, and call again"
    )


def _not_changed(resource: Resource, read: Json, why: str) -> StandsInTheWay:
    meta = read["metadata"]
    name = title(read["kind"], meta)
    return StandsInTheWay(f"{name} was not changed: {worded(why, resource, meta.get('namespace'))}")


async def delete(writer: Writer, resource: Resource, read: Json) -> None:
    """Delete the very object that was read; raises StandsInTheWay where it was not."""
    meta = read["metadata"]
    failed = await writer.delete(_path(resource, read), meta["uid"])
    if isinstance(failed, NotWritten):
        name = title(read["kind"], meta)
        why = worded(failed.why, resource, meta.get("namespace"))
        if failed.outdated:
            text = f"{name} is another one by now, and nothing was deleted"
            raise Absent(text) from failed.error
        raise StandsInTheWay(f"{name} was not deleted: {why}") from failed.error


def worded(why: str, resource: Resource, namespace: str | None) -> str:
    """Say who lacks which right, where that is why; else what the API server says."""
    said = one_line(why)
    found = _NO_RIGHT.search(said)
    if found is None:
        return said
    where = f" in namespace {namespace}" if namespace else ""
    return f"{found['user']} may not {found['verb']} {called(resource)}{where}"
