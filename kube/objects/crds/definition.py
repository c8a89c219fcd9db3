"""Reads served CustomResourceDefinitions, and finds which parts of a wanted schema they lack.

The API server drops a field that a definition does not know, without a word to the writer. So a
program that is newer than the definitions compares them with those of its release.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kube.objects.base import Condition, ObjectMeta, OrNull, Part, Slim
from kube.objects.schema import Json

NAMED = 5
_OPEN = "x-kubernetes-preserve-unknown-fields"


class _Schema(Slim, frozen=True):
    open_apiv3_schema: Any = msgspec.field(default=None, name="openAPIV3Schema")


class DefinedVersion(Slim, frozen=True):
    """One version of a definition."""

    name: str = ""
    served: bool = False
    schema: _Schema | None = None


class _Spec(Part, frozen=True):
    versions: OrNull[tuple[DefinedVersion, ...]] = ()


class _Status(Part, frozen=True):
    conditions: OrNull[tuple[Condition, ...]] = ()


class Definition(Slim, frozen=True):
    """A CustomResourceDefinition."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def served_schema(found: Definition, version: str) -> Json | None:
    """Return the schema of a version; None where it is not served."""
    mine = next((each for each in found.spec.versions if each.name == version), None)
    if mine is None or not mine.served:
        return None
    return (mine.schema.open_apiv3_schema if mine.schema is not None else None) or {}


def lacks(found: Definition, wanted: Json, *parts: str) -> tuple[str, ...]:
    """Name what of `parts` (spec, status) a definition does not take that `wanted` has.

    A field is named by its path, a value that a field may not have by path and value. What is below
    a missing field is not named.
    """
    version = wanted["spec"]["versions"][0]
    schema = served_schema(found, version["name"])
    if schema is None:
        return (f"version {version['name']}",)
    mine, theirs = version["schema"]["openAPIV3Schema"]["properties"], _properties(schema)
    asked = ((f".{part}", theirs.get(part), mine[part]) for part in parts)
    return tuple(lack for each in asked for lack in _missing(*each))


def some(missing: tuple[str, ...]) -> str:
    """Name the first few of what is missing."""
    more = len(missing) - NAMED
    return ", ".join(missing[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _missing(path: str, found: Json | None, wanted: Json) -> Iterator[str]:
    if found is None:
        yield path
        return
    if found.get(_OPEN):
        return
    allowed, needed = found.get("enum"), wanted.get("enum") or ()
    if allowed is not None:
        yield from (f"{path}={value}" for value in needed if value not in allowed)
    for name, each in (wanted.get("properties") or {}).items():
        yield from _missing(f"{path}.{name}", _properties(found).get(name), each)
    for inner in ("items", "additionalProperties"):
        if isinstance(wanted.get(inner), dict):
            suffix = "[]" if inner == "items" else ".*"
            yield from _missing(f"{path}{suffix}", found.get(inner), wanted[inner])


def _properties(schema: Json) -> Json:
    return schema.get("properties") or {}
