"""Finds the parts of a device that a CEL expression can read, so that it runs once for equal parts.

Too much does no harm: the answer is then worked out more often.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from kube.devices.cel.syntax import Call, ListOf, Literal, Name, Node, Select

Path: TypeAlias = tuple[str, ...]
"""A field of `device`; of attributes also those of one domain and name."""

Reads: TypeAlias = frozenset[Path]
WHOLE: Final[Path] = ()
_Bound: TypeAlias = Mapping[str, Path]
"""Variables of cel.bind that stand for a field, or a domain of one."""


def reads(tree: Node) -> Reads:
    """Return the paths that a tree reads."""
    return frozenset(_field(path) for path in _paths(tree, {"device": WHOLE}))


def _field(path: Path) -> Path:
    return path[:3] if path[:1] == ("attributes",) and len(path) >= 3 else path[:1]


def _paths(node: Node, bound: _Bound) -> Iterator[Path]:
    path = _path(node, bound)
    if path is not None:
        yield path
        return
    match node:
        case Select(of, _):
            yield from _paths(of, bound)
        case ListOf(items):
            for item in items:
                yield from _paths(item, bound)
        case Call("bind", (Name(name), value, body), Name("cel")):
            meant = _path(value, bound)
            yield from () if meant else _paths(value, bound)
            yield from _paths(body, {**bound, name: meant} if meant else bound)
        case Call(_, arguments, target):
            for each in (*arguments, *((target,) if target else ())):
                yield from _paths(each, bound)


def _path(node: Node, bound: _Bound) -> Path | None:
    """Return the path of a field of the device, where the node is one."""
    steps: list[str] = []
    at = node
    while not isinstance(at, Name):
        step = _step(at)
        if step is None:
            return None
        at, key = step
        steps.append(key)
    start = bound.get(at.name)
    return None if start is None else (*start, *reversed(steps))


def _step(node: Node) -> tuple[Node, str] | None:
    match node:
        case Select(of, field):
            return of, field
        case Call("[]", (of, Literal(str() as key)), None):
            return of, key
    return None
