"""Checks on a member with the manager's users that an object's creator may create it there.

The webhook of the manager notes the creator. The check includes the objects that an AppWrapper
wraps, because another account creates them on the member.
"""

from collections.abc import Iterator

import msgspec

from appwrapper.spec.items import read
from dispatcher.reading import Original
from kube.api.access import Access, is_allowed, to_create
from kube.api.client import Client
from kube.api.kinds import Kind, Kinds
from kube.gang.sent import WRAPPER_RESOURCES, typed
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.user import read_user


class RefusedCreator(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The creator of an object may not create it on the member."""


async def check_creator(client: Client, kinds: Kinds, original: Original) -> None:
    """Raise RefusedCreator where its creator may not create it there; KubeError says nothing."""
    user = read_user(original.metadata.annotations.get(names.CREATED_BY, ""))
    if user is None:
        said = f"annotation {names.CREATED_BY} names no user, so that its rights are not known"
        raise RefusedCreator(f"{said}: create the {typed(original.kind)['kind']} anew")
    for access in await _needed(kinds, original):
        if not await is_allowed(client, user, access):
            raise RefusedCreator(f'user "{user.username}" may not {access}')


async def _needed(kinds: Kinds, original: Original) -> list[Access]:
    """List what has to be allowed, each once."""
    found: dict[Access, None] = {}
    for kind, template in _created(original):
        served = await kinds.find(kind)
        if served is None:
            raise RefusedCreator(f"it serves no {kind}")
        found.update(dict.fromkeys(to_create(served, original.metadata.namespace, template)))
    return list(found)


def _created(original: Original) -> Iterator[tuple[Kind, bytes]]:
    """Yield the kinds of what is created there, each with its JSON."""
    said = typed(original.kind)
    yield Kind(said["apiVersion"], said["kind"]), b""
    if original.kind in WRAPPER_RESOURCES:
        wrapper = AppWrapper(metadata=original.metadata, spec=msgspec.Raw(original.spec))
        for each in read(wrapper).items:
            yield Kind(each.api_version, each.kind), msgspec.json.encode(each.found)
