"""Decodes lists and watch streams of the API server. Pure."""

import contextlib
import sys
from collections.abc import Sequence
from typing import Any, Generic, TypeAlias, TypeVar, Union

import msgspec

from kube.api.errors import Garbled, Status
from kube.api.watch.events import ObjectMeta, Unreadable, Watched

R = TypeVar("R", bound=Watched)
D = TypeVar("D")


class Meta(msgspec.Struct, rename="camel", gc=False):
    """What the reflector itself needs of an object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Partial(msgspec.Struct, gc=False):
    metadata: Meta


class Added(msgspec.Struct, Generic[R], tag_field="type", tag="ADDED"):
    """A watch event: an object is new."""

    object: R


class Modified(msgspec.Struct, Generic[R], tag_field="type", tag="MODIFIED"):
    """A watch event: an object has changed."""

    object: R


class Removed(msgspec.Struct, tag_field="type", tag="DELETED"):
    """A watch event: an object is gone."""

    object: _Partial


class Bookmark(msgspec.Struct, tag_field="type", tag="BOOKMARK"):
    """A watch event: nothing has happened up to this resource version."""

    object: _Partial


class Failed(msgspec.Struct, tag_field="type", tag="ERROR"):
    """A watch event: the server gives up the watch, and says why."""

    object: Status


DEEPEST = 12_000
"""Lists and maps in one another that can be read: an API server takes 10,000. Where a definition
keeps unknown fields, as that of AppWrapper does, a tenant can write as many, and the decoder goes
through those too that it skips."""

sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST))


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


Told: TypeAlias = Added[R] | Modified[R] | Removed | Bookmark | Failed | Unreadable


class Wire(Generic[R]):
    """Decode events and pages in one pass, and look twice only at what does not fit."""

    def __init__(self, kind: type[R], bare: type[Any] | None = None) -> None:
        self._bare = None if bare is None else msgspec.json.Decoder(bare)
        # mypy has no words for a type that is made at run time.
        made: Any = kind
        union: Any = Union[Added[made], Modified[made], Removed, Bookmark, Failed]  # noqa: UP007
        self._event: msgspec.json.Decoder[Told[R]] = msgspec.json.Decoder(union)
        self._item: msgspec.json.Decoder[R] = msgspec.json.Decoder(made)

    def event(self, line: bytes) -> Told[R]:
        """Return one event; Garbled when it is none."""
        try:
            return self._event.decode(line)
        except msgspec.ValidationError as error:
            envelope = _decoded(line, _Envelope)
            if envelope.type not in ("ADDED", "MODIFIED"):
                raise Garbled(f"{error} in {line[:200]!r}") from error
            found = self._lesser(envelope.object, error)
            return found if isinstance(found, Unreadable) else Modified(found)
        except msgspec.DecodeError as error:
            raise Garbled(f"{error} in {line[:200]!r}") from error

    def page(self, body: bytes) -> tuple[str, Sequence[msgspec.Raw]]:
        """Return the list's version and the page's objects, to be read one by one."""
        page = _decoded(body, _Page)
        return page.metadata.resource_version, page.items or ()

    def item(self, item: msgspec.Raw) -> R | Unreadable:
        """Return an object of a page."""
        try:
            return self._item.decode(item)
        except msgspec.ValidationError as error:
            return self._lesser(item, error)

    def _lesser(self, item: msgspec.Raw, error: msgspec.ValidationError) -> R | Unreadable:
        """Return the little that can be read of an object that is not of its type."""
        if self._bare is not None:
            with contextlib.suppress(msgspec.ValidationError):
                lesser: R = self._bare.decode(item)
                return lesser
        return unreadable_object(_decoded(item, _Partial).metadata, error)


def _decoded(text: Any, as_: type[D]) -> D:
    try:
        return msgspec.json.decode(text, type=as_)
    except msgspec.DecodeError as error:
        raise Garbled(str(error)) from error


def unreadable_object(meta: ObjectMeta, error: Exception) -> Unreadable:
    """Name an object that is not of its type."""
    return Unreadable(meta.namespace, meta.name, meta.uid, str(error))
