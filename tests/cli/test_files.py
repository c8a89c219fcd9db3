"""Objects come from YAML, JSON and lists of either; what is none is refused with its place."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.files import objects_of, read_files
from cli.imports.outcome import Fault

ONE = "apiVersion: g/v1\nkind: K\nmetadata: {name: a}\n"


def found(text: str) -> list[tuple[str, str, str]]:
    return [(each.place, each.group, each.kind) for each in objects_of("f", text.encode())]


def test_documents_lists_and_json() -> None:
    assert found(f"---\n{ONE}---\n---\n{ONE}") == [
        ("f: document 1", "g", "K"),
        ("f: document 3", "g", "K"),
    ]
    items = '[{"apiVersion": "g/v1", "kind": "K"}, {"apiVersion": "v1", "kind": "L"}]'
    assert found(items) == [("f: document 1: [0]", "g", "K"), ("f: document 1: [1]", "", "L")]
    whole = f'{{"apiVersion": "v1", "kind": "List", "items": {items}}}'
    assert found(whole) == [
        ("f: document 1: items[0]", "g", "K"),
        ("f: document 1: items[1]", "", "L"),
    ]


def test_items_of_a_typed_list_need_not_say_what_they_are() -> None:
    assert found('{"apiVersion": "g/v1", "kind": "KList", "items": [{"metadata": {}}]}') == [
        ("f: document 1: items[0]", "g", "K")
    ]
    assert found('{"apiVersion": "g/v1", "kind": "KList", "items": null}') == []


def test_a_date_is_a_text_as_in_kubectl() -> None:
    (only,) = objects_of("f", f"{ONE}spec: 2024-01-01\n".encode())
    assert only.body["spec"] == "2024-01-01"


BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 9)) for name in b"bcdefghi"
)
"""Nine lines that come to 400 million values."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: [", "f: line 2, column 1: did not find"),
        (b"\xff\xfe", "f: byte 0: not UTF-8"),
        (b"3", "f: document 1: int; allowed: a Kubernetes object"),
        (b"kind: K", "f: document 1: apiVersion: absent; allowed: a text"),
        (b"apiVersion: v1\nkind: [1]", "f: document 1: kind: [1]; allowed: a text"),
        (b"apiVersion: v1\nkind: List\nitems: 5", "f: document 1: items: int; allowed: a list"),
        (b"apiVersion: v1\nkind: List\nitems: [5]", "f: document 1: items[0]: int; allowed"),
        (b"a: !!python/object:os.system {}", "f: line 1, column 4: could not determine"),
        (BOMB, "f: more than 5000000 values; allowed: fewer aliases"),
        (b"[" * 100_000, "f: lists or objects are nested too deeply"),
        (b"a: " + b"9" * 10_000, "f: Exceeds the limit"),
        (b"<html>", "f: document 1: str; allowed: a Kubernetes object"),
    ],
    ids=[
        "yaml",
        "bytes",
        "number",
        "bare",
        "kind",
        "items",
        "item",
        "tag",
        "bomb",
        "deep",
        "huge",
        "html",
    ],
)
def test_what_is_no_object_is_refused_with_its_place(text: bytes, said: str) -> None:
    with pytest.raises(Fault) as caught:
        list(objects_of("f", text))
    assert str(caught.value).startswith(said)


def test_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(ONE)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(ONE.encode())))
    places = [each.place for each in read_files([str(path), "-"])]
    assert places == [f"{path}: document 1", "standard input: document 1"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="none: No such file or directory"):
        read_files([str(tmp_path / "none")])
    with pytest.raises(Fault, match="Is a directory"):
        read_files([str(tmp_path)])
    with pytest.raises(Fault, match="standard input can be read once"):
        read_files(["-", "-"])
