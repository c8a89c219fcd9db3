"""The functions and operators that the evaluator has, by the types they take.

A function that has forms which are not here is marked: where none of ours suits it is NotReadable,
and never an error.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.patterns import matches
from kube.devices.cel.values import Domains, Quantity, Version, quantity, version

Type: TypeAlias = str | tuple[Any, ...]
"""bool, int, string, quantity, version, device, dyn; or ("list", OF), ("map", OF) by strings."""

DYN: Final = "dyn"
LIST: Final = ("list", DYN)
MAP: Final = ("map", DYN)
_INT_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function; a call takes so many steps, and one for each thing it makes."""

    takes: tuple[Type, ...]
    gives: Type
    run: Callable[..., Any]
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its forms; `whole` says that CEL has no others."""

    overloads: tuple[Overload, ...]
    whole: bool = True


def fits(wanted: Type, given: Type) -> bool:
    """Say whether a value of one type may be taken for another, as far as types are known."""
    if DYN in (wanted, given) or wanted == given:
        return True
    both = isinstance(wanted, tuple) and isinstance(given, tuple)
    return both and wanted[0] == given[0] and fits(wanted[1], given[1])


def type_of(value: Any) -> Type:
    """Return the type of a value, as far as overloads tell types apart."""
    return _TYPES.get(type(value), DYN)


_TYPES: Final[dict[type, Type]] = {
    bool: "bool",
    int: "int",
    str: "string",
    Quantity: "quantity",
    Version: "version",
    list: LIST,
    tuple: LIST,
    dict: MAP,
    Domains: MAP,
}


def equals(first: Any, second: Any) -> bool:
    """Compare as CEL does: values of two types differ; but versions and quantities fail then."""
    kind, other = type_of(first), type_of(second)
    if LIST in (kind, other) and kind == other:
        return _lists_equal(first, second)
    if MAP in (kind, other) and kind == other:
        raise NotReadable("maps that are compared")
    if kind in ("quantity", "version") and kind != other:
        raise CelError("no such overload")
    return kind == other and bool(first == second)


def _lists_equal(first: Sequence[Any], second: Sequence[Any]) -> bool:
    if not all(type_of(e) in ("bool", "int", "string") for e in (*first, *second)):
        raise NotReadable("lists of other than bool, int and string that are compared")
    return [(type(e), e) for e in first] == [(type(e), e) for e in second]


def _in_list(value: Any, items: Sequence[Any]) -> bool:
    kinds = {type_of(each) for each in (value, *items)}
    if not kinds <= {"bool", "int", "string"}:
        raise NotReadable("`in` for other than bool, int and string")
    return any(type(e) is type(value) and e == value for e in items)


def _in_map(value: Any, mapping: dict[str, Any]) -> bool:
    return isinstance(value, str) and value in mapping


def _includes(target: Any, value: Any) -> bool:
    items = target if type_of(target) == LIST else (target,)
    if type_of(target) == MAP or type_of(value) in (LIST, MAP):
        raise NotReadable("`includes` of lists or maps")
    return any(type_of(e) == type_of(value) and e == value for e in items)


def _checked(result: int) -> int:
    if not -_INT_LIMIT <= result < _INT_LIMIT:
        raise CelError("integer overflow")
    return result


def _divide(first: int, second: int) -> int:
    if second == 0:
        raise CelError("division by zero")
    towards_zero = abs(first) // abs(second)
    return _checked(towards_zero if (first < 0) == (second < 0) else -towards_zero)


def _modulo(first: int, second: int) -> int:
    if second == 0:
        raise CelError("modulus by zero")
    return first - second * _divide(first, second)


def _index(items: Sequence[Any], at: int) -> Any:
    if not 0 <= at < len(items):
        raise CelError("index out of bounds")
    return items[at]


def lookup(mapping: dict[str, Any], key: Any) -> Any:
    """Return what a map has for a key."""
    if isinstance(key, str):
        if key in mapping:
            return mapping[key]
        if isinstance(mapping, Domains):
            return {}
    raise CelError("no such key")


def _compared(first: Any, second: Any) -> int:
    return int(first > second) - int(first < second)


# ---- texts


def _ascii(text: str) -> str:
    if not text.isascii():
        raise NotReadable("characters beyond ASCII in this function")
    return text


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if not separator or limit == 0:
        raise NotReadable("`split` by nothing, or into none")
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        raise CelError("index out of range")
    return text[start:last]


def _found(text: str, part: str) -> str:
    if not part:
        raise NotReadable("the place of an empty string")
    return text


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
        raise CelError("a string is no integer")
    return _checked(int(text))


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise NotReadable("bool() of other than true and false")
    return text == "true"


def _reads(read: Callable[..., Any], *arguments: Any) -> bool:
    try:
        read(*arguments)
    except CelError:
        return False
    return True


def _as_integer(amount: Quantity) -> int:
    if amount.integer is None:
        raise CelError("cannot convert value to integer")
    return amount.integer


# ---- by name


def _forms(*overloads: Overload) -> Function:
    return Function(overloads)


def _some(*overloads: Overload) -> Function:
    return Function(overloads, whole=False)


def _order(run: Callable[[Any, Any], bool]) -> Function:
    kinds = ("int", "string", "bool")
    return _forms(*(Overload((kind, kind), "bool", run) for kind in kinds))


def _arithmetic(run: Callable[[int, int], int]) -> Overload:
    return Overload(("int", "int"), "int", run)


def _kubernetes(gives: Type, run: Callable[[Any, Any], Any]) -> Function:
    return _forms(*(Overload((kind, kind), gives, run) for kind in ("quantity", "version")))


MATCHING: Final = 100
"""Steps of a regular expression, which takes some 50 times as long as another function."""

_TEXT: Final[Type] = "string"
_TEXTS: Final = (_TEXT, _TEXT)

OPERATORS: Final[dict[str, Function]] = {
    "!_": _forms(Overload(("bool",), "bool", lambda a: not a)),
    "-_": _some(Overload(("int",), "int", lambda a: _checked(-a))),
    "+": _some(
        _arithmetic(lambda a, b: _checked(a + b)),
        Overload(_TEXTS, _TEXT, lambda a, b: a + b),
        Overload((LIST, LIST), LIST, lambda a, b: [*a, *b]),
    ),
    "-": _some(_arithmetic(lambda a, b: _checked(a - b))),
    "*": _some(_arithmetic(lambda a, b: _checked(a * b))),
    "/": _some(_arithmetic(_divide)),
    "%": _some(_arithmetic(_modulo)),
    "<": _order(lambda a, b: a < b),
    "<=": _order(lambda a, b: a <= b),
    ">": _order(lambda a, b: a > b),
    ">=": _order(lambda a, b: a >= b),
    "in": _forms(Overload((DYN, LIST), "bool", _in_list), Overload((DYN, MAP), "bool", _in_map)),
    "[]": _some(Overload((LIST, "int"), DYN, _index), Overload((MAP, _TEXT), DYN, lookup)),
}

FUNCTIONS: Final[dict[str, Function]] = {
    "size": _some(*(Overload((kind,), "int", len) for kind in (_TEXT, LIST, MAP))),
    "quantity": _forms(Overload((_TEXT,), "quantity", quantity)),
    "isQuantity": _forms(Overload((_TEXT,), "bool", lambda a: _reads(quantity, a))),
    "semver": _forms(
        Overload((_TEXT,), "version", version), Overload((_TEXT, "bool"), "version", version)
    ),
    "isSemver": _forms(
        Overload((_TEXT,), "bool", lambda a: _reads(version, a)),
        Overload((_TEXT, "bool"), "bool", lambda a, b: _reads(version, a, b)),
    ),
    "int": _some(Overload((_TEXT,), "int", _integer), Overload(("int",), "int", lambda a: a)),
    "string": _some(
        Overload((_TEXT,), _TEXT, lambda a: a),
        Overload(("int",), _TEXT, str),
        Overload(("bool",), _TEXT, lambda a: "true" if a else "false"),
    ),
    "bool": _some(Overload((_TEXT,), "bool", _boolean), Overload(("bool",), "bool", lambda a: a)),
    "matches": _forms(Overload(_TEXTS, "bool", matches, MATCHING)),
    "dyn": _forms(Overload((DYN,), DYN, lambda a: a)),
}

MEMBERS: Final[dict[str, Function]] = {
    "size": FUNCTIONS["size"],
    "isGreaterThan": _kubernetes("bool", lambda a, b: a > b),
    "isLessThan": _kubernetes("bool", lambda a, b: a < b),
    "compareTo": _kubernetes("int", _compared),
    "isInteger": _forms(Overload(("quantity",), "bool", lambda a: a.integer is not None)),
    "asInteger": _forms(Overload(("quantity",), "int", _as_integer)),
    "major": _forms(Overload(("version",), "int", lambda a: a.numbers[0])),
    "minor": _forms(Overload(("version",), "int", lambda a: a.numbers[1])),
    "patch": _forms(Overload(("version",), "int", lambda a: a.numbers[2])),
    "includes": _forms(Overload((DYN, DYN), "bool", _includes)),
    "contains": _forms(Overload(_TEXTS, "bool", lambda a, b: b in a)),
    "matches": _forms(Overload(_TEXTS, "bool", matches, MATCHING)),
    "startsWith": _forms(Overload(_TEXTS, "bool", lambda a, b: a.startswith(b))),
    "endsWith": _forms(Overload(_TEXTS, "bool", lambda a, b: a.endswith(b))),
    "lowerAscii": _some(Overload((_TEXT,), _TEXT, lambda a: _ascii(a).lower())),
    "upperAscii": _some(Overload((_TEXT,), _TEXT, lambda a: _ascii(a).upper())),
    "trim": _some(Overload((_TEXT,), _TEXT, lambda a: _ascii(a).strip(" \t\n\v\f\r"))),
    "split": _some(
        Overload(_TEXTS, ("list", _TEXT), _split),
        Overload((*_TEXTS, "int"), ("list", _TEXT), _split),
    ),
    "replace": _some(Overload((*_TEXTS, _TEXT), _TEXT, lambda a, b, c: _found(a, b).replace(b, c))),
    "indexOf": _some(Overload(_TEXTS, "int", lambda a, b: _found(a, b).find(b))),
    "lastIndexOf": _some(Overload(_TEXTS, "int", lambda a, b: _found(a, b).rfind(b))),
    "substring": _some(
        Overload((_TEXT, "int"), _TEXT, _substring),
        Overload((_TEXT, "int", "int"), _TEXT, _substring),
    ),
}
