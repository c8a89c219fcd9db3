"""Applies a person's rewrite of an object, from a file or an editor, to the existing object."""

from collections.abc import Mapping
from typing import Any

from cli.endings import Unusable
from cli.managing.values import part

Json = dict[str, Any]


def to_be_edited(found: Mapping[str, Any]) -> Json:
    """Return what of an object a person may edit."""
    meta = found["metadata"]
    kept = ("name", "namespace", "labels", "annotations")
    shown = {key: meta[key] for key in kept if meta.get(key)}
    return {**{key: found[key] for key in ("apiVersion", "kind")}, "metadata": shown} | {
        "spec": found["spec"]
    }


def with_file(found: Mapping[str, Any], written: Mapping[str, Any], place: str) -> Json:
    """Return an object with the spec of a file, and its labels and annotations beside its own."""
    _check_same(found, written, place)
    meta = {**found["metadata"]}
    for key in ("labels", "annotations"):
        both = {**part(found, "metadata", key), **part(written, "metadata", key)}
        meta |= {key: both} if both else {}
    return {**found, "metadata": meta, "spec": part(written, "spec")}


def with_edited(found: Mapping[str, Any], written: Mapping[str, Any], place: str) -> Json:
    """Return an object as it came out of an editor, which had all of its labels."""
    _check_same(found, written, place)
    marks = {key: part(written, "metadata", key) for key in ("labels", "annotations")}
    return {**found, "metadata": {**found["metadata"], **marks}, "spec": part(written, "spec")}


def _check_same(found: Mapping[str, Any], written: Mapping[str, Any], place: str) -> None:
    """Refuse another object than the one that is edited."""
    meta, said = found["metadata"], part(written, "metadata")
    for field, value, wanted in (
        ("apiVersion", written.get("apiVersion"), found["apiVersion"]),
        ("kind", written.get("kind"), found["kind"]),
        ("metadata.name", said.get("name"), meta["name"]),
        (
            "metadata.namespace",
            said.get("namespace", meta.get("namespace")),
            meta.get("namespace"),
        ),
    ):
        if value != wanted:
            raise Unusable(f"{place}: {field}: {value}; allowed: {wanted}, which is edited")
