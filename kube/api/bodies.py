"""Decodes answers of the API server and encodes what it is sent."""

from typing import Any, TypeVar

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
