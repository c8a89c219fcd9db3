"""The coordinator copes with a CRD of an older release that drops fields of the status."""

from typing import Any

import pytest

from coordinator.messages.actions import WriteGangStatus
from tests.coordinator.api import Api, Key
from tests.coordinator.builders import Json, gang_of, node
from tests.coordinator.deeds import apart, in_zones
from tests.coordinator.world import World

MINUTE = 60.0


class OldApi(Api):
    """Knows neither waves nor how many decisions there were."""

    def _store(self, key: Key, obj: Json) -> Json:
        return super()._store(key, {**obj, "status": _pruned(obj.get("status", {}))})


def _pruned(value: Any) -> Any:
    match value:
        case dict():
            return {k: _pruned(v) for k, v in value.items() if k not in ("wave", "decided")}
        case list():
            return [_pruned(each) for each in value]
        case _:
            return value


def writes(world: World) -> int:
    return sum(isinstance(action, WriteGangStatus) for action in world.leader.log)


@pytest.fixture(autouse=True)
def _old_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.coordinator.world.Api", OldApi)


def test_a_gang_that_runs_is_not_written_over_and_over() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.settle(seconds=MINUTE)
    assert world.status("a")["phase"] == "Running"
    assert writes(world) < 10


def test_nor_is_a_placement_that_is_never_kept_whole() -> None:
    """It could not be completed by another leader, so nothing is released on it."""
    world = in_zones(cpu=4)
    world.create(apart(2))
    world.settle(seconds=MINUTE)
    assert world.gated("a") == 3
    assert writes(world) < 10
