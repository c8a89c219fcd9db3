"""Wrong settings are reported all at once, by variable, value and what is allowed."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from kube.objects.names import MANAGED_BY
from runtime.program import SettingsError, load_settings
from webhook.settings import PREFIX, Settings


def test_the_defaults_are_usable() -> None:
    settings = load_settings(Settings, PREFIX)
    assert settings.lookup_deadline_seconds == 2.0
    assert settings.body_limit_bytes == 8 * 1024 * 1024
    assert settings.keepalive_seconds > 90


def test_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_WEBHOOK_LISTEN_ADDRESS", "127.0.0.1")
    monkeypatch.setenv("MUSTER_WEBHOOK_LISTEN_PORT", "7443")
    monkeypatch.setenv("MUSTER_WEBHOOK_KUBECONFIG", "there")
    settings = load_settings(Settings, PREFIX)
    assert settings.listen_address == ip_address("127.0.0.1")
    assert settings.listen_port == 7443
    assert settings.kubeconfig == Path("there")


def test_all_faults_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_WEBHOOK_LISTEN_PORT", "99999")
    monkeypatch.setenv("MUSTER_WEBHOOK_LISTEN_ADDRESS", "everywhere")
    monkeypatch.setenv("MUSTER_WEBHOOK_KEEPALIVE_SECONDS", "75")
    monkeypatch.setenv("MUSTER_WEBHOOK_LOG_LEVEL", "loud")
    with pytest.raises(SettingsError) as caught:
        load_settings(Settings, PREFIX)
    lines = dict(line.split(": ", 1) for line in str(caught.value).splitlines())
    assert "'99999'" in lines["MUSTER_WEBHOOK_LISTEN_PORT"]
    assert "65535" in lines["MUSTER_WEBHOOK_LISTEN_PORT"]
    assert "IPv4" in lines["MUSTER_WEBHOOK_LISTEN_ADDRESS"]
    assert "greater than 90" in lines["MUSTER_WEBHOOK_KEEPALIVE_SECONDS"]
    assert "'debug'" in lines["MUSTER_WEBHOOK_LOG_LEVEL"]
    assert len(lines) == 4


def test_what_kubernetes_puts_beside_a_service_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Service named muster-webhook puts these into every pod of its namespace."""
    monkeypatch.setenv("MUSTER_WEBHOOK_PORT", "tcp://10.96.0.12:443")
    monkeypatch.setenv("MUSTER_WEBHOOK_PORT_443_TCP_ADDR", "10.96.0.12")
    monkeypatch.setenv("MUSTER_WEBHOOK_SERVICE_HOST", "10.96.0.12")
    monkeypatch.setenv("MUSTER_WEBHOOK_SERVICE_PORT", "443")
    assert load_settings(Settings, PREFIX).listen_port == 9443


@pytest.mark.parametrize(
    ("value", "taken"),
    [("None", set()), ("Named", {MANAGED_BY}), ("All", {MANAGED_BY, ""})],
)
def test_which_appwrappers_are_musters(
    monkeypatch: pytest.MonkeyPatch, value: str, taken: set[str]
) -> None:
    assert load_settings(Settings, PREFIX).app_wrappers == "None"
    monkeypatch.setenv("MUSTER_WEBHOOK_APP_WRAPPERS", value)
    assert load_settings(Settings, PREFIX).managed_by == taken


def test_where_no_appwrapper_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(Settings, PREFIX).left_alone == {"kube-system", "muster-system"}
    monkeypatch.setenv(
        "MUSTER_WEBHOOK_WRAPPER_ACCOUNT", "system:serviceaccount:gangs:muster-wrapper"
    )
    assert load_settings(Settings, PREFIX).left_alone == {"kube-system", "gangs"}
