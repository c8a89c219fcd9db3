"""Wrong settings are reported all at once, by variable, value and what is allowed."""

import pytest

from runtime.program import SettingsError, load_settings
from wrapper.settings import PREFIX, Settings


def test_the_defaults_are_usable() -> None:
    settings = load_settings(Settings, PREFIX)
    assert settings.apis == ("workload.codeflare.dev/v1beta2", "mcad.ibm.com/v1beta1")
    assert settings.listen_port == 8083


def test_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_WRAPPER_APIS", '["workload.codeflare.dev/v1beta2"]')
    monkeypatch.setenv("MUSTER_WRAPPER_CONCURRENCY", "4")
    settings = load_settings(Settings, PREFIX)
    assert settings.apis == ("workload.codeflare.dev/v1beta2",)
    assert settings.concurrency == 4


def test_all_faults_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_WRAPPER_APIS", '["apps/v1"]')
    monkeypatch.setenv("MUSTER_WRAPPER_CONCURRENCY", "0")
    monkeypatch.setenv("MUSTER_WRAPPER_LISTEN_PORT", "99999")
    with pytest.raises(SettingsError) as caught:
        load_settings(Settings, PREFIX)
    lines = dict(line.split(": ", 1) for line in str(caught.value).splitlines())
    assert "'workload.codeflare.dev/v1beta2'" in lines["MUSTER_WRAPPER_APIS[0]"]
    assert "greater than or equal to 1" in lines["MUSTER_WRAPPER_CONCURRENCY"]
    assert "65535" in lines["MUSTER_WRAPPER_LISTEN_PORT"]


@pytest.mark.parametrize(
    ("value", "says"),
    [("[]", "empty"), ('["mcad.ibm.com/v1beta1", "mcad.ibm.com/v1beta1"]', "named twice")],
)
def test_each_api_is_named_once(monkeypatch: pytest.MonkeyPatch, value: str, says: str) -> None:
    monkeypatch.setenv("MUSTER_WRAPPER_APIS", value)
    with pytest.raises(SettingsError, match=says):
        load_settings(Settings, PREFIX)


def test_times_by_which_two_replicas_could_lead_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MUSTER_WRAPPER_RENEW_DEADLINE", "20")
    with pytest.raises(SettingsError, match="two replicas could lead"):
        load_settings(Settings, PREFIX)
