"""Reads AdmissionReviews of any object, and writes the answers."""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
import orjson

from kube.codec.pod_patches import JsonPatch
from kube.objects import names
from kube.objects.user import LONGEST, User, write_user

T = TypeVar("T")

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

# An owner reference may hold any text. Only a name that an object can have goes into a path.
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LONGEST_SHOWN = 80
ABSENT = (b"", b"null")
"""How a field that is not there, and one that is null, come undecoded."""


class _Kind(msgspec.Struct, frozen=True, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What the API server is about to do; objects and user are not decoded yet."""

    uid: str = ""
    kind: _Kind = _Kind()
    sub_resource: str | None = None
    operation: str = ""
    namespace: str | None = None
    object: msgspec.Raw = msgspec.Raw()
    old_object: msgspec.Raw = msgspec.Raw()
    user_info: msgspec.Raw = msgspec.Raw()


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: Request | None = None


_ENVELOPE = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True, slots=True)
class BadReview:
    """The body is not a review: the HTTP status and the message of the answer."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Allow:
    """The pod is none of ours: untouched, without a warning."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The pod may not be created: it is not allowed (403), or what decides is not known (503)."""

    code: int
    message: str


ALLOW: Final = Allow()


def read_request(
    body: bytes | bytearray, read_object: Callable[[Request], T | BadReview]
) -> T | BadReview:
    """Read what the API server sent; the object is decoded by the function given."""
    try:
        request = _requested(_ENVELOPE.decode(body))
        return request if isinstance(request, BadReview) else read_object(request)
    except msgspec.ValidationError as error:
        return BadReview(400, f"not an AdmissionReview: {error}")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BadReview(400, f"not JSON: {error}")
    except RecursionError:
        return BadReview(400, "not an AdmissionReview: nested more deeply than any object is")


def patched(uid: str, patch: JsonPatch, warnings: Sequence[str] = ()) -> bytes:
    """Return the AdmissionReview that allows an object and changes it; kubectl prints warnings."""
    encoded = base64.b64encode(orjson.dumps(patch)).decode()
    return _answer(uid, warnings, allowed=True, patchType="JSONPatch", patch=encoded)


def untouched(uid: str, warnings: Sequence[str] = ()) -> bytes:
    """Return the AdmissionReview that allows an object as it is; kubectl prints warnings."""
    return _answer(uid, warnings, allowed=True)


def denied(uid: str, deny: Deny) -> bytes:
    """Return the AdmissionReview that refuses an object."""
    status = {"code": deny.code, "message": deny.message}
    return _answer(uid, allowed=False, status=status)


def _answer(uid: str, warnings: Sequence[str] = (), **said: object) -> bytes:
    response = {"uid": uid, **said, **({"warnings": warnings} if warnings else {})}
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def creator_note(user: User) -> str | Deny:
    """Return the note of who creates an object; it is refused where that would be too long."""
    written = write_user(user)
    if written is not None:
        return written
    return Deny(
        403,
        f"the user's groups and extra fields take more than {LONGEST} bytes as JSON, and are needed"
        f" whole in annotation {names.CREATED_BY}: have a user with fewer create the object",
    )


def _requested(envelope: _Envelope) -> Request | BadReview:
    request = envelope.request
    if envelope.kind != KIND:
        return unexpected("kind", envelope.kind, KIND)
    if envelope.api_version != API_VERSION:
        return unexpected("apiVersion", envelope.api_version, API_VERSION)
    if request is None:
        return unexpected("request", None, "an object")
    if not request.uid:
        return unexpected("request.uid", request.uid, "the uid to answer to")
    return request


def unexpected(field: str, value: object, allowed: str) -> BadReview:
    """Say what of a review has a value that no review has."""
    shown = repr(value)[:_LONGEST_SHOWN]
    return BadReview(400, f"not an AdmissionReview: {field} is {shown}, allowed is {allowed}")
