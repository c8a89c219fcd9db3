"""The coordinator's settings are read from the environment, and faults named by variable."""

import json

import pytest

from coordinator.gang.nominations import Guard
from coordinator.gang.priority import SETTING
from coordinator.settings import PREFIX, Settings
from kube.codec.profiles.scheduler_profiles import STOCK, Profile
from kube.codec.profiles.written_profiles import profiles_of
from runtime.program import SettingsError, load_settings


def profiles(monkeypatch: pytest.MonkeyPatch, written: str) -> object:
    monkeypatch.setenv(f"{PREFIX}PROFILES", written)
    return profiles_of(load_settings(Settings, PREFIX).profiles)


def test_gangs_are_decided_for_the_stock_scheduler_unless_told_otherwise() -> None:
    assert profiles_of(load_settings(Settings, PREFIX).profiles) == STOCK


def test_room_is_kept_by_nominations_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(Settings, PREFIX).guard is Guard.NOMINATION
    monkeypatch.setenv(f"{PREFIX}GUARD", "Extender")
    assert load_settings(Settings, PREFIX).guard is Guard.EXTENDER


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


def priority_classes(monkeypatch: pytest.MonkeyPatch, written: str) -> object:
    monkeypatch.setenv(f"{PREFIX}PRIORITY_CLASSES", written)
    return load_settings(Settings, PREFIX).priority_classes


def test_no_class_raises_a_gang_unless_the_operator_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert f"{PREFIX}PRIORITY_CLASSES" == SETTING
    assert load_settings(Settings, PREFIX).priority_classes == {}
    written = {"team-a": ["urgent"], "*": ["batch.high"], "b": []}
    assert priority_classes(monkeypatch, json.dumps(written)) == written


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("high", "'high': Invalid JSON"),
        ('["high"]', "['high']: not valid; allowed: lists of names of classes by namespace"),
        ('{"a": "high"}', "'high': not valid; allowed: lists of names of classes by namespace"),
        ('{"a": [1]}', "1: Input should be a valid string"),
        ('{"Team": ["high"]}', "'Team' is not valid; allowed: the name of a namespace, or *"),
        ('{"": ["high"]}', "'' is not valid; allowed: the name of a namespace, or *"),
        ('{"a": ["high", ""]}', "a: '' is not valid; allowed: names of classes"),
        ('{"a": ["*"]}', "a: '*' is not valid; allowed: names of classes"),
    ],
)
def test_a_bad_list_of_priority_classes_is_refused_where_it_is_wrong(
    monkeypatch: pytest.MonkeyPatch, written: str, line: str
) -> None:
    with pytest.raises(SettingsError, match=r"^MUSTER_COORDINATOR_PRIORITY_CLASSES: ") as caught:
        priority_classes(monkeypatch, written)
    assert line in str(caught.value)


@pytest.mark.parametrize("name", ["BIND", "TORN", "SLOT"])
@pytest.mark.parametrize("value", ["inf", "nan", "1e12", "0"])
def test_a_patience_without_an_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Room would be kept for ever, and no date says when that is."""
    monkeypatch.setenv(f"{PREFIX}{name}_PATIENCE", value)
    with pytest.raises(SettingsError, match=f"{PREFIX}{name}_PATIENCE"):
        load_settings(Settings, PREFIX)
