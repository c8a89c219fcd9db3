"""A question read node by node is the same as in one piece, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extender import app
from extender.app import Extender
from extender.wire.protocol import BadQuestion, Question, read_question
from extender.wire.streamed_request import Reading, reading
from runtime import slicing
from tests.extender.conftest import Served
from tests.extender.worlds import GPU, Json, node, pod

NAMES = [f"n{i:03}" for i in range(60)]


def read_to_the_end(body: bytes) -> Question:
    steps = reading(body)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Question = done.value
            return found


def compact(found: Any) -> bytes:
    """As Go writes it."""
    return json.dumps(found, separators=(",", ":")).encode()


def whole(*nodes: Any, **more: Any) -> bytes:
    return compact({"Pod": {**pod("p", gpu=1), **more}, "Nodes": {"metadata": {}, "items": nodes}})


def said(read: Any, body: bytes) -> object:
    try:
        found = read(body)
    except BadQuestion as error:
        return str(error)
    nodes = None if found.nodes is None else [*map(bytes, found.nodes)]
    return found.pod, found.listed, nodes


# ---- the same question


nested = [{"a": 1}, {"metadata": {"name": "no node"}}, {"metadata": {"name": "nor this"}}]
anything: st.SearchStrategy[Any] = st.sampled_from(
    [
        *map(node, "abc"),
        {**node("d"), "spec": nested},
        {"metadata": {"name": "e", "annotations": {"x": '},{"metadata":{"name":"'}}},
        {"metadata": {"name": "f"}, "more": {"deep": nested}},
        {"metadata": {"name": "h"}, "more": [node("a"), node("b"), node("c")]},
        {"metadata": {"name": "-"}},
        {"kind": "Node", **node("g")},
        {"metadata": {}},
        {},
        None,
        3,
    ]
)


@given(st.lists(anything, max_size=6), st.sampled_from(([], nested)), st.integers(0, 5))
@example([node("a"), node("b"), node("c"), node("g")], [], 1)
@example(
    [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "h"}, "more": [{"metadata": {"name": name}} for name in "abc"]},
        {"metadata": {"name": "z"}},
    ],
    [],
    1,
)
@example([node("a"), {"metadata": {"name": "h"}, "more": [node("a"), node("b"), node("c")]}], [], 1)
@example(
    [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "-"}},
        {"metadata": {"name": "h"}, "more": [{"metadata": {"name": name}} for name in "-bc"]},
    ],
    [],
    1,
)
def test_node_by_node_it_is_the_same(nodes: list[Any], odd: list[Json], cut: int) -> None:
    """Also where the text between two nodes stands elsewhere, and where a body breaks off."""
    sent = whole(*nodes, more=odd)
    last = b"} , {".join(sent.rsplit(b"},{", 1))
    spaced = [part.replace(b"},{", b"} , {", n) for part in (sent, last) for n in (0, 1, 2, 3, -1)]
    for body in (sent, sent[: len(sent) - cut], *spaced):
        assert said(read_to_the_end, body) == said(read_question, body)


@given(st.lists(st.sampled_from([b'},{"metadata":{"name":"', b"x", b'"', b"]", b"}}"]), max_size=6))
def test_no_body_makes_it_fail(odd: list[bytes]) -> None:
    start, end = whole(node("a"), node("b"), node("c")).split(b'},{"metadata":{"name":"b"')
    body = start + b"".join(odd) + end
    assert said(read_to_the_end, body) == said(read_question, body)


# ---- while others ask


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large, and long, of a size that suits a test."""
    monkeypatch.setattr(app, "LARGE", 4096)
    monkeypatch.setattr(app, "CHUNK", 1024)
    monkeypatch.setattr(slicing, "SLICE", 0.0)


@contextlib.contextmanager
def answers_while_reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Notes `begun` and `done`, and is told what happens in between."""
    told: list[str] = []

    def noted(*of: Any) -> Reading:
        told.append("begun")
        found = yield from reading(*of)
        told.append("done")
        return found

    monkeypatch.setattr(app, "reading", noted)
    yield told


@pytest.mark.usefixtures("small")
async def test_others_are_answered_while_whole_nodes_are_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"Pod": pod("q", gpu=1), "Nodes": None, "NodeNames": ["b"]}
    await served.post("filter", asked)
    with answers_while_reading(monkeypatch) as told:
        large = asyncio.create_task(served.post("filter", whole(*map(node, NAMES * 10))))
        while not large.done():
            assert (await served.post("filter", asked))[0] == 200
            told.append("other")
        assert (await large)[0] == 200
    assert "other" in told[told.index("begun") : told.index("done")]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_it_is_answered_in_its_own_form(served: Served, verb: str) -> None:
    status, text = await served.post(verb, whole(*map(node, ("b", "a", *NAMES, "b"))))
    assert status == 200
    if verb == "filter":
        answer = json.loads(text)
        assert answer["Nodes"] == {"metadata": {}, "items": [node("b"), node("b")]}
        assert answer["FailedAndUnresolvableNodes"].keys() == {"a", *NAMES}
        assert (answer["NodeNames"], answer["Error"]) == (None, "")
    else:
        assert len(json.loads(text)) == len(NAMES) + 3


@pytest.mark.usefixtures("small")
async def test_a_long_answer_comes_whole(served: Served) -> None:
    some = {**node("b"), "spec": {"long": "x" * 3000, "amount": GPU}}
    status, text = await served.post("filter", whole(*[some] * 30))
    assert (status, json.loads(text)["Nodes"]["items"]) == (200, [some] * 30)
    assert (await served.post("filter", whole(*[some] * 30)))[0] == 200


@pytest.mark.usefixtures("small")
async def test_what_is_not_to_be_trusted_after_reading_is_not_answered(served: Served) -> None:
    with mock.patch.object(served.known, "trusted", side_effect=[True, True, False]):
        status, _ = await served.post("filter", whole(*map(node, NAMES)))
    assert status == 503


@pytest.mark.usefixtures("small")
async def test_what_is_late_when_it_is_read_changes_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler may have given it up and asked anew: what that passed is to count."""

    def slowly(*of: Any) -> Reading:
        found = yield from reading(*of)
        served.clock.now += served.settings.call_seconds + 1.0
        return found

    monkeypatch.setattr(app, "reading", slowly)
    status, text = await served.post("filter", whole(*map(node, NAMES), node("b")))
    assert (status, text) == (503, "not answered in time\n")
    assert not len(served.in_flight_pods)


@pytest.mark.usefixtures("small")
async def test_a_caller_that_reads_a_long_answer_too_slowly_is_disconnected(hasty: Served) -> None:
    given_up, sent = asyncio.Event(), Extender._sent

    async def noted(*of: Any) -> Any:
        try:
            return await sent(*of)
        finally:
            given_up.set()

    body, long = whole(*map(node, NAMES)), [b"x" * 65536] * 1000
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", hasty.port, ssl=hasty.caller, server_hostname="127.0.0.1", limit=1024
    )
    head = f"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with (
        mock.patch.object(Extender, "_sent", noted),
        mock.patch.object(app, "filter_answer", return_value=long),
    ):
        writer.write(head.encode() + body)
        await asyncio.wait_for(given_up.wait(), 60)
    came = 0
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while part := await asyncio.wait_for(reader.read(65536), 60):
            came += len(part)
    assert 0 < came < sum(map(len, long))
    writer.close()
