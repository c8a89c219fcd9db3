"""Decodes foreign JSON field by field, so that each bad field is named and the rest is read."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from appwrapper.spec.faults import MOST_BYTES, MOST_DEPTH, MOST_PARTS, Fault, shown
from appwrapper.spec.paths import Json

T = TypeVar("T", bound=msgspec.Struct)

_AT = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_EXPECTED = re.compile(r"Expected `(?P<kind>[^`]*)`")
_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "none",
    "object": "a map",
    "str": "a text",
}


def decoded(spec: msgspec.Raw) -> Json | Fault:
    """Decode the spec of an AppWrapper, unless it is too large, too deep, or no map."""
    size = len(bytes(spec))
    if size > MOST_BYTES:
        return Fault("", "spec", f"{size} bytes", f"at most {MOST_BYTES} bytes")
    try:
        found = msgspec.json.decode(spec)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Fault("", "spec", str(error), "JSON")
    except RecursionError:
        return _too_deep()
    if not isinstance(found, dict):
        return Fault("", "spec", shown(found), "a map")
    return _shape_fault(found) or found


def fields_of(
    kind: type[T], found: Mapping[str, Any], item: str, field: str
) -> tuple[T, list[Fault]]:
    """Read the fields of a struct one by one; those that cannot be read stay at their defaults.

    Raw fields are left out. `item` and `field` say where the map stands.
    """
    good: Json = {}
    faults = []
    for each in _fields(kind):
        name = each.encode_name
        if name in found and each.type is not msgspec.Raw:
            try:
                msgspec.convert({name: found[name]}, kind)
                good[name] = found[name]
            except msgspec.ValidationError as error:
                faults.append(_fault(error, found[name], item, f"{field}{name}", name))
    return msgspec.convert(good, kind), faults


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """List the fields of a struct; to work them out costs more than to read them."""
    return msgspec.structs.fields(kind)


def _fault(error: Exception, value: Any, item: str, field: str, name: str) -> Fault:
    """Name the innermost field that msgspec names, in the words of all our messages."""
    said = str(error)
    inner = _AT.search(said)
    below = inner["path"].removeprefix(f".{name}") if inner else ""
    kinds = _EXPECTED.search(said)
    alternatives = kinds["kind"].split(" | ") if kinds else []
    allowed = " or ".join(_WORDS.get(each, each) for each in alternatives if each != "null")
    return Fault(item, f"{field}{below}", shown(value), allowed or said)


def _too_deep() -> Fault:
    allowed = f"at most {MOST_DEPTH} lists and maps in one another"
    return Fault("", "spec", "nested too deeply", allowed)


def _shape_fault(found: Any) -> Fault | None:
    """Say what is too large to be read whenever it changes: it is read where all gangs are."""
    level, parts = [found], 0
    for _depth in range(MOST_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for some in inner for part in some if isinstance(part, dict | list)]
        parts += len(level)
        if parts > MOST_PARTS:
            allowed = f"at most {MOST_PARTS} lists and maps in all"
            return Fault("", "spec", f"more than {MOST_PARTS}", allowed)
        if not level:
            return None
    return _too_deep()
