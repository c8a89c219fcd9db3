"""Compiles the tree of a CEL expression into functions, and checks its types as CEL does.

Types of attributes are known on each device alone. What CEL's check refuses does not compile here
either: kube-scheduler would meet the error on any device.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kube.devices.cel.faults import CelError, NotReadable, OverBudget
from kube.devices.cel.functions import (
    DYN,
    FUNCTIONS,
    LIST,
    MAP,
    MEMBERS,
    OPERATORS,
    Function,
    Overload,
    Type,
    equals,
    fits,
    lookup,
    type_of,
)
from kube.devices.cel.logic import LOGIC, Doubt
from kube.devices.cel.scope import BUDGET, Budget, Code, Run, Scope
from kube.devices.cel.syntax import Call, ListOf, Literal, Name, Node, Select
from kube.devices.cel.values import Domains

DEVICE: Final[dict[str, Type]] = {
    "driver": "string",
    "allowMultipleAllocations": "bool",
    "attributes": ("map", ("map", DYN)),
    "capacity": ("map", ("map", "quantity")),
}
_ARITHMETIC: Final = ("+", "-", "*", "/", "%", "-_")
_OTHER_NAMES: Final = frozenset(
    {"bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint"}
    | {"duration", "google", "kubernetes", "net", "optional_type", "timestamp"}
    | {"base64", "cel", "cidr", "format", "ip", "jsonpatch", "lists", "math", "optional", "regex"}
    | {"sets", "strings", "url"}
)
"""Types of CEL and of Kubernetes' environment, and what the names of functions there begin with."""

_CONVERSIONS: Final = ("int", "bool")
_Types: TypeAlias = Mapping[str, Type]
_LOOPS: Final = {"all": 2, "exists": 2, "exists_one": 2, "existsOne": 2, "filter": 2, "map": 2}


def compiled(tree: Node) -> Run:
    """Return what evaluates a tree; CelError where its result cannot be true or false."""
    run, result = _compile(tree, {"device": "device"})
    if result not in ("bool", DYN):
        raise CelError("the result is neither true nor false")
    return run


def _compile(node: Node, types: _Types) -> Code:
    match node:
        case Literal(value):
            return (lambda _: value), type_of(value)
        case Name(name):
            return _variable(name, types)
        case ListOf(items):
            return _list([_compile(item, types) for item in items])
        case Select(of, field):
            return _select(of, field, types)
        case Call():
            return _call(node, types)


def _variable(name: str, types: _Types) -> Code:
    if name not in types:
        if name in _OTHER_NAMES:
            raise NotReadable(f"the name {name}")
        raise CelError(f"the name {name[:60]} is not declared")
    if types[name] == "device":
        raise NotReadable("`device` as a whole")
    return (lambda scope: _read(scope, name)), types[name]


def _list(items: list[Code]) -> Code:
    kinds = {kind for _, kind in items}
    if len(kinds) != 1:
        raise NotReadable("empty lists, and lists of several types")
    runs = [run for run, _ in items]
    return (lambda scope: [run(scope) for run in runs]), ("list", kinds.pop())


def _select(of: Node, field: str, types: _Types) -> Code:
    if isinstance(of, Name) and types.get(of.name) == "device":
        if field not in DEVICE:
            raise CelError(f"a device has no field {field[:60]}")
        return (lambda scope: scope[field]), DEVICE[field]
    run, kind = _compile(of, types)
    if not fits(MAP, kind):
        raise CelError("only maps have fields")
    return (lambda scope: _get(run(scope), field)), kind[1] if isinstance(kind, tuple) else DYN


def _get(value: Any, key: str) -> Any:
    if type_of(value) != MAP:
        raise CelError("only maps have fields")
    return lookup(value, key)


# ---- calls


def _call(node: Call, types: _Types) -> Code:
    name, arguments, target = node.name, node.arguments, node.target
    if target == Name("cel") and "cel" not in types:
        return _bind(node, types)
    if target is None and name == "has" and len(arguments) == 1:
        return _has(arguments[0], types)
    if target is not None and _LOOPS.get(name) == len(arguments):
        return _loop(node, types)
    if target is None and name in LOGIC:
        return LOGIC[name]([_compile(each, types) for each in arguments])
    every = [_compile(each, types) for each in ((target, *arguments) if target else arguments)]
    if name in ("==", "!="):
        return _equality(every, name == "==")
    table = MEMBERS if target is not None else {**FUNCTIONS, **OPERATORS}
    if name not in table:
        raise NotReadable(f"the function {name[:60]}")
    run, result = _function(name, table[name], every)
    if target is None and name in _CONVERSIONS and isinstance(arguments[0], Literal):
        run({BUDGET: Budget(1)})  # CEL converts constants when it compiles, and fails then
    return run, result


def _function(name: str, function: Function, arguments: list[Code]) -> Code:
    given = [kind for _, kind in arguments]
    suiting = [each for each in function.overloads if _suits(each, given)]
    if not suiting or not _agree(name, given):
        raise _no_overload(name, function)
    result = _result(name, {each.gives for each in suiting}, given)
    runs = [run for run, _ in arguments]
    if len(suiting) == 1 and DYN not in given:
        return _direct(suiting[0], runs), result
    return _dispatched(name, Function(tuple(suiting), function.whole), runs), result


def _result(name: str, gives: set[Type], given: Sequence[Type]) -> Type:
    """Return the type of a call, as far as CEL's check knows it.

    Of arithmetic it knows nothing where no operand has a type: there are forms that we have not.
    """
    known = [kind for kind in given if isinstance(kind, tuple)]
    if known and name == "[]":
        of: Type = known[0][1]
        return of
    if known and name == "+":
        return known[0] if len(set(known)) == 1 else LIST
    if name in _ARITHMETIC and set(given) == {DYN}:
        return DYN
    return next(iter(gives)) if len(gives) == 1 else DYN


def _suits(overload: Overload, given: Sequence[Type]) -> bool:
    takes = overload.takes
    return len(takes) == len(given) and all(map(fits, takes, given))


def _agree(name: str, given: Sequence[Type]) -> bool:
    """Say whether types agree that an overload leaves open: of an item and its list, of two lists.

    The keys of all maps are strings.
    """
    if name == "in" and isinstance(given[1], tuple):
        return fits(given[1][1] if given[1][0] == "list" else "string", given[0])
    return name != "+" or fits(given[0], given[1])


def _no_overload(name: str, function: Function) -> Exception:
    if function.whole:
        return CelError(f"no such overload of {name[:60]}")
    return NotReadable(f"this form of {name[:60]}")


def _direct(overload: Overload, runs: list[Run]) -> Run:
    def result(scope: Scope) -> Any:
        return _paid(scope, overload, [each(scope) for each in runs])

    return result


def _dispatched(name: str, function: Function, runs: list[Run]) -> Run:
    def result(scope: Scope) -> Any:
        values = [each(scope) for each in runs]
        given = [type_of(value) for value in values]
        for overload in function.overloads:
            if _suits(overload, given):
                return _paid(scope, overload, values)
        raise _no_overload(name, function)

    return result


def _paid(scope: Scope, overload: Overload, values: list[Any]) -> Any:
    """Pay for a call and what it makes: expressions could else make texts that double."""
    scope[BUDGET].spend(overload.steps)
    result = overload.run(*values)
    if type(result) in (str, list):
        scope[BUDGET].spend(len(result))
    return result


def _equality(operands: list[Code], wanted: bool) -> Code:  # noqa: FBT001 - == and != are one
    (left, kind), (right, other) = operands
    if not fits(kind, other):
        raise CelError("no such overload of ==")
    compare = equals if wanted else _differ
    return (lambda scope: compare(left(scope), right(scope))), "bool"


def _differ(first: Any, second: Any) -> bool:
    """Say whether != holds: where == has no overload for two types, it does."""
    try:
        return not equals(first, second)
    except CelError:
        return True


# ---- macros


def _has(field: Node, types: _Types) -> Code:
    if not isinstance(field, Select):
        raise CelError("has() takes a field")
    if isinstance(field.of, Name) and types.get(field.of.name) == "device":
        _select(field.of, field.field, types)
        return (lambda _: True), "bool"
    run, kind = _compile(field.of, types)
    if not fits(MAP, kind):
        raise CelError("only maps have fields")
    return (lambda scope: _has_field(run(scope), field.field)), "bool"


def _has_field(value: Any, field: str) -> bool:
    if type_of(value) != MAP:
        raise NotReadable("has() of what is no map")
    # An absent domain reads as an empty map, and so it is always there.
    return isinstance(value, Domains) or field in value


def _bind(node: Call, types: _Types) -> Code:
    if node.name != "bind" or len(node.arguments) != 3:
        raise NotReadable(f"the function cel.{node.name[:60]}")
    variable, value, body = node.arguments
    if not isinstance(variable, Name):
        raise CelError("cel.bind takes the name of a variable")
    name = variable.name
    run, kind = _compile(value, types)
    inner, result = _compile(body, {**types, name: kind})
    return (lambda scope: inner({**scope, name: _kept(run, scope)})), result


class _Failed:
    """The value of a variable that failed: the error strikes where the variable is read."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault


def _kept(run: Run, scope: Scope) -> Any:
    try:
        return run(scope)
    except OverBudget:
        raise
    except (CelError, NotReadable) as fault:
        return _Failed(fault)


def _read(scope: Scope, name: str) -> Any:
    value = scope[name]
    if type(value) is _Failed:
        raise value.fault
    return value


def _loop(node: Call, types: _Types) -> Code:
    assert node.target is not None, "macros of loops are members"
    variable, body = node.arguments
    if not isinstance(variable, Name):
        raise CelError("a loop takes the name of a variable")
    over, kind = _compile(node.target, types)
    if not (fits(LIST, kind) or fits(MAP, kind)):
        raise CelError("only lists and maps are gone through")
    item = kind[1] if isinstance(kind, tuple) and kind[0] == "list" else DYN
    item = "string" if isinstance(kind, tuple) and kind[0] == "map" else item
    inner, result = _compile(body, {**types, variable.name: item})
    if node.name != "map" and not fits("bool", result):
        raise CelError("the body of a loop is neither true nor false")
    gives: Type = {"filter": ("list", item), "map": ("list", result)}.get(node.name, "bool")
    steps = _size(body)
    if node.name not in _GO_THROUGH:
        return _made(node.name, over, inner, variable.name, steps), gives
    go, name = _GO_THROUGH[node.name], variable.name
    return (lambda scope: go(_each(over(scope), scope, name, steps), inner)), gives


def _made(macro: str, over: Run, body: Run, name: str, steps: int) -> Run:
    """Return what makes a list by `map` or `filter`."""

    def result(scope: Scope) -> list[Any]:
        items = over(scope)
        if type_of(items) == MAP:
            raise NotReadable(f"`{macro}` of a map, whose order is not fixed")
        scopes = _each(items, scope, name, steps)
        if macro == "map":
            return [body(each) for each in scopes]
        return [each[name] for each in scopes if _true(body(each))]

    return result


def _size(node: Node) -> int:
    match node:
        case Select(of, _):
            return 1 + _size(of)
        case ListOf(items):
            return 1 + sum(map(_size, items))
        case Call(_, arguments, target):
            return 1 + sum(map(_size, arguments)) + (_size(target) if target else 0)
    return 1


def _each(items: Any, scope: Scope, name: str, steps: int) -> list[Scope]:
    """Return a scope for each item, paid for."""
    if type_of(items) not in (LIST, MAP):
        raise CelError("only lists and maps are gone through")
    budget: Budget = scope[BUDGET]
    budget.spend(len(items) * (1 + steps))
    return [{**scope, name: item} for item in items]


def _exists_one(scopes: list[Scope], body: Run) -> bool:
    return sum([_true(body(scope)) for scope in scopes]) == 1


def _true(value: Any) -> bool:
    if type(value) is not bool:
        raise CelError("the body of a loop is neither true nor false")
    return value


def _any_or_all(decisive: bool) -> Callable[[list[Scope], Run], bool]:  # noqa: FBT001
    def go(scopes: list[Scope], body: Run) -> bool:
        doubt = Doubt()
        for scope in scopes:
            if doubt.settles(body, scope, decisive):
                return decisive
        doubt.tell()
        return not decisive

    return go


_GO_THROUGH: Final[dict[str, Callable[[list[Scope], Run], Any]]] = {
    "all": _any_or_all(decisive=False),
    "exists": _any_or_all(decisive=True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
}
