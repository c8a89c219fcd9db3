"""Turns structs into the structural schemas that CustomResourceDefinitions hold.

A struct says how an object is read, and by annotations of its fields what the API server allows in
it. Reading ignores the annotations: a field that was edited by hand must still be readable.
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

Json = dict[str, Any]

# As Kubernetes writes quantities in its own CRDs, without the minus sign.
_NUMBER = r"([0-9]+(\.[0-9]*)?)|(\.[0-9]+)"
QUANTITY_PATTERN = rf"^\+?({_NUMBER})(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"
_QUANTITY: Json = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": QUANTITY_PATTERN,
}

# A whole object of any kind, as it was written.
EMBEDDED: Json = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
_SIMPLE: dict[Any, Json] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    msgspec.Raw: EMBEDDED,
}

EXTRA = "schema_extra"
"""The class variable of a struct that holds what its schema says beside its fields."""


class Allows:
    """What the API server allows in a field, and what the field means."""

    def __init__(self, description: str = "", *, required: bool = False, **schema: Any) -> None:
        self.required = required
        self.schema = schema | ({"description": description} if description else {})


def rules(*found: tuple[str, str]) -> Json:
    """CEL rules with their messages, as the schema extension that holds them."""
    said = [{"message": message, "rule": rule} for rule, message in found]
    return {"x-kubernetes-validations": said}


def map_of(*keys: str) -> Json:
    """A list whose items are told apart by these keys: the server refuses duplicates."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


ATOMIC_LIST: Json = {"x-kubernetes-list-type": "atomic"}
ATOMIC: Json = {"x-kubernetes-map-type": "atomic"}


def structural_schema(kind: Any) -> Json:
    """Return the schema of a type: no references, no titles, no null."""
    schema = _plain(kind)
    return {key: schema[key] for key in sorted(schema, key=_rank)}


def _plain(kind: Any) -> Json:
    if get_origin(kind) is Annotated:
        base, *notes = get_args(kind)
        said = [each.schema for each in notes if isinstance(each, Allows)]
        return {key: value for each in (_plain(base), *said) for key, value in each.items()}
    if get_origin(kind) in (Union, UnionType):
        return _one_of(set(get_args(kind)) - {NoneType})
    if get_origin(kind) is tuple:
        return {"type": "array", "items": structural_schema(get_args(kind)[0])}
    if get_origin(kind) is not None:
        return {"type": "object", "additionalProperties": structural_schema(get_args(kind)[1])}
    if issubclass(kind, msgspec.Struct):
        return _of_struct(kind)
    return dict(_SIMPLE[kind])


def _one_of(kinds: set[Any]) -> Json:
    """What may be null may as well be absent; numbers and texts together are quantities."""
    if kinds == {str, int, float}:
        return _QUANTITY
    (kind,) = kinds
    return _plain(kind)


def _of_struct(kind: type[msgspec.Struct]) -> Json:
    hints = get_type_hints(kind, include_extras=True)
    fields = [each for each in msgspec.structs.fields(kind) if each.name != "metadata"]
    required = [each.encode_name for each in fields if _is_required(hints[each.name])]
    properties = {each.encode_name: _of_field(each, hints[each.name]) for each in fields}
    schema = {"description": kind.__doc__, "type": "object", "properties": properties}
    return schema | ({"required": required} if required else {}) | getattr(kind, EXTRA, {})


def _of_field(field: Any, hint: Any) -> Json:
    """A default that means nothing is left out: it would fill every object."""
    means = isinstance(field.default, str | int) and field.default
    default = {"default": field.default} if means else {}
    schema = structural_schema(hint) | default
    return {key: schema[key] for key in sorted(schema, key=_rank)}


def _is_required(hint: Any) -> bool:
    notes: Mapping[str, Any] = getattr(hint, "__dict__", {})
    found = notes.get("__metadata__", ())
    return any(each.required for each in found if isinstance(each, Allows))


def _rank(key: str) -> tuple[int, str]:
    """Put what people read first, the rest by name."""
    return ("description", "type").index(key) if key in ("description", "type") else 2, key
