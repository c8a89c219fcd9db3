"""Finds fields of an object that the schema of its kind does not have. Pure.

The schema is the one that the API server publishes (OpenAPI, version 3). Where it is silent about
the fields of a part, any field there is fine.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cli.fitting.manifests import Manifest

Schema = Mapping[str, Any]

_KINDS: Final = "x-kubernetes-group-version-kind"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_PLACE: Final = "#/components/schemas/"


def unknown_fields(document: Schema, api_version: str, kind: str, manifest: Manifest) -> list[str]:
    """Return the paths of unknown fields; none where the document has no schema of the kind."""
    schemas: Schema = document.get("components", {}).get("schemas", {})
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    of_kind = (each for each in schemas.values() if wanted in (each.get(_KINDS) or ()))
    return list(_unknown(schemas, next(of_kind, {}), manifest, ""))


def _unknown(schemas: Schema, schema: Schema, value: Any, path: str) -> Iterator[str]:
    schema = _resolved(schemas, schema)
    if isinstance(value, list):
        for at, each in enumerate(value):
            yield from _unknown(schemas, schema.get("items", {}), each, f"{path}[{at}]")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            below = _of_field(schema, key)
            place = f"{path}.{key}" if path else key
            if below is None:
                yield place
            else:
                yield from _unknown(schemas, below, each, place)


def _of_field(schema: Schema, key: str) -> Schema | None:
    """Return the schema of a field, an empty one where anything goes; None where it is unknown."""
    known: Schema = schema.get("properties", {})
    if key in known:
        return dict(known[key])
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return others
    return None if known and not schema.get(_OPEN) and not others else {}


def _resolved(schemas: Schema, schema: Schema) -> Schema:
    """Return a schema with those that it refers to in it."""
    joined: dict[str, Any] = dict(schema)
    for each in (schema, *schema.get("allOf", ())):
        name = str(each.get("$ref", "")).removeprefix(_PLACE)
        joined |= schemas.get(name, {}) if name else {}
    return joined
