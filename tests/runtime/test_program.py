"""The settings of all programs, and their messages about values that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.settings import Settings as CoordinatorSettings
from extender.settings import Settings as ExtenderSettings
from runtime.program import SettingsError, load_settings
from webhook.settings import Settings as WebhookSettings

every_program = pytest.mark.parametrize(
    "kind", [WebhookSettings, CoordinatorSettings, ExtenderSettings]
)


@every_program
def test_connections_have_limits(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = kind.model_config["env_prefix"]
    monkeypatch.setenv(f"{prefix}CONNECTION_LIMIT", "8")
    monkeypatch.setenv(f"{prefix}HEADER_SECONDS", "2.5")
    limits = load_settings(kind, prefix).limits
    assert (limits.connections, limits.headers) == (8, 2.5)


@every_program
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONNECTION_LIMIT", "7"),
        ("CONNECTION_LIMIT", "65537"),
        ("CONNECTION_LIMIT", "many"),
        ("HEADER_SECONDS", "0"),
        ("HEADER_SECONDS", "61"),
        ("HEADER_SECONDS", "inf"),
        ("HEADER_SECONDS", "nan"),
    ],
)
def test_limits_that_are_none_are_named(
    kind: Any, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = kind.model_config["env_prefix"]
    monkeypatch.setenv(prefix + name, value)
    with pytest.raises(SettingsError, match=f"^{prefix}{name}: '{value}': "):
        load_settings(kind, prefix)
