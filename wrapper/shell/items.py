"""Creates, deletes and reads the objects that an AppWrapper wraps.

An object is found again by its name and belongs to the AppWrapper whose uid is in its controller
reference. So to create it twice creates it once, and one of the same name is never taken for it.
"""

import json
from collections.abc import Iterable, Mapping

import msgspec

from appwrapper.completion import Completion, completion, ended
from appwrapper.creation import created_object
from appwrapper.outcomes import goes_by_itself, outcome, status_of_end
from appwrapper.spec.items import read
from appwrapper.spec.paths import Json
from appwrapper.spec.wrapped import Item, Wrapped
from kube.api.access import is_allowed, to_create
from kube.api.client import Client
from kube.api.errors import ApiError, Conflict, Forbidden, NotFound, NotServed
from kube.api.kinds import Kind, Kinds, Served
from kube.api.reviewed import SharedReview
from kube.codec.fields import moment_of
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta, OwnerReference, Slim
from kube.objects.user import User, read_user
from wrapper.contents import Reference, ends_noted
from wrapper.messages import Read, Refusal

FOREGROUND = "Foreground"
"""The object stays until what it made is gone: only then is there room for others."""

BAD_REQUEST = 400

GRANT = (
    f'allowed: kinds that a ClusterRole with the label {names.WRAPPED_OBJECTS}: "true" '
    "lets Muster create"
)


class _Object(Slim, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: msgspec.Raw = msgspec.Raw(b"null")


class Items:
    """The objects of AppWrappers, on one API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kinds = Kinds(client)
        self._reviewed = SharedReview(client)

    # --- creating -----------------------------------------------------------------------------

    async def may_create(self, found: AppWrapper) -> Refusal | None:
        """Say why nothing is created for an AppWrapper, whatever its items are."""
        since = await self._reviewed.since()
        if since is None:
            said = "Muster's admission of AppWrappers is not installed"
            return Refusal(0, f"{said}: their creators are not known", lasts=False)
        if moment_of(found.metadata.creation_timestamp) < since.timestamp():
            said = "the AppWrapper was created before Muster's admission of AppWrappers was"
            return Refusal(0, f"{said}; create it anew", lasts=True)
        if _creator(found) is None:
            said = f"annotation {names.CREATED_BY} does not name a user"
            return Refusal(0, f"{said}; create the AppWrapper anew", lasts=True)
        return None

    async def create(self, found: AppWrapper, wrapped: Wrapped, index: int) -> Refusal | None:
        """Create an item for the creator of its AppWrapper; None where it exists by then."""
        item = wrapped.items[index]
        served = await self._served(item.api_version, item.kind)
        refusal = _unserved(served, item) or await self._not_allowed(found, item, served)
        if refusal:
            return Refusal(index, f"{item.where}: {refusal}", lasts=served is not None)
        assert served is not None
        meta = found.metadata
        body = created_object(item, meta, found.api_version, wrapped.generation)
        path = served.resource.path(meta.namespace)
        try:
            await self._client.create(path, body)
        except Conflict as error:
            return await self._taken(found, item, index, served, error)
        except ApiError as error:
            hint = f"; {GRANT}" if _is_never_allowed(error) else ""
            lasts = error.status in (BAD_REQUEST, 422) or bool(hint)
            said = f"{item.where}: {error.message or error}{hint}"
            return Refusal(index, said, lasts, _is_forbidden_now(error))
        return None

    async def _served(self, api_version: str, kind: str) -> Served | None:
        return await self._kinds.find(Kind(api_version, kind))

    async def _not_allowed(self, found: AppWrapper, item: Item, served: Served | None) -> str:
        """Say what the creator of the AppWrapper must not do; empty where all is allowed."""
        user, namespace = _creator(found), found.metadata.namespace
        assert served is not None
        assert user is not None
        template = msgspec.Raw(json.dumps(item.found).encode())
        for access in to_create(served, namespace, template):
            if not await is_allowed(self._client, user, access):
                return f"user {user.username}, the creator, may not {access}"
        return ""

    async def _taken(
        self, found: AppWrapper, item: Item, index: int, served: Served, error: Conflict
    ) -> Refusal | None:
        """Find out whose the object is that has the item's name."""
        try:
            there = await self._metadata(served, found.metadata.namespace, item.name)
        except NotFound:
            return Refusal(index, f"{item.where}: {error.message}", lasts=False)
        owner = _owner(there)
        if owner.uid == found.metadata.uid and not there.deletion_timestamp:
            return None
        named = f"{item.where}: {item.kind} {item.name}"
        earlier = owner.kind == names.APP_WRAPPER_KIND and owner.name == found.metadata.name
        if there.deletion_timestamp or earlier:
            return Refusal(index, f"{named} of before is still being deleted", lasts=False)
        said = f"{named} exists and does not belong to the AppWrapper"
        return Refusal(index, f"{said}; allowed: a name that is free", lasts=True)

    # --- deleting and reading -----------------------------------------------------------------

    async def delete(self, namespace: str, uid: str, item: Reference) -> bool:
        """Delete an object of the AppWrapper of that uid; say whether there is none any more.

        A kind that is not served proves nothing: an API server that starts does not serve all.
        """
        served = await self._served(item.api_version, item.kind)
        if served is None:
            return False
        if not served.resource.namespaced:
            return True  # nothing of such a kind was ever created
        try:
            there = await self._metadata(served, namespace, item.name)
            if _owner(there).uid != uid:
                return True
            if not there.deletion_timestamp:
                path = served.resource.path(namespace, item.name)
                await self._client.delete(path, uid=there.uid, propagation=FOREGROUND)
        except NotFound:
            return True
        except Conflict:
            return False
        return False

    async def read(self, found: AppWrapper, pods_left: int, completed: Mapping[str, int]) -> Read:
        """Return how far all items have come; `completed` counts succeeded pods by pod set."""
        wrapped, noted = read(found), ends_noted(found.status)
        statuses: dict[tuple[str, str, str], Json | None] = {}
        ends, missing = [], ""
        for item in wrapped.items:
            status, named = await self._status(found, item), _reference(item)
            end = outcome(item, status, noted.get(named), completed)
            if end is not None:
                ends.append((named, end))
                status = status or status_of_end(item, end)
            statuses[item.key] = status
            missing = missing or (_missing(item) if status is None else "")
        state = completion(wrapped, statuses, pods_left=pods_left)
        return Read(state, missing, ends=tuple(ends))

    async def _status(self, found: AppWrapper, item: Item) -> Json | None:
        """Return the status of an item, empty where it has none; None where the item is gone."""
        served = await self._served(item.api_version, item.kind)
        if served is None:
            raise NotServed(f"{item.where}: {_unserved(served, item)}")
        there = await self._object(found, item, served) if served.resource.namespaced else None
        if there is None:
            return None
        said = msgspec.json.decode(there.status)
        status = said if isinstance(said, dict) else {}
        goes = there.metadata.deletion_timestamp
        return None if goes and not _went_by_itself(item, status) else status

    async def _object(self, found: AppWrapper, item: Item, served: Served) -> _Object | None:
        """Read an item, unless it is gone, or another's by now."""
        path = served.resource.path(found.metadata.namespace, item.name)
        try:
            there = await self._client.get(path, as_=_Object)
        except NotFound:
            return None
        return there if _owner(there.metadata).uid == found.metadata.uid else None

    async def _metadata(self, served: Served, namespace: str, name: str) -> ObjectMeta:
        path = served.resource.path(namespace, name)
        found = await self._client.get(path, as_=_Object, metadata_only=True)
        return found.metadata


def _is_never_allowed(error: ApiError) -> bool:
    """Say whether our own account has no right to create the kind.

    A quota refuses in other words. With "RBAC:" the API server says that it does not know all
    roles, which passes where it is only starting.
    """
    said = error.message
    lacks = isinstance(error, Forbidden) and " cannot create resource " in said
    return lacks and ": RBAC: " not in said


def _is_forbidden_now(error: ApiError) -> bool:
    """Say whether admission refuses the object, as a quota does, rather than who creates it."""
    return isinstance(error, Forbidden) and " cannot create resource " not in error.message


def _went_by_itself(item: Item, status: Json) -> bool:
    """Say whether an object that is being deleted had ended before."""
    return goes_by_itself(item) and ended(item, status) is not Completion.RUNNING


def _missing(item: Item) -> str:
    """Say of an item that is not there what is known of it."""
    if goes_by_itself(item):
        how = "is gone, by its ttlSecondsAfterFinished or by hand, before its end was read"
        return f"{item.kind} {item.name} {how}: its outcome is not known"
    return f"{item.kind} {item.name} was deleted while the AppWrapper ran"


def _reference(item: Item) -> Reference:
    return Reference(item.api_version, item.kind, item.name)


def _unserved(served: Served | None, item: Item) -> str:
    if served is None:
        return f"the API server knows no kind {item.kind} of {item.api_version}"
    if not served.resource.namespaced:
        return f"objects of kind {item.kind} are in no namespace"
    return ""


def _creator(found: AppWrapper) -> User | None:
    return read_user(found.metadata.annotations.get(names.CREATED_BY, ""))


def _owner(meta: ObjectMeta) -> OwnerReference:
    """Return what controls an object; an empty reference where nothing does."""
    found: Iterable[OwnerReference] = (o for o in meta.owner_references if o.controller)
    return next(iter(found), OwnerReference())
