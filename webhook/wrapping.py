"""Decides the review of an AppWrapper: notes its creator, and lists the objects that need a check.

Pure and synchronous. Two rules of the API server ask. One may change the AppWrapper: the note of
its creator is written over whatever was there. The other sees what is stored in the end: the note
must be the right one, and of what is created or edited the objects are returned, whose kinds and
rights only the API server knows.

    body ──read_wrap_review──▶ WrapReview | BadReview
    WrapReview, taken ──note──▶ JsonPatch | Deny
    WrapReview, taken ──judge──▶ Allow | Deny | Objects

`taken` are the values of spec.managedBy with which an AppWrapper is Muster's; "" is none. One that
is another controller's is let through, but it never keeps a note: a note can be trusted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from appwrapper.phases import ACTIVE, LEAVING
from appwrapper.spec.faults import message_of
from appwrapper.spec.items import read
from kube.api.kinds import Kind
from kube.codec.pod_patches import JsonPatch
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.user import User, write_user
from webhook.admission_review import (
    ALLOW,
    NAME,
    Allow,
    BadReview,
    Deny,
    Request,
    creator_note,
    read_request,
    unexpected,
)

_GROUPS: Final = frozenset(each.partition("/")[0] for each in names.APP_WRAPPER_API_VERSIONS)
_ANNOTATIONS: Final = "/metadata/annotations"
_NOTE: Final = f"{_ANNOTATIONS}/{names.CREATED_BY.replace('/', '~1')}"
_UNPROCESSABLE = 422
_SHOWN = 120


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    managed_by: str | None = None
    components: msgspec.Raw = msgspec.Raw(b"null")
    resources: msgspec.Raw = msgspec.Raw(b"null")


class _Metadata(msgspec.Struct, frozen=True):
    annotations: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct, frozen=True):
    """What is read of an AppWrapper beside what the struct of all programs has."""

    metadata: _Metadata = _Metadata()
    spec: _Spec | None = None


_WRAPPER: Final = msgspec.json.Decoder(AppWrapper)
_OBJECT: Final = msgspec.json.Decoder(_Object)
_USER: Final = msgspec.json.Decoder(User)
_NO_USER: Final = User()


@dataclass(frozen=True, slots=True)
class Seen:
    """An AppWrapper as it is sent, or as it was before."""

    wrapper: AppWrapper
    spec: _Spec
    has_annotations: bool = False

    @property
    def note(self) -> str | None:
        """The note of who created it."""
        return self.wrapper.metadata.annotations.get(names.CREATED_BY)

    @property
    def managed_by(self) -> str:
        """The controller that is to take care of it; empty where it names none."""
        return self.spec.managed_by or ""


@dataclass(frozen=True, slots=True)
class WrapReview:
    """A review as far as it matters here; `new` is None unless an AppWrapper is written."""

    uid: str
    namespace: str = ""
    user: User = _NO_USER
    new: Seen | None = None
    old: Seen | None = None
    same_items: bool = False
    """Whether an edit leaves the wrapped objects as they were, however they are spelled."""


@dataclass(frozen=True, slots=True)
class WrappedObject:
    """A wrapped object; `content` is its JSON in one spelling, so that equal ones are equal."""

    where: str
    kind: Kind
    content: bytes


@dataclass(frozen=True, slots=True)
class Faulty:
    """What is wrong in an AppWrapper, of all its items."""

    message: str


@dataclass(frozen=True, slots=True)
class Objects:
    """Wrapped objects that the user of the review must be allowed to create."""

    user: User
    namespace: str
    found: tuple[WrappedObject, ...]


Judged: TypeAlias = Allow | Deny | Objects


def read_wrap_review(body: bytes | bytearray) -> WrapReview | BadReview:
    """Read what the API server sent about an AppWrapper."""
    return read_request(body, _review)


def _review(request: Request) -> WrapReview | BadReview:
    kind, namespace = request.kind, request.namespace or ""
    ours = kind.group in _GROUPS and kind.kind == names.APP_WRAPPER_KIND
    if not ours or request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
        return WrapReview(request.uid)
    if not NAME.fullmatch(namespace):
        return unexpected("request.namespace", namespace, "the name of a namespace")
    try:
        user, new = _USER.decode(request.user_info), _seen(request.object)
        old = _seen(request.old_object) if request.operation == "UPDATE" else None
        same = old is not None and _items(new.spec) == _items(old.spec)
    except msgspec.ValidationError as error:
        return BadReview(400, f"not an AppWrapper, or not a user: {error}")
    return WrapReview(request.uid, namespace, user, new, old, same)


def _seen(sent: msgspec.Raw) -> Seen:
    wrapper, found = _WRAPPER.decode(sent), _OBJECT.decode(sent)
    there = bytes(found.metadata.annotations) not in (b"", b"null")
    return Seen(wrapper, found.spec or _Spec(), there)


def _items(spec: _Spec) -> tuple[Any, Any]:
    """Decode what is wrapped, which may still turn out to be unreadable."""
    return msgspec.json.decode(spec.components), msgspec.json.decode(spec.resources)


# ---- what may change it


def note(review: WrapReview, taken: Collection[str]) -> JsonPatch | Deny:
    """Write who creates an AppWrapper; a client that replaces it without the note keeps it."""
    new, old = review.new, review.old
    if new is None:
        return []
    if old is not None:
        return [] if old.note is None or new.note is not None else _written(new, old.note)
    if new.managed_by not in taken:
        return [] if new.note is None else [{"op": "remove", "path": _NOTE}]
    written = creator_note(review.user)
    return written if isinstance(written, Deny) else _written(new, written)


def _written(new: Seen, said: str) -> JsonPatch:
    if new.has_annotations:
        return [{"op": "add", "path": _NOTE, "value": said}]
    return [{"op": "add", "path": _ANNOTATIONS, "value": {names.CREATED_BY: said}}]


# ---- what judges it


def judge(review: WrapReview, taken: Collection[str], left_alone: Collection[str]) -> Judged:
    """Refuse what is wrong in itself, and return what only the API server can tell.

    `left_alone` are the namespaces in which none is Muster's.
    """
    if review.new is None:
        return ALLOW
    if review.old is None:
        return _created(review, review.new, taken, left_alone)
    return _updated(review, review.new, review.old, taken)


def _created(
    review: WrapReview, new: Seen, taken: Collection[str], left_alone: Collection[str]
) -> Judged:
    ours = new.managed_by in taken
    if new.note != (write_user(review.user) if ours else None):
        return _wrong_note("only Muster's webhook writes it")
    if ours and review.namespace in left_alone:
        others = " and ".join(sorted(left_alone))
        return _wrong("metadata.namespace", review.namespace, f"all namespaces but {others}")
    return _objects(review, new, ()) if ours else ALLOW


def _updated(review: WrapReview, new: Seen, old: Seen, taken: Collection[str]) -> Judged:
    if new.note != old.note:
        return _wrong_note("it stays as it was when the AppWrapper was created")
    if new.managed_by != old.managed_by and {new.managed_by, old.managed_by} & {*taken}:
        return _wrong("spec.managedBy", new.managed_by, f'"{old.managed_by}", as before')
    if new.managed_by not in taken and new.note is None:
        return ALLOW  # what has a note was taken, and is created for the user that it names
    if review.same_items:
        return _other_fields(new, old)
    phase = old.wrapper.status.phase
    if phase in ACTIVE | LEAVING:
        allowed = (
            "no change while the wrapped objects exist; suspend the AppWrapper, or create another"
        )
        return _wrong("spec", f"other items in phase {phase}", allowed)
    before = wrapped_objects(old.wrapper)
    return _objects(review, new, () if isinstance(before, Faulty) else before)


def _other_fields(new: Seen, old: Seen) -> Judged:
    """Refuse a fault that an edit brings; one that was there must not keep others from change."""
    found = wrapped_objects(new.wrapper)
    if isinstance(found, Faulty) and not isinstance(wrapped_objects(old.wrapper), Faulty):
        return Deny(_UNPROCESSABLE, found.message)
    return ALLOW


def _objects(review: WrapReview, new: Seen, before: Collection[WrappedObject]) -> Judged:
    """Return the wrapped objects that were not there before, or all faults at once."""
    found = wrapped_objects(new.wrapper)
    if isinstance(found, Faulty):
        return Deny(_UNPROCESSABLE, found.message)
    known = {each.content for each in before}
    added = tuple(each for each in found if each.content not in known)
    return Objects(review.user, review.namespace, added)


def _wrong_note(allowed: str) -> Deny:
    return _wrong(f"metadata.annotations[{names.CREATED_BY}]", "another value", allowed)


def _wrong(field: str, value: str, allowed: str) -> Deny:
    return Deny(_UNPROCESSABLE, f'{field}: "{value[:_SHOWN]}" is not valid; allowed: {allowed}')


# ---- what is wrapped, as far as rights depend on it


def wrapped_objects(wrapper: AppWrapper) -> tuple[WrappedObject, ...] | Faulty:
    """Read the wrapped objects of either generation, unless anything is wrong with them."""
    wrapped = read(wrapper)
    if wrapped.faults:
        return Faulty(message_of(wrapped.faults))
    return tuple(
        WrappedObject(
            each.where,
            Kind(each.api_version, each.kind),
            msgspec.json.encode(each.found, order="sorted"),
        )
        for each in wrapped.items
    )
