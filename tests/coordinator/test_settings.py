"""Are the coordinator's settings read from the environment, and faults named where they are?"""

import json

import pytest

from coordinator.settings import PREFIX, Settings
from kube.profiles import STOCK, Profile, profiles_of
from kube.program import SettingsError, load_settings


def profiles(monkeypatch: pytest.MonkeyPatch, written: str) -> object:
    monkeypatch.setenv(f"{PREFIX}PROFILES", written)
    return profiles_of(load_settings(Settings, PREFIX).profiles)


def test_gangs_are_decided_for_the_stock_scheduler_unless_told_otherwise() -> None:
    assert profiles_of(load_settings(Settings, PREFIX).profiles) == STOCK


def test_profiles_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    written = json.dumps([{}, {"schedulerName": "gpu"}])
    assert profiles(monkeypatch, written) == {**STOCK, "gpu": Profile("gpu")}


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("default-scheduler", "MUSTER_COORDINATOR_PROFILES: 'default-scheduler': Invalid JSON"),
        ("[]", "MUSTER_COORDINATOR_PROFILES: '[]': Value error, empty; allowed: one or more"),
        ("[{}, {}]", "MUSTER_COORDINATOR_PROFILES: '[{}, {}]': Value error, named twice: default"),
        (
            '[{}, {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": 1}}]}]',
            "MUSTER_COORDINATOR_PROFILES[1].pluginConfig[0].NodeAffinity.args.addedAffinity: 1: ",
        ),
    ],
)
def test_a_bad_profile_is_refused_where_it_is_wrong(
    monkeypatch: pytest.MonkeyPatch, written: str, line: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        profiles(monkeypatch, written)
    assert line in str(caught.value)
