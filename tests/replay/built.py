"""Builds any value of a type for property tests: what the state machine is told and answers."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

MOST = 2
TEXT = st.text('abcäß"\\\n\u2028', max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=MOST) | st.dictionaries(TEXT, inner, max_size=MOST),
    max_leaves=3,
)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
    Any: JSON,
    object: TEXT,
    msgspec.Raw: st.sampled_from([b"null", b"{}", b'{"a": [1, "b"]}']).map(msgspec.Raw),
}


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, of all classes that may stand there."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of([values(each) for each in arguments])
    if origin is type:
        return st.sampled_from(_members(arguments[0]))
    if origin is not None:
        return _many(origin, arguments)
    return _plain(hint)


def _plain(kind: Any) -> st.SearchStrategy[Any]:
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if issubclass(kind, tuple):
        return st.builds(kind, *map(values, get_type_hints(kind).values()))
    return st.deferred(lambda: st.one_of([_objects(each) for each in _classes(kind)]))


def _many(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in (dict, Mapping):
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=MOST)
    if origin in (frozenset, set, Set):
        return st.frozensets(values(arguments[0]), max_size=MOST)
    if origin is tuple and arguments[-1:] != (...,):
        return st.tuples(*map(values, arguments))
    assert origin in (tuple, list, Sequence, Collection, Iterable), origin
    lists = st.lists(values(arguments[0]), max_size=MOST)
    return lists if origin is list else lists.map(tuple)


def _objects(kind: Any) -> st.SearchStrategy[Any]:
    """Objects of one class, some of their fields left at their default."""
    hints = get_type_hints(kind)
    wanted: dict[str, st.SearchStrategy[Any]] = {}
    left: dict[str, st.SearchStrategy[Any]] = {}
    for name, has_default in _fields(kind):
        (left if has_default else wanted)[name] = values(hints[name])
    return st.fixed_dictionaries(wanted, optional=left).map(lambda found: kind(**found))


def _fields(kind: Any) -> list[tuple[str, bool]]:
    if is_dataclass(kind):
        blank = (MISSING, MISSING)
        return [(f.name, (f.default, f.default_factory) != blank) for f in fields(kind) if f.init]
    return [(f.name, not f.required) for f in msgspec.structs.fields(kind)]


def _classes(kind: Any) -> list[Any]:
    return [kind, *(each for one in kind.__subclasses__() for each in _classes(one))]


def _members(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in (Union, UnionType) else _classes(hint)
