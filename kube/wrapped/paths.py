"""Paths into a wrapped object, as `podSets[].path` of an AppWrapper writes them."""

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


def walk(found: Any) -> Iterator[tuple[Path, Any]]:
    """Yield all maps and lists of an object with their paths, the outer ones first."""
    waiting: list[tuple[Path, Any]] = [((), found)]
    while waiting:
        path, each = waiting.pop()
        yield path, each
        inner = each.items() if isinstance(each, dict) else enumerate(each)
        parts = [((*path, key), part) for key, part in inner if isinstance(part, dict | list)]
        waiting += reversed(parts)


def pod_templates(found: Json) -> Iterator[Path]:
    """Find what looks like a pod template anywhere in an object, in the order of its text."""
    for path, each in walk(found):
        if path and path[-1] == "template" and is_pod_template(each):
            yield path


def is_pod_template(found: Any) -> bool:
    """Say whether a map has the containers of a pod in its spec."""
    spec = found.get("spec") if isinstance(found, dict) else None
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list)
