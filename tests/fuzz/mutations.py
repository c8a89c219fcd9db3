"""Changes recorded bodies as a broken or hostile caller might: values, structure, then bytes.

A JSON tree is edited at any of its places, and what no encoder writes (numbers beyond all bounds,
lone surrogates, nesting without end, keys that come twice) is put in as text. Some bodies are cut
and spliced as bytes afterwards. All choices are Hypothesis's, so that a failure shrinks.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Json = Any
Place = tuple[str | int, ...]

_MARK = "\x7ftext-{}\x7f"
_MOST_EDITS = 4
_MOST_CUTS = 3
_LONGEST = 4 << 20
"""Bytes that one edit may come to: beyond what a server reads, a body shows nothing more."""

TEXTS = (
    "null", "true", "0", "-1", '""', "[]", "{}", "[null]", '{"":null}', "1.5", "1e999", "-0.0",
    "NaN", "Infinity", "9223372036854775808", "-9223372036854775809", "9" * 400, "9" * 5_000,
    '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\\u2028"', '"\xff"', '"' + "x" * 70_000 + '"',
    '{"a":1,"a":2}', '{"name":"x","name":["y"]}', "[" * 3_000,
    "[" * 200 + "]" * 200, '{"a":' * 200 + "1" + "}" * 200,
    "[" * 20_000 + "]" * 20_000, '{"a":' * 20_000 + "1" + "}" * 20_000,
    '"1e99999999"', '"1e-99999999"', '"' + "9" * 5_000 + '"', '"0.' + "0" * 5_000 + '1"',
    '"-1"', '"+1"', '"1Ei"', '"9999999999Ei"', '"nan"', '"inf"', '" 1"', '"1_0"', '"\u0661"',
    '"true"', '"False"', '"../../../etc"', '"a/b"', '"%2e%2e"', '"kube-system"', '"*"',
    '"a' + "b" * 300 + '"', '"a\\nb"',
)  # fmt: skip
"""JSON, and what only looks like it, to stand in the place of a value."""

TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u", b"\\ud800", b"\x00", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"null", b"1e5", b"-", b" " * 2_000, b"\r\n\r\n",
    b'"NodeNames":null,', b'"Pod":{},', b'"uid":"x",', b'},{"metadata":{"name":"',
)  # fmt: skip
"""Bytes that mean something to one of the parsers."""


@dataclass(frozen=True)
class Recorded:
    """A body as it was sent, its tree, and all places in it."""

    body: bytes
    tree: Json
    places: tuple[Place, ...]


def recorded(body: bytes) -> Recorded:
    """Read a body that the mutations start from."""
    tree = json.loads(body)
    return Recorded(body, tree, tuple(_places(tree, ())))


def _places(tree: Json, at: Place) -> Iterator[Place]:
    children = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, child in children:
        yield (*at, key)
        if isinstance(child, dict | list):
            yield from _places(child, (*at, key))


HEADERS = (
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\r\n ", b"\x00", b"\xff", b":", b" ", b"\t", b"HTTP/0.9",
    b"HTTP/2.0", b"\r\nContent-Length: -1", b"\r\nContent-Length: 0", b"\r\nContent-Length: 1e3",
    b"\r\nContent-Length: 99999999999999999999", b"\r\nContent-Length: +5",
    b"\r\nTransfer-Encoding: chunked", b"\r\nTransfer-Encoding: gzip, chunked",
    b"\r\nTransfer-Encoding: x", b"\r\nExpect: 100-continue", b"\r\nExpect: nothing",
    b"\r\nUpgrade: h2c\r\nConnection: Upgrade", b"\r\nContent-Encoding: gzip",
    b"\r\nContent-Type: text/plain", b"\r\nContent-Type: ;", b"\r\nHost:",
    b"\r\nX: " + b"x" * 9_000, b"\r\nX: y" * 200, b"/" * 9_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://[::1/ HTTP/1.1\r\n", b"%", b"%zz", b"?", b"#", b"..", b"http://x:99999/", b"*",
)  # fmt: skip
"""What the head of a request may be spoiled with."""


@st.composite
def spoiled(draw: st.DrawFn, requests: Sequence[bytes]) -> bytes:
    """Give one of the requests, with its head changed at some places."""
    request = draw(st.sampled_from(requests))
    for _ in range(draw(st.integers(1, _MOST_EDITS))):
        at = draw(st.integers(0, request.find(b"\r\n\r\n") + 4))
        end = min(len(request), at + draw(st.integers(0, 24)))
        request = request[:at] + draw(st.sampled_from((*HEADERS, b""))) + request[end:]
    return request


@st.composite
def mutated(draw: st.DrawFn, originals: Sequence[Recorded]) -> bytes:
    """Give one of the bodies, changed."""
    original = draw(st.sampled_from(originals))
    body = original.body
    if draw(st.integers(0, 9)):  # mostly: a cut body rarely gets further than the JSON parser
        body = _edited(draw, original)
    cuts = 0 if draw(st.integers(0, 2)) else draw(st.integers(1, _MOST_CUTS))
    for _ in range(cuts):
        body = _cut(draw, body)
    return body


def _edited(draw: st.DrawFn, original: Recorded) -> bytes:
    tree = copy.deepcopy(original.tree)
    texts: list[str] = []
    for _ in range(draw(st.integers(1, _MOST_EDITS))):
        _edit(draw, tree, draw(st.sampled_from(original.places)), texts)
    encoded = json.dumps(tree, separators=(",", ":"), ensure_ascii=draw(st.booleans()))
    for number, text in enumerate(texts):
        encoded = encoded.replace(json.dumps(_MARK.format(number)), text, _LONGEST // len(text))
    return encoded.encode("utf-8", "surrogatepass")


def _edit(draw: st.DrawFn, tree: Json, place: Place, texts: list[str]) -> None:
    parent = _at(tree, place[:-1])
    if not _holds(parent, place[-1]):
        return  # an edit before took it away
    key: Any = place[-1]
    how = draw(st.sampled_from(("text", "text", "drop", "rename", "double", "wrap", "swap")))
    if how == "text":
        texts.append(draw(st.sampled_from(TEXTS)))
        parent[key] = _MARK.format(len(texts) - 1)
    elif how == "drop":
        del parent[key]
    elif how == "rename" and isinstance(parent, dict):
        parent[draw(st.sampled_from((key.upper(), key + " ", "", "metadata")))] = parent.pop(key)
    elif how == "double" and isinstance(parent, list):
        most = _LONGEST // len(json.dumps(parent[key]))
        times = min(most, draw(st.sampled_from((1, 300))))
        parent.extend(copy.deepcopy(parent[key]) for _ in range(times))
    elif how == "wrap":
        parent[key] = draw(
            st.sampled_from(([parent[key]], {"": parent[key]}, {"items": [parent[key]]}))
        )
    else:
        parent[key] = copy.deepcopy(draw(st.sampled_from(list(_children(tree)))))


def _at(tree: Json, place: Place) -> Json:
    for key in place:
        if not _holds(tree, key):
            return None
        tree = tree[key]
    return tree


def _holds(tree: Json, key: str | int) -> bool:
    if isinstance(tree, dict):
        return key in tree
    return isinstance(tree, list) and isinstance(key, int) and key < len(tree)


def _children(tree: Json) -> Iterator[Json]:
    return iter(tree.values() if isinstance(tree, dict) else tree)


def _cut(draw: st.DrawFn, body: bytes) -> bytes:
    at = draw(st.integers(0, len(body)))
    end = min(len(body), at + draw(st.integers(0, 64)))
    how = draw(st.sampled_from(("insert", "drop", "flip", "repeat", "end")))
    if how == "insert":
        return body[:at] + draw(st.sampled_from(TOKENS)) + body[at:]
    if how == "drop":
        return body[:at] + body[end:]
    if how == "flip":
        return (
            body[:at]
            + bytes(each ^ draw(st.integers(1, 255)) for each in body[at : at + 2])
            + body[at + 2 :]
        )
    if how == "repeat":
        return body[:end] + body[at:]
    return body[:at]
