"""Parses paths into a wrapped object, as `podSets[].path` of an AppWrapper writes them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]
"""Keys and indexes from the wrapped object on; empty for the object itself."""

_ROOT = "template"  # CodeFlare writes paths from the component on
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]{1,6})\]")


def parse(text: str) -> Path | None:
    """Read `template.spec.jobs[0].template`; None where it is no path."""
    if not text.startswith(_ROOT):
        return None
    steps: list[str | int] = []
    at = len(_ROOT)
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        steps.append(step[1] if step[1] is not None else int(step[2]))
        at = step.end()
    return tuple(steps)


def written(path: Path) -> str:
    """Write a path as `parse` reads it."""
    return _ROOT + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path)


def at(found: Any, path: Path) -> Any:
    """Return what stands at a path; None where it leads nowhere."""
    for step in path:
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and step < len(found) else None
        else:
            found = found.get(step) if isinstance(found, Mapping) else None
    return found


def changed(found: Any, path: Path, value: Any) -> Any:
    """Return a copy with another value at a path that exists; what is beside it is shared."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    copy = found.copy()
    copy[step] = changed(found[step], rest, value)
    return copy


class Place:
    """Where a map or list stands in an object; its path is worked out where it is asked for."""

    __slots__ = ("key", "outer")

    def __init__(self, outer: "Place | None", key: str | int) -> None:
        self.outer, self.key = outer, key

    @property
    def path(self) -> Path:
        """Give the path to it."""
        steps: list[str | int] = []
        at: Place | None = self
        while at is not None and at.outer is not None:
            steps.append(at.key)
            at = at.outer
        return tuple(reversed(steps))


def walk(found: Any) -> Iterator[tuple[Place, Any]]:
    """Yield all maps and lists of an object with their places, the outer ones first."""
    waiting: list[tuple[Place, Any]] = [(Place(None, ""), found)]
    while waiting:
        place, each = waiting.pop()
        yield place, each
        inner = each.items() if isinstance(each, dict) else enumerate(each)
        parts = [(Place(place, key), part) for key, part in inner if isinstance(part, dict | list)]
        waiting += reversed(parts)


def pod_templates(found: Json) -> Iterator[Path]:
    """Find what looks like a pod template anywhere in an object, in the order of its text."""
    for place, each in walk(found):
        if place.key == "template" and is_pod_template(each):
            yield place.path


def is_pod_template(found: Any) -> bool:
    """Say whether a map has the containers of a pod in its spec."""
    spec = found.get("spec") if isinstance(found, dict) else None
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list)
