"""Beside a newer release: what only that knows stays in a Gang, and stops nothing here."""

from typing import Any

import pytest

from tests.coordinator.builders import gang_of, node
from tests.coordinator.world import World

Json = dict[str, Any]


def newer_leader_writes(world: World, name: str, status: Json, **spec: object) -> None:
    """Have a leader of the newer release write into a Gang."""
    world.api.change(world.gang(name), lambda obj: obj["status"].update(status), "status")
    if spec:
        world.api.change(world.gang(name), lambda obj: obj["spec"].update(spec))


def waits(name: str) -> World:
    world = World(node("n1", cpu=2))
    world.create(gang_of(name, 4))
    world.settle(seconds=30)
    assert world.status(name)["phase"] == "Queued"
    return world


def test_fields_of_a_newer_release_survive_all_writes_of_this_one() -> None:
    world = waits("a")
    newer_leader_writes(world, "a", {"future": {"x": [1]}}, futureSpec="y")
    world.leader.restart()
    world.elect(0)
    world.create(node("n2", cpu=8))
    world.scale("a", 5)
    world.settle(seconds=60)
    status = world.status("a")
    assert (status["phase"], status["ready"]) == ("Running", "6/6")
    assert "position" not in status
    assert "future" in status
    assert status["future"] == {"x": [1]}
    spec = world.gang("a")["spec"]
    assert spec["podSets"][1]["count"] == 5
    assert spec["futureSpec"] == "y"


UNKNOWN: dict[str, Json] = {
    "phase": {"phase": "Resting"},
    "reason": {"reason": "OfTomorrow"},
    "held": {"held": {"phase": "Dreaming", "generation": 1}},
    "condition": {"conditions": [{"type": "Future", "status": "Perhaps", "reason": "X"}]},
    "eviction": {"evictions": [{"reason": "OfTomorrow", "message": "m", "since": "never"}]},
    "late": {"lateStarts": {"count": 1, "notBefore": "tomorrow"}},
    "breaks": {"breaks": {"count": 1, "until": "tomorrow"}},
}


@pytest.mark.parametrize("restarted", [True, False], ids=["new leader", "same leader"])
@pytest.mark.parametrize("what", UNKNOWN)
def test_values_of_a_newer_release_stop_no_leader(what: str, restarted: bool) -> None:
    """Neither that which reads them before it knows anything else, nor one that sees them come."""
    world = waits("a")
    newer_leader_writes(world, "a", UNKNOWN[what])
    if restarted:
        world.leader.restart()
        world.elect(0)
    world.create(node("n2", cpu=8), gang_of("b", 1))
    world.settle(seconds=120)
    assert world.status("b")["phase"] == "Running"
    assert world.status("a")["phase"] in ("Running", "Preempting", "Queued")
