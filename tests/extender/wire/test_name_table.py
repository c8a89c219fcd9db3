"""A long list of names is read, looked up and cut as if each name were handled by itself."""

from __future__ import annotations

import json
from unittest import mock

import msgspec
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.filter import Filtered, filter_nodes
from extender.wire import name_table, node_lists
from extender.wire.name_table import Names, NameTable, names_in
from extender.wire.node_lists import NodeList, read_names
from scheduling.model.amounts import Positions
from tests.extender.worlds import as_watched_pod, gang, ledger, node, pod

LETTERS = 'ab-."\\,[] \x00\x1f\x7fé'
ANY_NAMES = st.lists(st.text(LETTERS, max_size=20), min_size=1, max_size=12)
PLAIN_NAMES = st.lists(st.text("ab-", max_size=20), min_size=1, max_size=12)


def read(names: list[str]) -> Names:
    found = names_in(orjson.dumps(names))
    assert found is not None
    return found


def spelled(found: Names) -> list[str]:
    return [
        found.text[start:end].decode() for start, end in zip(found.starts, found.ends, strict=True)
    ]


def test_a_list_of_nodes_needs_no_decoder() -> None:
    assert spelled(read(["gpu-node-1.example", "b"])) == ["gpu-node-1.example", "b"]


@pytest.mark.parametrize(
    "text", [b'["a", "b"]', b'["a",1"b"]', b'["a"1,"b"]', b'["a\\\\b"]', b'["]']
)
def test_what_is_not_as_go_writes_it_is_left_to_the_decoder(text: bytes) -> None:
    assert names_in(text) is None


@given(ANY_NAMES, st.booleans())
def test_what_is_read_is_what_a_decoder_reads(names: list[str], compact: bool) -> None:
    text = orjson.dumps(names) if compact else json.dumps(names).encode()
    found = names_in(text)
    assert found is None or spelled(found) == names


@given(st.lists(st.sampled_from([b'"', b",", b"[", b"]", b"a", b" ", b"\\", b"\x00", b"1"])))
def test_what_is_no_list_of_names_is_left_to_the_decoder(parts: list[bytes]) -> None:
    for text in (b"".join(parts), b'["' + b"".join(parts) + b'"]'):
        found = names_in(text)
        if found is not None:
            assert spelled(found) == msgspec.json.decode(text, type=list[str])


def one_slot(words: name_table.Words, _: int) -> Positions:
    """As if all names had one hash."""
    return np.zeros(len(words), dtype=np.intp)


@pytest.mark.parametrize("crowded", [False, True])
@given(known=st.sets(st.text("ab-é", max_size=20), max_size=12), asked=PLAIN_NAMES)
def test_names_are_found_where_a_dictionary_finds_them(
    crowded: bool, known: set[str], asked: list[str]
) -> None:
    index = {name: at for at, name in enumerate(sorted(known))}
    asked = [*asked, *(name for name in index if name.isascii())]
    with mock.patch.object(name_table, "_hashed", one_slot if crowded else name_table._hashed):
        found = NameTable.of(sorted(known)).find(read(asked))
    assert found.tolist() == [index.get(name, -1) for name in asked]


def test_a_name_is_not_taken_for_one_that_it_begins_with() -> None:
    known = ["12345678", "node-12\x00"]
    asked = ["1234567", "12345678", "123456789", "node-12"]
    assert NameTable.of(known).find(read(asked)).tolist() == [-1, 0, -1, -1]


@given(PLAIN_NAMES, st.data())
def test_some_of_a_list_are_a_list_again(names: list[str], data: st.DataObject) -> None:
    where = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    where[data.draw(st.integers(0, len(names) - 1))] = True
    some = read(names).picked(np.array(where))
    kept = [name for name, keep in zip(names, where, strict=True) if keep]
    assert (some.text, spelled(some)) == (orjson.dumps(kept), kept)


# ---- in answers


NODES = [f"node-{number}" for number in range(9)]


def listed(names: list[str], long: int) -> NodeList:
    with mock.patch.object(node_lists, "LONG", long):
        return read_names(orjson.dumps(names))


def filtered(nodes: NodeList) -> Filtered:
    """Of nine nodes a third is reserved and a third is full."""
    slots = dict.fromkeys(NODES[::3], 1)
    full = [pod(f"p-{name}", gpu=8, on=name) for name in NODES[1::3]]
    known = ledger(*map(node, NODES), gang(slots=slots), *full)
    return filter_nodes(as_watched_pod(pod("new", gpu=1)), nodes, known.snapshot())


@given(st.lists(st.sampled_from([*NODES, "gone"]), unique=True))
def test_a_long_list_is_judged_as_a_short_one_is(names: list[str]) -> None:
    as_text, name_by_name = (filtered(listed(names, long)) for long in (0, 1 << 20))
    assert as_text.passed == name_by_name.passed
    assert as_text.left.text == name_by_name.left.text
    assert (as_text.failed, as_text.unresolvable) == (
        name_by_name.failed,
        name_by_name.unresolvable,
    )


def test_no_name_is_made_of_a_long_list_that_passes_whole_or_in_part() -> None:
    nodes = listed(NODES, 0)
    left = filtered(nodes).left
    assert len(left) == 3
    assert "names" not in vars(nodes)
    assert "names" not in vars(left)


def test_a_long_list_outlives_the_nodes_it_was_looked_up_among() -> None:
    known = ledger(node("a"))
    names = listed(["a", "b"], 0)
    assert names.at(known.snapshot().bound.traits).tolist() == [0, -1]
    more = ledger(node("a"), node("b"), node("0"))
    assert names.at(more.snapshot().bound.traits).tolist() == [1, 2]


@pytest.mark.parametrize(
    "text", [b"[1]", b'["a"', b'{"a":"b"}', b'["a",]', b'["\\x"]', b'["\xff"]']
)
def test_what_is_no_list_is_refused_however_long(text: bytes) -> None:
    with (
        mock.patch.object(node_lists, "LONG", 0),
        pytest.raises((msgspec.DecodeError, UnicodeError)),
    ):
        read_names(text)


def test_a_list_that_was_read_before_is_the_same_one() -> None:
    before: NodeList = read_names(b'["a","b"]')
    assert read_names(b'["a","b"]', [before]) is before
