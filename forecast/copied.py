"""Copies a state machine with all its state, so that several forecasts can go on from one point.

The copy shares what cannot change, and one object stays one object in it. A part of an unknown type
is an error: two forecasts that share it could change each other.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from itertools import count
from re import Pattern
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from kube.devices.selectors import CelSelectors

T = TypeVar("T")

_WHOLE: Final = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    type,
    ModuleType,
    Enum,
    Pattern,
    range,
)
"""What has no parts that change."""
VALUES: Final = ("scheduling.model.", "scheduling.devices.", "kube.", "appwrapper.")
"""The modules of objects of the API server and of values of the core: what is frozen of them never
changes, nor does anything in it but answers that it remembers."""
OF_PYTHON: Final = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: of a class that is written in Python."""


def copied(value: T) -> T:
    """Return a copy that shares nothing with a value that either of them may change.

    Raises TypeError for what cannot be copied.
    """
    found: T = _Copying().of(value)
    return found


class _Copying:
    """One copy: what was copied by now, by identity; all of it is alive as long as the value is."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return the copy of a part; itself where it cannot change."""
        if type(value) in _SHARED:
            return value
        made = self._made.get(id(value))
        if made is None:
            how = _HOW.get(type(value)) or _how(type(value))
            made = self._made[id(value)] = how(self, value)
        return made

    def note(self, value: Any, made: T) -> T:
        """Note a copy before its parts are copied, which may lead back to it."""
        self._made[id(value)] = made
        return made

    def all_of(self, parts: Iterable[Any]) -> list[Any]:
        """Return the copies of parts."""
        of = self.of
        return [part if type(part) in _SHARED else of(part) for part in parts]


Copy = Callable[[_Copying, Any], Any]


def _itself(_: _Copying, value: Any) -> Any:
    return value


# ---- containers


def _mapping(copying: _Copying, value: dict[Any, Any]) -> Any:
    made: Any = copying.note(value, type(value).__new__(type(value)))
    if isinstance(value, defaultdict):
        made.default_factory = copying.of(value.default_factory)
    if not value:
        return made
    of = copying.of
    for key, part in value.items():
        mine = key if type(key) in _SHARED else of(key)
        made[mine] = part if type(part) in _SHARED else of(part)
    return made


def _proxy(copying: _Copying, value: Any) -> Any:
    """Copy a mapping that is read alone; whoever made it changes it no more."""
    parts = [(copying.of(key), copying.of(part)) for key, part in value.items()]
    same = all(new is value.get(key) for key, new in parts)
    return value if same else MappingProxyType(dict(parts))


def _list(copying: _Copying, value: list[Any]) -> list[Any]:
    made: list[Any] = copying.note(value, type(value)())
    made += copying.all_of(value)
    return made


def _set(copying: _Copying, value: set[Any]) -> set[Any]:
    return type(value)(copying.all_of(value))


def _deque(copying: _Copying, value: deque[Any]) -> deque[Any]:
    made = copying.note(value, deque[Any](maxlen=value.maxlen))
    made.extend(copying.all_of(value))
    return made


def _tuple(copying: _Copying, value: tuple[Any, ...]) -> tuple[Any, ...]:
    if _SHARED.issuperset(map(type, value)):
        return value
    parts = copying.all_of(value)
    same = all(new is old for new, old in zip(parts, value, strict=True))
    return value if same else tuple.__new__(type(value), parts)


def _frozen_set(copying: _Copying, value: frozenset[Any]) -> frozenset[Any]:
    parts = [(each, copying.of(each)) for each in value]
    return value if all(new is old for old, new in parts) else frozenset(new for _, new in parts)


def _array(copying: _Copying, value: Any) -> Any:
    """Copy an array; what is a part of another one is the same part of its copy."""
    whole = value.base
    if not isinstance(whole, np.ndarray):
        return value.copy()
    offset = value.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    made = copying.of(whole)
    return np.ndarray(value.shape, value.dtype, made.data, offset, value.strides)


# ---- functions


def _function(copying: _Copying, value: FunctionType) -> FunctionType:
    """Copy a function with what it encloses."""
    cells = value.__closure__ or ()
    parts = copying.all_of(each.cell_contents for each in cells)
    if all(new is each.cell_contents for new, each in zip(parts, cells, strict=True)):
        return value
    closure = tuple(map(CellType, parts))
    made = FunctionType(value.__code__, value.__globals__, closure=closure)
    made.__defaults__, made.__kwdefaults__ = value.__defaults__, value.__kwdefaults__
    return made


def _method(copying: _Copying, value: MethodType) -> MethodType:
    return MethodType(value.__func__, copying.of(value.__self__))


def _builtin(copying: _Copying, value: BuiltinFunctionType) -> Any:
    owner = copying.of(value.__self__)
    return value if owner is value.__self__ else getattr(owner, value.__name__)


def _partial(copying: _Copying, value: partial[Any]) -> partial[Any]:
    args, named = copying.all_of(value.args), copying.of(value.keywords)
    return partial(copying.of(value.func), *args, **named)


def _count(_: _Copying, value: Any) -> Any:
    return count(*value.__reduce__()[1])


# ---- objects


def _object(copying: _Copying, value: Any) -> Any:
    """Copy an object that may change."""
    made = copying.note(value, object.__new__(type(value)))
    for name, part in _fields(value):
        object.__setattr__(made, name, part if type(part) in _SHARED else copying.of(part))
    return made


def _frozen(copying: _Copying, value: Any) -> Any:
    """Copy a frozen object: it is shared unless a part of it changes."""
    made = copying.note(value, object.__new__(type(value)))
    differs = False
    for name, part in _fields(value):
        new = part if type(part) in _SHARED else copying.of(part)
        differs |= new is not part
        object.__setattr__(made, name, new)
    return made if differs else copying.note(value, value)


def _fields(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the fields of an object that are set, in slots or not."""
    state: Any = object.__getstate__(value)
    if type(state) is not tuple:
        return (state or {}).items()
    own, slots = state
    return {**own, **slots}.items() if own else slots.items()


_HOW: Final[dict[type, Copy]] = {}
"""By type; filled as values are met."""

_SHARED: Final[set[type]] = set()
"""The types of which no value changes, as far as they were met."""

_KINDS: Final[tuple[tuple[Any, Any], ...]] = (
    (_WHOLE, _itself),
    (CelSelectors, _itself),  # it remembers answers alone
    (dict, _mapping),
    (MappingProxyType, _proxy),
    (list, _list),
    (set, _set),
    (deque, _deque),
    (tuple, _tuple),
    (frozenset, _frozen_set),
    (np.ndarray, _array),
    (np.generic, _itself),
    (FunctionType, _function),
    (MethodType, _method),
    (BuiltinFunctionType, _builtin),
    (partial, _partial),
    (count, _count),
)


def _how(kind: type) -> Copy:
    is_value = _is_frozen(kind) and kind.__module__.startswith(VALUES)
    known = (how for base, how in _KINDS if issubclass(kind, base))
    found = _itself if is_value else next(known, None) or _of_class(kind)
    _HOW[kind] = found
    if found is _itself:
        _SHARED.add(kind)
    return found


def _of_class(kind: type) -> Copy:
    if not kind.__flags__ & OF_PYTHON:
        raise TypeError(f"it is not known how to copy {kind.__module__}.{kind.__qualname__}")
    return _frozen if _is_frozen(kind) else _object


def _is_frozen(kind: Any) -> bool:
    if issubclass(kind, msgspec.Struct):
        return bool(kind.__struct_config__.frozen)
    settings = getattr(kind, "__dataclass_params__", None)
    return issubclass(kind, tuple) or (settings is not None and settings.frozen)
