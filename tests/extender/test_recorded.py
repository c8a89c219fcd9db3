"""What real kube-schedulers sent is read whole and answered. `record.py` wrote the bodies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from extender.filter import RESERVED, filter_nodes
from extender.ledger import Ledger
from extender.preempt import Rules, kept_nodes
from extender.snapshot import watched_pod
from extender.wire.protocol import (
    Preemption,
    filter_answer,
    preemption_answer,
    read_preemption,
    read_question,
)
from kube.objects.core import Pod
from tests.extender.wire.test_streamed_request import read_to_the_end
from tests.extender.worlds import as_gang, gang, ledger, node

BODIES = Path(__file__).parent / "bodies"
VERSIONS = ["1.34.9", "1.35.4", "1.36.3"]
NODES = ["rec-0", "rec-1"]

every_version = pytest.mark.parametrize("version", VERSIONS)


def body(kind: str, version: str) -> bytes:
    return (BODIES / f"{kind}-{version}.json").read_bytes()


@pytest.fixture
def half_reserved() -> Ledger:
    """The nodes of the recording, of which the first is reserved."""
    return ledger(*map(node, NODES), gang(slots={"rec-0": 1}))


def test_every_version_was_recorded_whole() -> None:
    kinds = ("names", "nodes", "victims", "whole-victims")
    expected = {f"{kind}-{version}.json" for kind in kinds for version in VERSIONS}
    assert {path.name for path in BODIES.iterdir()} == expected


@every_version
def test_names(version: str) -> None:
    question = read_question(body("names", version))
    assert sorted(question.names) == NODES
    assert question.nodes is None
    (container,) = question.pod.spec.containers
    assert container.resources.requests["nvidia.com/gpu"] == "5"


@every_version
def test_whole_nodes(version: str) -> None:
    question = read_question(body("nodes", version))
    assert sorted(question.names) == NODES
    assert question.nodes is not None
    assert {json.loads(bytes(node))["metadata"]["name"] for node in question.nodes} == {*NODES}


@every_version
@pytest.mark.parametrize("kind", ["names", "nodes"])
def test_read_in_pieces_it_is_the_same(version: str, kind: str) -> None:
    """With three nodes, of which the one between the others is cut out."""
    sent = body(kind, version)
    if kind == "nodes":
        first = sent.index(b'{"metadata":{"name":"rec-0"')
        sent = sent[:first] + b'{"metadata":{"name":"rec-2"}},' + sent[first:]
    whole = read_question(sent)
    with mock.patch("extender.wire.streamed_request.read_question", wraps=read_question) as read:
        found = read_to_the_end(sent)
    assert (found.pod, found.names) == (whole.pod, whole.names)
    if kind == "nodes":
        assert whole.nodes is not None
        assert found.nodes is not None
        assert [*map(bytes, found.nodes)] == [*map(bytes, whole.nodes)]
        (call,) = read.mock_calls
        assert b"rec-0" not in call.args[0]  # what was cut out was not read twice


@every_version
@pytest.mark.parametrize("kind", ["names", "nodes"])
def test_a_filter_call_is_answered_in_its_own_form(
    version: str, kind: str, half_reserved: Ledger
) -> None:
    question = read_question(body(kind, version))
    found = filter_nodes(watched_pod(question.pod), question.listed, half_reserved.snapshot())
    parts = filter_answer(question, found.left, found.failed, found.unresolvable)
    answer = json.loads(b"".join(parts))
    assert answer["FailedAndUnresolvableNodes"] == {"rec-0": RESERVED}
    if kind == "names":
        assert (answer["NodeNames"], answer["Nodes"]) == (["rec-1"], None)
    else:
        assert question.nodes is not None
        sent = [json.loads(bytes(each)) for each in question.nodes]
        assert answer["NodeNames"] is None
        assert answer["Nodes"]["items"] == [n for n in sent if n["metadata"]["name"] == "rec-1"]


@every_version
@pytest.mark.parametrize("kind", ["victims", "whole-victims"])
def test_victims(version: str, kind: str) -> None:
    preemption = read_preemption(body(kind, version))
    assert preemption.pod.spec.priority == 1000
    assert sorted(preemption.victims) == NODES
    assert all(each.uids and all(each.uids) for each in preemption.victims.values())


@every_version
def test_a_preempt_call_is_answered(version: str, half_reserved: Ledger) -> None:
    sent = body("whole-victims", version)
    for victim in _victims(sent):
        half_reserved.put_pod(watched_pod(victim))
    preemption = read_preemption(sent)
    assert _kept(preemption, half_reserved) == {"rec-1": _uids(preemption, "rec-1")}
    half_reserved.put_gang(as_gang(gang()))
    assert _kept(preemption, half_reserved).keys() == {*NODES}


def _victims(sent: bytes) -> list[Pod]:
    asked: dict[str, dict[str, Any]] = json.loads(sent)["NodeNameToVictims"]
    return [msgspec.convert(pod, Pod) for each in asked.values() for pod in each["Pods"]]


def _kept(preemption: Preemption, known: Ledger) -> dict[str, tuple[str, ...]]:
    victims = {name: each.uids for name, each in preemption.victims.items()}
    kept = kept_nodes(watched_pod(preemption.pod), victims, known.snapshot(), Rules())
    answered = json.loads(preemption_answer(preemption, kept))["NodeNameToMetaVictims"]
    return {name: tuple(pod["UID"] for pod in each["Pods"]) for name, each in answered.items()}


def _uids(preemption: Preemption, name: str) -> tuple[str, ...]:
    return preemption.victims[name].uids
