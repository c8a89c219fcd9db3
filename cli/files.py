"""Reads Kubernetes objects from files: YAML with several documents, JSON, lists of either."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from cli.imports.outcome import Fault, Source

STANDARD_INPUT = "-"

MOST_VALUES = 5_000_000
"""In one text of YAML, where few lines stand for any number of values (`*name`)."""


def read_files(paths: Sequence[str]) -> list[Source]:
    """Return all objects of the files; raises Fault for what is none, with its place."""
    if list(paths).count(STANDARD_INPUT) > 1:
        raise Fault("-f -: standard input can be read once")
    return [each for path in paths for each in objects_of(*_text(path))]


def _text(path: str) -> tuple[str, bytes]:
    if path == STANDARD_INPUT:
        return "standard input", sys.stdin.buffer.read()
    try:
        return path, Path(path).read_bytes()
    except OSError as error:
        raise Fault(f"{path}: {error.strerror or error}") from None


def objects_of(name: str, text: bytes) -> Iterator[Source]:
    """Yield the objects of one text; `name` is what messages call it."""
    for number, document in enumerate(_documents(name, text), start=1):
        place = f"{name}: document {number}"
        if isinstance(document, list):
            for at, item in enumerate(document):
                yield _source(f"{place}: [{at}]", item)
        elif document is not None:
            yield from _expanded(place, document)


def _documents(name: str, text: bytes) -> list[Any]:
    try:
        return _decoded(text)
    except UnicodeDecodeError as error:
        raise Fault(f"{name}: byte {error.start}: not UTF-8") from None
    except yaml.YAMLError as error:
        raise Fault(f"{name}: {_of_yaml(error)}") from None
    except RecursionError:
        raise Fault(f"{name}: lists or objects are nested too deeply") from None
    except ValueError as error:
        raise Fault(f"{name}: {str(error)[:120]}") from None


def _decoded(text: bytes) -> list[Any]:
    """All JSON is YAML, but as YAML it takes a hundred times as long to read."""
    try:
        return [msgspec.json.decode(text)]
    except msgspec.DecodeError:
        return _bounded(list(yaml.load_all(text.decode(), Loader=_Loader)))


def _bounded(documents: list[Any]) -> list[Any]:
    """Return the documents; raises ValueError where they come to more values than any text has."""
    left, todo = MOST_VALUES, list[Any]([documents])
    while todo:
        found = todo.pop()
        parts = found.values() if isinstance(found, dict) else found
        left -= len(found)
        if left < 0:
            raise ValueError(f"more than {MOST_VALUES} values; allowed: fewer aliases (*name)")
        todo += [each for each in parts if isinstance(each, dict | list)]
    return documents


def _of_yaml(error: yaml.YAMLError) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{place}{problem or str(error).splitlines()[0]}"


def _expanded(place: str, document: Any) -> Iterator[Source]:
    """Yield the items of a list, or the object itself."""
    whole = _mapping(place, document)
    kind, items = whole.get("kind"), whole.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and "items" in whole):
        yield _source(place, whole)
        return
    if not isinstance(items, list | None):
        raise Fault(f"{place}: items: {type(items).__name__}; allowed: a list of objects")
    # `kubectl get --raw` names group and kind once, for all items.
    usual = {"apiVersion": whole.get("apiVersion"), "kind": kind.removesuffix("List")}
    for at, item in enumerate(items or ()):
        where = f"{place}: items[{at}]"
        yield _source(where, {**usual, **_mapping(where, item)} if usual["kind"] else item)


def _mapping(place: str, found: Any) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise Fault(f"{place}: {type(found).__name__}; allowed: a Kubernetes object")
    return found


def _source(place: str, found: Any) -> Source:
    body = _mapping(place, found)
    version, kind = body.get("apiVersion"), body.get("kind")
    for field, value in (("apiVersion", version), ("kind", kind)):
        if not isinstance(value, str) or not value:
            said = "absent" if value is None else f"{value!r:.80}"
            raise Fault(f"{place}: {field}: {said}; allowed: a text")
    return Source(place, str(version).rpartition("/")[0], str(kind), body)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which a date is a text, as in kubectl."""


_Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if not each[0].endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
