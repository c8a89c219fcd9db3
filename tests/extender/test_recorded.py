"""Is what a real kube-scheduler sent read whole?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extender.wire import read_preemption, read_question

BODIES = Path(__file__).parent / "bodies"
VERSIONS = ["1.36.3"]

every_version = pytest.mark.parametrize("version", VERSIONS)


def body(kind: str, version: str) -> bytes:
    return (BODIES / f"{kind}-{version}.json").read_bytes()


@every_version
def test_names(version: str) -> None:
    question = read_question(body("names", version))
    assert sorted(question.names) == ["rec-0", "rec-1"]
    assert question.nodes is None
    (container,) = question.pod.spec.containers
    assert container.resources.requests["nvidia.com/gpu"] == "4"


@every_version
def test_whole_nodes(version: str) -> None:
    question = read_question(body("nodes", version))
    assert sorted(question.names) == ["rec-0", "rec-1"]
    assert question.nodes is not None
    assert {json.loads(bytes(node))["metadata"]["name"] for node in question.nodes} == {
        *question.names
    }


@every_version
def test_victims(version: str) -> None:
    preemption = read_preemption(body("victims", version))
    assert preemption.pod.spec.priority == 1000
    assert preemption.victims
    assert all(each.uids and all(each.uids) for each in preemption.victims.values())
