"""Feature gates that kube-scheduler runs without are told by the operator, and read by name."""

import pytest

from coordinator.settings import PREFIX as COORDINATOR
from coordinator.settings import Settings as CoordinatorSettings
from extender.settings import PREFIX as EXTENDER
from extender.settings import Settings as ExtenderSettings
from runtime.program import ProgramSettings, SettingsError, load_settings
from scheduling.model.devices.features import DEFAULT_FEATURES, GATES, features_of

PROGRAMS = [(CoordinatorSettings, COORDINATOR), (ExtenderSettings, EXTENDER)]


@pytest.mark.parametrize(("settings", "prefix"), PROGRAMS)
def test_both_programs_read_the_names(
    monkeypatch: pytest.MonkeyPatch, settings: type[ProgramSettings], prefix: str
) -> None:
    assert load_settings(settings, prefix).model_dump()["feature_gates_off"] == ()
    monkeypatch.setenv(f"{prefix}FEATURE_GATES_OFF", '["DRADeviceTaints"]')
    assert load_settings(settings, prefix).model_dump()["feature_gates_off"] == ("DRADeviceTaints",)


@pytest.mark.parametrize(("settings", "prefix"), PROGRAMS)
def test_an_unknown_gate_is_named_with_those_that_are_allowed(
    monkeypatch: pytest.MonkeyPatch, settings: type[ProgramSettings], prefix: str
) -> None:
    monkeypatch.setenv(f"{prefix}FEATURE_GATES_OFF", '["DRAPrioritizedList", "DRATaints"]')
    with pytest.raises(SettingsError) as caught:
        load_settings(settings, prefix)
    said = str(caught.value)
    assert f"{prefix}FEATURE_GATES_OFF[1]: 'DRATaints'" in said
    assert ", ".join(GATES) in said


@pytest.mark.parametrize(("settings", "prefix"), PROGRAMS)
@pytest.mark.parametrize("written", ['{"DRADeviceTaints": false}', "7", "DRADeviceTaints"])
def test_what_is_no_list_is_told_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, settings: type[ProgramSettings], prefix: str, written: str
) -> None:
    monkeypatch.setenv(f"{prefix}FEATURE_GATES_OFF", written)
    with pytest.raises(SettingsError, match="; allowed: a list of names of feature gates") as said:
        load_settings(settings, prefix)
    assert "tuple" not in str(said.value)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("version", [(1, 34), (1, 37)])
def test_each_gate_turns_something_off_that_its_version_has(
    version: tuple[int, int], gate: str
) -> None:
    before, after = features_of(version), features_of(version, [gate])
    if version == (1, 37):
        assert after != before
    assert all(getattr(before, each) for each in after.__slots__ if getattr(after, each))


def test_without_consumable_capacity_and_binding_conditions_pools_come_in_any_order() -> None:
    """kube-scheduler then takes its oldest allocator (structured/allocator.go): it sorts none."""
    one = features_of((1, 37), ["DRAConsumableCapacity"])
    other = features_of((1, 37), ["DRADeviceBindingConditions"])
    assert (one.pools_in_order, other.pools_in_order) == (True, True)
    both = features_of((1, 37), ["DRAConsumableCapacity", "DRAResourceClaimDeviceStatus"])
    assert not both.pools_in_order


def test_allocations_have_no_time_without_binding_conditions() -> None:
    """So a claim without one is no older kube-scheduler's, and takes further pods."""
    assert DEFAULT_FEATURES.dates_allocations
    assert not features_of((1, 36), ["DRADeviceBindingConditions"]).dates_allocations
