"""Every question of kube-scheduler is read, everything else refused, each answer spelled right."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.wire.node_lists import NodeList
from extender.wire.protocol import (
    BadQuestion,
    filter_answer,
    preemption_answer,
    priorities_answer,
    read_preemption,
    read_question,
)
from tests.extender.worlds import Json, node, pod

ASKED: Json = {"Pod": pod("p", gpu=1), "Nodes": None, "NodeNames": ["a", "b"]}


def answered(*of: Any) -> Any:
    return json.loads(b"".join(filter_answer(*of)))


def encoded(found: Any) -> bytes:
    return json.dumps(found).encode()


def test_names_are_read() -> None:
    question = read_question(encoded(ASKED))
    assert (question.pod.metadata.name, question.names, question.nodes) == ("p", ["a", "b"], None)


def test_whole_nodes_are_read_and_given_back_as_they_came() -> None:
    odd = {**node("b"), "spec": {"whatever": [1, {"x": None}]}}
    question = read_question(encoded({"Pod": pod("p"), "Nodes": {"items": [node("a"), odd]}}))
    assert question.names == ["a", "b"]
    answer = answered(question, NodeList(["b"]), {"a": "full"}, {})
    assert answer["Nodes"]["items"] == [odd]
    assert answer["NodeNames"] is None
    assert answer["FailedNodes"] == {"a": "full"}


def test_a_list_without_nodes_is_one_of_none() -> None:
    assert read_question(encoded({"Pod": pod("p"), "Nodes": {"items": None}})).names == []


def test_keys_may_be_spelled_in_any_case() -> None:
    lower = {key.lower(): value for key, value in ASKED.items()}
    assert read_question(encoded(lower)).names == ["a", "b"]
    victims = {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}
    asked = {"pod": pod("p"), "nodenametometavictims": victims}
    assert read_preemption(encoded(asked)).victims["a"].uids == ("u",)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{",
        b"\xff\xfe",
        b'{"Pod": null, "NodeNames": []}',
        b'{"Pod": {}, "NodeNames": []}',
        encoded({"Pod": pod("p")}),
        encoded({**ASKED, "NodeNames": [1]}),
        encoded({**ASKED, "NodeNames": "a"}),
        encoded({"pod": pod("p"), "POD": pod("q"), "NodeNames": []}),
        encoded({"Pod": pod("p"), "Nodes": {"items": [{"metadata": {}}]}}),
        encoded({"Pod": pod("p"), "Nodes": {"items": ["a"]}}),
        b'{"Pod": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_question_is_refused_without_quoting_it(body: bytes) -> None:
    with pytest.raises(BadQuestion) as refused:
        read_question(body)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 60


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)


@given(st.binary() | st.builds(encoded, junk))
def test_nothing_but_a_refusal_comes_of_junk(body: bytes) -> None:
    for read in (read_question, read_preemption):
        with pytest.raises(BadQuestion):
            read(body)


@given(st.sampled_from(["metadata", "spec", "status"]), junk)
def test_a_pod_with_junk_in_it_is_read_or_refused(part: str, said: Any) -> None:
    with contextlib.suppress(BadQuestion):
        read_question(encoded({**ASKED, "Pod": {**pod("p"), part: said}}))


def test_the_answer_of_filter_is_spelled_as_go_spells_it() -> None:
    question = read_question(encoded(ASKED))
    assert answered(question, NodeList(["a"]), {}, {"b": "reserved"}) == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"b": "reserved"},
        "Error": "",
    }


def test_no_node_at_all_is_an_empty_list_and_not_null() -> None:
    answer = answered(read_question(encoded(ASKED)), NodeList([]), {}, {})
    assert answer["NodeNames"] == []


def test_priorities_are_a_bare_array() -> None:
    assert json.loads(priorities_answer(NodeList(["a", "b"]), [10, 0])) == [
        {"Host": "a", "Score": 10},
        {"Host": "b", "Score": 0},
    ]


@given(st.lists(st.tuples(st.text(max_size=6), st.integers(0, 10)), max_size=6))
def test_priorities_are_json_whatever_the_names_are(scored: list[tuple[str, int]]) -> None:
    names, scores = [name for name, _ in scored], [score for _, score in scored]
    answer = json.loads(priorities_answer(NodeList(names), scores))
    assert answer == [{"Host": name, "Score": score} for name, score in scored]


@given(st.lists(st.text(max_size=6), max_size=6))
def test_names_go_back_as_they_came(names: list[str]) -> None:
    body = encoded({**ASKED, "NodeNames": names})
    question = read_question(body)
    assert question.names == names
    assert answered(question, question.listed, {}, {})["NodeNames"] == names


def test_a_list_is_known_again_by_its_text_alone() -> None:
    compact = msgspec.json.encode({**ASKED, "NodeNames": ["a", "b"]})
    left = NodeList(["a", "b"])
    assert read_question(compact, [NodeList(["a"]), left]).listed is left
    assert read_question(compact, [NodeList(["a", "c"])]).names == ["a", "b"]


@pytest.mark.parametrize(
    "victims",
    [
        {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 2}}},
        {"NodeNameToVictims": {"a": {"Pods": [{"metadata": {"uid": "u"}}], "NumPDBViolations": 2}}},
    ],
)
def test_victims_come_in_both_forms_and_go_back_in_one(victims: Json) -> None:
    preemption = read_preemption(encoded({"Pod": pod("p"), **victims}))
    assert json.loads(preemption_answer(preemption, ["a"])) == {
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 2}}
    }
    assert json.loads(preemption_answer(preemption, [])) == {"NodeNameToMetaVictims": {}}
