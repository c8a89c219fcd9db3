"""What does the coordinator watch?"""

import json
from typing import cast

import pytest

from coordinator.app import Coordinator
from coordinator.settings import PREFIX, Settings
from kube.client import Client
from kube.program import load_settings


@pytest.mark.parametrize(
    ("action", "is_watched"), [("DoNotSchedule", True), ("ScheduleAnyway", False)]
)
def test_services_are_watched_only_where_a_profile_spreads_by_them(
    monkeypatch: pytest.MonkeyPatch, action: str, is_watched: bool
) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": action}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    config = [{"name": "PodTopologySpread", "args": args}]
    gpu = {"schedulerName": "gpu", "pluginConfig": config}
    monkeypatch.setenv(f"{PREFIX}PROFILES", json.dumps([{}, gpu]))
    made = Coordinator(load_settings(Settings, PREFIX), cast(Client, None))
    assert ("services" in made.reflectors) is is_watched
