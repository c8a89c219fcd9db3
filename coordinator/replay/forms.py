"""Turns values into JSON and back, driven by their types alone: the codec of recordings.

A class (dataclass, msgspec Struct) becomes an object of its fields, by their names in Python. An
empty field is left out if it is empty by default. A default that is not empty may change in a later
release, so it is written. Where a type leaves the class open (a union, a class with subclasses),
the object names the class under "is", which no field can be called, by the first name of the class.
A new event, action or field needs no line here, a class that is renamed does; a type that cannot be
written is an error at once.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as fields_of_dataclass
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

IS = "is"
"""The key under which an object names its kind: a keyword of Python, so no field has this name."""

KINDS: Mapping[str, str] = {"WatchLost": "SightLost", "WatchRecovered": "SightRegained"}
"""The kinds of classes that were renamed, by their name of today: older recordings stay good."""

Hint: TypeAlias = Any
Change: TypeAlias = Callable[[Any], Any]

_SCALARS = (str, int, bool, Any, object)
_LISTS = (tuple, list, Sequence, Collection, Iterable)
_SETS = (frozenset, set, Set)
_MAPS = (dict, Mapping)
_ABSENT = object()


class UnwritableTypeError(TypeError):
    """There is no form for a type."""


class UnreadableValueError(ValueError):
    """JSON is not of the type that it should be."""


class Form(NamedTuple):
    """How values of one type are written as JSON, and read again; None: they are JSON already."""

    write: Change | None
    read: Change | None


class Field(NamedTuple):
    """A field of a class, and its default where that is empty."""

    name: str
    empty: Any
    write: Change | None
    read: Change | None


AS_IT_IS = Form(None, None)


class Forms:
    """The forms of all types that values are of, each worked out once.

    `shown` are changes of fields that are written otherwise than they are, by the base class that
    has the field and its name.
    """

    def __init__(self, shown: Mapping[tuple[type, str], Change] | None = None) -> None:
        self._shown = dict(shown or {})
        self._known: dict[Hint, Form] = {}
        self._fields: dict[type, list[Field]] = {}

    def of(self, hint: Hint) -> Form:
        """Return the form of a type.

        Raises:
            UnwritableTypeError: It, or one that it is made of, cannot be written.

        """
        known = self._known.get(hint)
        if known is None:
            known = self._known[hint] = self._work_out(hint)
        return known

    def _work_out(self, hint: Hint) -> Form:
        origin: Any = get_origin(hint)
        arguments = get_args(hint)
        if _is_union(hint):
            return self._of_union(arguments)
        if origin is type:
            named = {_kind_of(each): each for each in _classes(arguments)}
            return Form(_kind_of, partial(_named, named))
        if origin is not None:
            return self._of_many(hint, origin, arguments)
        return _SIMPLE[hint] if hint in _SIMPLE else self._of_plain(hint)

    def _of_many(self, hint: Hint, origin: Any, arguments: tuple[Hint, ...]) -> Form:
        if origin in _MAPS:
            return self._of_map(*arguments)
        if origin in _SETS:
            return self._of_set(arguments[0], origin)
        if origin is tuple and arguments[-1:] != (...,):
            return self._of_row(arguments, tuple)
        if origin in _LISTS:
            return self._of_list(arguments[0], list if origin is list else tuple)
        raise UnwritableTypeError(f"{hint!r} has no form")

    def _of_plain(self, kind: Hint) -> Form:
        if not isinstance(kind, type):
            raise UnwritableTypeError(f"{kind!r} has no form")
        if issubclass(kind, Enum):
            return Form(_value_of, partial(_member, kind))
        if issubclass(kind, tuple):
            return self._of_tuples(kind)
        if is_dataclass(kind) or issubclass(kind, msgspec.Struct):
            return self._of_class(kind)
        raise UnwritableTypeError(f"{kind!r} has no form")

    def _of_tuples(self, kind: Any) -> Form:
        """Return the form of a class of tuples, with names for its items or of any length."""
        if hasattr(kind, "_fields"):
            return self._of_row(get_type_hints(kind).values(), lambda values: kind(*values))
        return self._of_list(_item_of(kind), kind)

    # --- classes --------------------------------------------------------------------------

    def _of_class(self, kind: type) -> Form:
        """Return the form of a class where it is the only one that is expected there."""
        named = {_kind_of(each): each for each in _classes((kind,))}
        form = Form(partial(self._write_as, kind), partial(self._read_as, kind, named))
        self._known[kind] = form  # before its fields: one of them may be of this class
        for each in named.values():
            self._fields_of(each)
        return form

    def _fields_of(self, kind: type) -> list[Field]:
        known = self._fields.get(kind)
        if known is None:
            known = self._fields[kind] = []
            hints = get_type_hints(kind)
            known += [self._field(kind, name, hints[name], d) for name, d in _defaults(kind)]
        return known

    def _field(self, kind: type, name: str, hint: Hint, default: Any) -> Field:
        try:
            form = self.of(hint)
        except UnwritableTypeError as error:
            raise UnwritableTypeError(f"{kind.__name__}.{name}: {error}") from None
        write = self._as_shown(kind, name, form.write)
        empty = default is not _ABSENT and _is_empty(default, form.write)
        return Field(name, default if empty else _ABSENT, write, form.read)

    def _as_shown(self, kind: type, name: str, write: Change | None) -> Change | None:
        changes = (self._shown.get((base, name)) for base in kind.__mro__)
        return next((change for change in changes if change is not None), write)

    def _write_as(self, kind: type, value: Any) -> dict[str, Any]:
        found = type(value)
        if found is kind:
            return self._write_fields(kind, value)
        if not issubclass(found, kind):
            raise UnwritableTypeError(f"a {found.__name__} where a {kind.__name__} belongs")
        return {IS: _kind_of(found), **self._write_fields(found, value)}

    def _write_fields(self, kind: type, value: Any) -> dict[str, Any]:
        written = {}
        for name, empty, write, _ in self._fields_of(kind):
            each = getattr(value, name)
            if each is empty or (type(each) is type(empty) and each == empty):
                continue
            written[name] = each if write is None else write(each)
        return written

    def _read_as(self, kind: type, named: Mapping[str, type], data: Any) -> Any:
        if not isinstance(data, dict):
            raise UnreadableValueError(f"{_short(data)} where a {kind.__name__} belongs")
        found = _named(named, data[IS]) if IS in data else kind
        return self._read_fields(found, data)

    def _read_fields(self, kind: type, data: dict[str, Any]) -> Any:
        fields = self._fields_of(kind)
        read = {
            each.name: data[each.name] if each.read is None else each.read(data[each.name])
            for each in fields
            if each.name in data
        }
        left = data.keys() - read.keys() - {IS}
        if left:
            raise UnreadableValueError(f"{kind.__name__} has no {', '.join(sorted(left))}")
        try:
            return kind(**read)
        except TypeError as error:
            raise UnreadableValueError(f"{kind.__name__}: {error}") from None

    # --- unions ---------------------------------------------------------------------------

    def _of_union(self, members: Collection[Hint]) -> Form:
        """Return the form of a union: of scalars, with several classes or one type of another kind.

        JSON tells scalars from all else; classes are told apart by their names.
        """
        scalars = tuple(each for each in members if each in (str, int, bool, float, NoneType))
        others = [each for each in members if each not in scalars]
        if not others:
            return _SIMPLE[float] if float in scalars and str not in scalars else AS_IT_IS
        if len(others) == 1:
            return _or_scalar(scalars, self.of(others[0]))
        named = {_kind_of(each): each for each in _classes(others)}
        for each in named.values():
            self.of(each)
        named_form = Form(partial(self._write_named, named), partial(self._read_named, named))
        return _or_scalar(scalars, named_form) if scalars else named_form

    def _write_named(self, named: Mapping[str, type], value: Any) -> dict[str, Any]:
        kind = type(value)
        if named.get(_kind_of(kind)) is not kind:
            raise UnwritableTypeError(f"a {kind.__name__} is none of {', '.join(sorted(named))}")
        return {IS: _kind_of(kind), **self._write_fields(kind, value)}

    def _read_named(self, named: Mapping[str, type], data: Any) -> Any:
        if not isinstance(data, dict) or IS not in data:
            raise UnreadableValueError(f"{_short(data)} does not say what it {IS}")
        return self._read_fields(_named(named, data[IS]), data)

    # --- lists, sets, maps ----------------------------------------------------------------

    def _of_list(self, item: Hint, made: Change) -> Form:
        write, read = self.of(item)
        return Form(
            list if write is None else lambda values: [write(each) for each in values],
            made if read is None else lambda values: made([read(each) for each in values]),
        )

    def _of_set(self, item: Hint, kind: Hint) -> Form:
        write, read = self._of_list(item, set if kind is set else frozenset)
        assert write is not None
        return Form(lambda values: sorted(write(values)), read)

    def _of_row(self, hints: Iterable[Hint], made: Change) -> Form:
        """Return the form of a tuple of so many things, each of a type of its own."""
        forms = [self.of(each) for each in hints]

        def write(values: Any) -> list[Any]:
            return [_changed(f.write, v) for f, v in zip(forms, values, strict=True)]

        def read(data: Any) -> Any:
            return made(tuple(_changed(f.read, v) for f, v in zip(forms, data, strict=True)))

        return Form(write, read)

    def _of_map(self, key: Hint, item: Hint) -> Form:
        """Return the form of a map; JSON has only strings for keys, so others become pairs."""
        if key is not str:
            pairs = self._of_list(tuple[key, item], dict)
            assert pairs.write is not None
            write_pairs = pairs.write
            return Form(lambda found: write_pairs(found.items()), pairs.read)
        write, read = self.of(item)
        return Form(
            dict if write is None else lambda found: {k: write(v) for k, v in found.items()},
            dict if read is None else lambda found: {k: read(v) for k, v in found.items()},
        )


def _classes(hints: Iterable[Hint]) -> list[type]:
    """List classes with all that are made of them, members of unions among them."""
    found: list[type] = []
    for hint in hints:
        if _is_union(hint):
            found += _classes(get_args(hint))
        elif not isinstance(hint, type):
            raise UnwritableTypeError(f"{hint!r} beside other types")
        else:
            found += [hint, *_classes(hint.__subclasses__())]
    return _told_apart(list(dict.fromkeys(found)))


def _is_union(hint: Hint) -> bool:
    origin: Any = get_origin(hint)
    return origin in (Union, UnionType)


def _told_apart(classes: list[type]) -> list[type]:
    names = [_kind_of(each) for each in classes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UnwritableTypeError(f"several classes are called {', '.join(twice)}")
    return classes


def _defaults(kind: Hint) -> Iterable[tuple[str, Any]]:
    """List the fields that a class is made of, with their defaults."""
    if issubclass(kind, msgspec.Struct):
        for of_struct in msgspec.structs.fields(kind):
            yield of_struct.name, _default(of_struct, msgspec.NODEFAULT)
        return
    for each in fields_of_dataclass(kind):
        if each.init:
            yield each.name, _default(each, MISSING)


def _default(field: Any, missing: object) -> Any:
    if field.default is not missing:
        return field.default
    return _ABSENT if field.default_factory is missing else field.default_factory()


def _is_empty(default: Any, write: Change | None) -> bool:
    if default is None or default in (0, "", (), {}):
        return True
    return write is not None and not isinstance(default, Enum) and not write(default)


def _item_of(kind: type) -> Hint:
    """Return of what a class of tuples is a tuple."""
    for base in getattr(kind, "__orig_bases__", ()):
        arguments = get_args(base)
        if arguments and not hasattr(arguments[0], "__bound__"):
            return arguments[0]
    raise UnwritableTypeError(f"{kind!r} does not say of what it is made")


def _or_scalar(scalars: tuple[type, ...], form: Form) -> Form:
    """Leave alone what JSON tells from an object or a list."""
    write, read = form
    kinds = (*scalars, int) if float in scalars else scalars

    def written(value: Any) -> Any:
        return value if isinstance(value, kinds) else _changed(write, value)

    def found(data: Any) -> Any:
        return data if isinstance(data, kinds) else _changed(read, data)

    return Form(written, found)


def _changed(change: Change | None, value: Any) -> Any:
    return value if change is None else change(value)


def _write_float(value: Any) -> Any:
    """JSON has no infinities."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _read_float(data: Any) -> Any:
    return float(data) if isinstance(data, str) else data


def _write_raw(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def _read_raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _value_of(member: Enum) -> Any:
    return member.value


def _member(kind: type[Enum], value: Any) -> Enum:
    try:
        return kind(value)
    except ValueError as error:
        raise UnreadableValueError(str(error)) from None


def _kind_of(found: type) -> str:
    return KINDS.get(found.__name__, found.__name__)


def _named(named: Mapping[str, type], name: Any) -> type:
    found = named.get(name)
    if found is None:
        raise UnreadableValueError(f"{name!r} is none of {', '.join(sorted(named))}")
    return found


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."


_SIMPLE: Mapping[Hint, Form] = {
    **dict.fromkeys((*_SCALARS, NoneType), AS_IT_IS),
    float: Form(_write_float, _read_float),
    msgspec.Raw: Form(_write_raw, _read_raw),
}
