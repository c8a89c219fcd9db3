"""Splits a CEL text into tokens."""

import re
from typing import NamedTuple

from kube.devices.cel.faults import CelError, NotReadable


class Token(NamedTuple):
    """A token: `kind` is ident, int, string, end, or the operator itself."""

    kind: str
    value: str | int = ""


_TOKEN = re.compile(
    r"""(?P<blank>[\t\n\f\r ]+|//[^\n]*)
    |(?P<prefixed>(?:[rR][bB]|[bB][rR]|[bB])(?=["']))
    |(?P<string>[rR]?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''))
    |(?P<raw>[rR](?:"[^"\n\r]*"|'[^'\n\r]*'))
    |(?P<quoted>"(?:[^"\\\n\r]|\\[^\n\r])*"|'(?:[^'\\\n\r]|\\[^\n\r])*')
    |(?P<real>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<hex>0[xX][0-9a-fA-F]+)
    |(?P<int>[0-9]+)
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    **{mark: mark for mark in "\\?\"'`"},
}


def tokens(text: str) -> list[Token]:
    """Split a text, with a token `end` behind the last."""
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _no_token(text[position])
        kind = match.lastgroup or ""
        if kind != "blank":
            found.append(_token(kind, match[0], text[match.end() :]))
        position = match.end()
    return [*found, Token("end")]


def _no_token(mark: str) -> Exception:
    if mark == "`":
        return NotReadable("names in backticks")
    return CelError(f"{mark!r} is no token")


def _token(kind: str, text: str, rest: str) -> Token:
    match kind:
        case "int" | "hex":
            if rest[:1] in ("u", "U"):
                raise NotReadable("unsigned numbers")
            return Token("int", int(text, 16 if kind == "hex" else 10))
        case "raw":
            return Token("string", text[2:-1])
        case "quoted":
            return Token("string", _unescaped(text[1:-1]))
        case "ident":
            return Token("ident", text)
        case "op":
            return Token(text)
        case "real":
            raise NotReadable("numbers with a fraction")
        case "prefixed":
            raise NotReadable("bytes")
    raise NotReadable("strings in three quotes")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    simple = match[5]
    if simple is not None:
        if simple not in _SIMPLE:
            raise CelError(f"the escape \\{simple} is unknown")
        return _SIMPLE[simple]
    if match[4]:
        return chr(int(match[4], 8))
    code = int(match[1] or match[2] or match[3], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise CelError("an escape names no character")
    return chr(code)
