"""Gangs that are misconfigured or suspended wait, and hold no other up."""

from typing import Any

import pytest

from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    gang_of,
    node,
    ray_cluster,
)
from tests.coordinator.world import World

BAD = [
    ({"labels": {names.OPT_IN: "yes"}}, 'label muster.dev/gang: "yes" is not valid'),
    (
        {"annotations": {names.MIN_REPLICAS: "gpus=2"}},
        'muster.dev/min-replicas: "gpus=2" is not valid',
    ),
    (
        {"annotations": {names.MIN_REPLICAS: "workers=9"}},
        "allowed: 0 to 2 (minimum above replicas)",
    ),
    ({"annotations": {names.QUEUE: "nowhere"}}, 'muster.dev/queue: "nowhere" is not valid'),
    (
        {"annotations": {names.PRIORITY_CLASS: "urgent"}},
        'muster.dev/priority-class: "urgent" is not valid',
    ),
    (
        {"annotations": {names.EXPECTED_DURATION: "long"}},
        'muster.dev/expected-duration: "long" is not valid',
    ),
    ({"labels": {names.OPT_IN: "x" * 63 * 4_000}}, "x... is not valid"),
]


@pytest.mark.parametrize(("meta", "said"), BAD, ids=[text[:40] for _, text in BAD])
def test_what_cannot_be_understood_waits_for_ever_says_so_and_holds_no_other_up(
    meta: dict[str, Any], said: str
) -> None:
    world = World(node("n1"))
    world.create(gang_of("bad", 2, **meta), gang_of("good", 2))
    world.settle(seconds=300)

    assert world.gated("bad") == 3
    status = world.status("bad")
    assert status["reason"] == "Misconfigured"
    assert said.replace("x...", 'x..."') in status["message"]
    assert len(status["message"]) <= 1024
    admitted = next(c for c in status["conditions"] if c["type"] == "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "Misconfigured")
    assert [event.reason for event in world.leader.emitted if event.key.name == "bad"] == [
        "Misconfigured"
    ]
    assert world.status("good")["phase"] == "Running"


def test_a_mended_annotation_lets_the_gang_start() -> None:
    world = World(node("n1"), allowed={"*": ["high"]})
    world.create(gang_of("a", 2, annotations={names.PRIORITY_CLASS: "high"}))
    world.settle(seconds=30)
    world.create({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Running"
    assert world.gang("a")["spec"]["priority"] == 1000


def test_an_annotation_that_breaks_after_the_start_changes_nothing_that_runs() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.settle(seconds=30)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(
        cluster, lambda obj: obj["metadata"]["annotations"].update({names.MIN_REPLICAS: "?"})
    )
    world.settle(seconds=30)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=600)
    assert world.bound("a") == {"n1": 3}
    assert world.status("a")["phase"] == "Running"


def test_a_suspended_ray_cluster_asks_for_nothing_and_starts_whole_when_resumed() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2, suspend=True))
    world.settle(seconds=30)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Gathering", "Suspended")
    assert status["message"] == "the RayCluster is suspended: it asks for no pods"
    world.edit("a", suspend=False)
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}

    world.edit("a", suspend=True)
    world.settle(seconds=30)
    assert world.bound("a") == {}
    assert "placement" not in world.status("a")
    world.create(gang_of("b", 7))
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 8}


def test_a_wrong_priority_class_is_told_with_the_wrong_annotations() -> None:
    world = World(node("n1"))
    wrong = {names.EXPECTED_DURATION: "soon", names.PRIORITY_CLASS: "nobody"}
    world.create(ray_cluster("a", annotations=wrong))
    world.settle(seconds=10)
    status = world.status("a")
    assert status["reason"] == "Misconfigured"
    assert "soon" in status["message"]
    assert "there is no PriorityClass of that name" in status["message"]
