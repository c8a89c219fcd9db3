"""Parses a CEL text into a tree, by the whole grammar of CEL.

What the grammar has and the evaluator has not is NotReadable; what is no CEL at all is an error.
"""

from typing import Final

from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.lexer import Token, tokens
from kube.devices.cel.syntax import Call, ListOf, Literal, Name, Node, Select

DEPTH: Final = 40
"""So deep may parentheses, calls and operators be nested; real selectors have some five."""

_INT_LIMIT = 2**63
_LEVELS: Final = (
    ("||",),
    ("&&",),
    ("<", "<=", ">", ">=", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
_CONSTANTS: Final = {"true": True, "false": False}


def parse(text: str) -> Node:
    """Parse a text; CelError where it is no CEL."""
    parser = _Parser(tokens(text))
    tree = parser.expression()
    parser.expect("end")
    return tree


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def expect(self, kind: str) -> Token:
        token = self._tokens[self._at]
        if token.kind != kind:
            raise CelError(f"{token.value or token.kind!r} stands where {kind!r} is expected")
        self._at += 1
        return token

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH:
            raise NotReadable(f"more than {DEPTH} levels of nesting")
        found = self._level(0)
        if self._accept("?"):
            first = self._level(0)
            self.expect(":")
            found = Call("?:", (found, first, self.expression()))
        self._depth -= 1
        return found

    def _accept(self, kind: str) -> bool:
        if self._tokens[self._at].kind != kind:
            return False
        self._at += 1
        return True

    def _operator(self, level: int) -> str | None:
        token = self._tokens[self._at]
        name = "in" if token == Token("ident", "in") else token.kind
        if name not in _LEVELS[level]:
            return None
        self._at += 1
        return name

    def _level(self, level: int) -> Node:
        """Parse operators of a level; chains of && and || become one call, the rest nest."""
        if level == len(_LEVELS):
            return self._unary()
        first = self._level(level + 1)
        chain, nested = [first], 0
        while (operator := self._operator(level)) is not None:
            operand = self._level(level + 1)
            if level < 2:
                chain.append(operand)
                continue
            nested += 1
            if nested > DEPTH:
                raise NotReadable(f"more than {DEPTH} levels of nesting")
            chain = [Call(operator, (chain[0], operand))]
        return chain[0] if len(chain) == 1 else Call(_LEVELS[level][0], tuple(chain))

    def _unary(self) -> Node:
        sign = self._tokens[self._at].kind
        count = 0
        while sign in ("!", "-") and self._accept(sign):
            count += 1
        # An even number of signs is none; a number may bring one of its own.
        if sign == "-" and count % 2 and self._tokens[self._at].kind == "int":
            self._at -= 1
            count = 0
        found = self._member()
        return Call(f"{sign}_", (found,)) if count % 2 else found

    def _member(self) -> Node:
        found, links = self._primary(), 0
        while True:
            if self._accept("."):
                found = self._field(found)
            elif self._accept("["):
                if self._accept("?"):
                    raise NotReadable("optional values")
                found = Call("[]", (found, self.expression()))
                self.expect("]")
            else:
                return found
            links += 1
            if links > DEPTH:
                raise NotReadable(f"more than {DEPTH} levels of nesting")

    def _field(self, target: Node) -> Node:
        if self._accept("?"):
            raise NotReadable("optional values")
        name = str(self.expect("ident").value)
        if name in _CONSTANTS or name in ("in", "null"):
            raise CelError(f"{name!r} is no name of a field")
        if self._accept("("):
            return Call(name, self._arguments(")"), target)
        return Select(target, name)

    def _arguments(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._accept(end):
            if found:
                self.expect(",")
                if end == "]" and self._accept(end):
                    break
            if end == "]" and self._tokens[self._at].kind == "?":
                raise NotReadable("optional values")
            found.append(self.expression())
        return tuple(found)

    def _primary(self) -> Node:
        token = self._tokens[self._at]
        self._at += 1
        match token.kind:
            case "string" | "int":
                return Literal(_in_range(token.value))
            case "-":
                return Literal(_in_range(-int(self.expect("int").value)))
            case "ident":
                return self._named(str(token.value))
            case "(":
                found = self.expression()
                self.expect(")")
                return found
            case "[":
                return ListOf(self._arguments("]"))
            case "{" | ".":
                raise NotReadable("maps, messages and names of the root")
        raise CelError(f"{token.kind!r} stands where a value is expected")

    def _named(self, name: str) -> Node:
        if name in _CONSTANTS:
            return Literal(_CONSTANTS[name])
        if name == "null":
            raise NotReadable("null")
        if name in _RESERVED or name == "in":
            raise CelError(f"{name!r} is a reserved word")
        if self._accept("("):
            return Call(name, self._arguments(")"))
        if self._tokens[self._at].kind == "{":
            raise NotReadable("maps, messages and names of the root")
        return Name(name)


def _in_range(value: str | int) -> str | int:
    if isinstance(value, int) and not -_INT_LIMIT <= value < _INT_LIMIT:
        raise CelError(f"{value} does not fit 64 bits")
    return value
