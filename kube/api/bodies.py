"""Decodes responses of the API server, and encodes request bodies."""

from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from kube.api.errors import Garbled

T = TypeVar("T")


def decode(body: bytes, as_: type[T]) -> T:
    """Decode an answer; what doesn't fit is Garbled, so that a caller catches one tree."""
    try:
        return msgspec.json.decode(body, type=as_)
    except msgspec.DecodeError as error:
        raise Garbled(f"{error} in {body[:200]!r}") from error


def encode(obj: object) -> bytes:
    """Encode a body: bytes as they are, msgspec structs too."""
    return obj if isinstance(obj, bytes) else orjson.dumps(obj, default=msgspec.to_builtins)


def decode_as(as_: type[Any] | None, body: bytes) -> Any:
    """Decode an answer where a type is asked for; else return its bytes."""
    """Decode an answer where a type is asked for; else return its bytes."""
    return body if as_ is None else decode(body, as_)


def sent_at(headers: Mapping[str, str]) -> float:
    """Return when an answer was sent, in whole seconds since 1970 by the clock of its sender."""
    said = headers.get("Date", "")
    try:
        return parsedate_to_datetime(said).timestamp()
    except ValueError as error:
        raise Garbled(f"an answer without the time: Date {said!r}") from error


# ---- pages of lists


class _Place(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Place = msgspec.field(default_factory=_Place)


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _ItemsAs(msgspec.Struct, Generic[T]):
    items: list[T] | None = None


def decoded(page: bytes, as_: type[T], faults: MutableSequence[str]) -> Sequence[T]:
    """Decode a page at once, and where that fails its objects one by one.

    `faults` gets a line for each that is left out.
    """
    try:
        return decode(page, _ItemsAs[as_]).items or ()  # type: ignore[valid-type]
    except Garbled:
        return list(_decodable(page, as_, faults))


def _decodable(page: bytes, as_: type[T], faults: MutableSequence[str]) -> Iterator[T]:
    for raw in decode(page, _Items).items or ():
        try:
            yield decode(bytes(raw), as_)
        except Garbled as error:
            place = decode(bytes(raw), _Named).metadata
            named = f"{place.namespace}/{place.name}" if place.namespace else place.name
            faults.append(f"{as_.__name__} {named} is left out: {error.__cause__}")
