"""The settings of all programs, and their messages about values that cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from coordinator.settings import Settings as CoordinatorSettings
from extender.settings import Settings as ExtenderSettings
from headstate.settings import Settings as RedisSettings
from runtime.program import SettingsError, load_settings
from tests.packaging.tree import ROOT
from webhook.settings import Settings as WebhookSettings
from wrapper.settings import Settings as WrapperSettings

PROGRAMS: list[Any] = [WebhookSettings, CoordinatorSettings, ExtenderSettings, WrapperSettings]
every_program = pytest.mark.parametrize("kind", PROGRAMS)


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


@every_program
def test_a_variable_that_is_spelled_wrong_is_named(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = kind.model_config["env_prefix"]
    monkeypatch.setenv(f"{prefix}LISTN_PORT", "8080")
    monkeypatch.setenv(f"{prefix}LOG_LEVEL", "loud")
    with pytest.raises(SettingsError) as caught:
        load_settings(kind, prefix)
    wrong, unknown = str(caught.value).splitlines()
    assert wrong.startswith(f"{prefix}LOG_LEVEL: 'loud': ")
    said = f"there is no such setting; the nearest is {prefix}LISTEN_PORT"
    assert unknown == f"{prefix}LISTN_PORT: '8080': {said}"
    monkeypatch.delenv(f"{prefix}LOG_LEVEL")
    with pytest.raises(SettingsError, match="no such setting"):
        load_settings(kind, prefix)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (CoordinatorSettings, "NAMESPACE"),
        (WrapperSettings, "NAMESPACE"),
        (ExtenderSettings, "WAKE_NAMESPACE"),
    ],
)
@pytest.mark.parametrize("value", ["Bad_NS", "a/b", "", "-a", "a" * 64, "a\n"])
def test_a_namespace_that_cannot_be_is_named(
    kind: Any, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = kind.model_config["env_prefix"]
    monkeypatch.setenv(prefix + name, "a" * 63)
    load_settings(kind, prefix)
    monkeypatch.setenv(prefix + name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings(kind, prefix)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{prefix}{name}: {value!r}: ")
    assert "allowed: the name of a namespace: 1 to 63 of a-z, 0-9 and -" in line


JSON_SETTINGS = [
    (kind, name.upper())
    for kind in (*PROGRAMS, RedisSettings)
    for name, described in kind.model_json_schema()["properties"].items()
    if described.get("contentMediaType") == "application/json"
]


@pytest.mark.parametrize(("kind", "name"), JSON_SETTINGS)
@pytest.mark.parametrize("value", ["7", "null", "a-word", '{"a": {}}', "[[]]", "[1]"])
def test_json_of_another_shape_is_told_what_is_allowed(
    kind: Any, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = kind.model_config["env_prefix"]
    monkeypatch.setenv(prefix + name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings(kind, prefix)
    (line,) = str(caught.value).splitlines()
    assert "; allowed: " in line or "Input should be '" in line
    assert "Input should be a valid" not in line


@every_program
def test_what_kubernetes_puts_beside_services_is_no_setting(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Service `muster-PROGRAM`, or one that an operator names `muster-PROGRAM-metrics`."""
    prefix = kind.model_config["env_prefix"]
    for service in (prefix, f"{prefix}METRICS_"):
        monkeypatch.setenv(f"{service}SERVICE_HOST", "10.96.0.12")
        monkeypatch.setenv(f"{service}SERVICE_PORT", "443")
        monkeypatch.setenv(f"{service}SERVICE_PORT_HTTPS", "443")
        monkeypatch.setenv(f"{service}PORT", "tcp://10.96.0.12:443")
        monkeypatch.setenv(f"{service}PORT_443_TCP", "tcp://10.96.0.12:443")
        monkeypatch.setenv(f"{service}PORT_443_TCP_PROTO", "tcp")
    assert load_settings(kind, prefix).log_level == "info"


@pytest.mark.parametrize("program", ["webhook", "coordinator", "extender", "wrapper"])
def test_a_program_ends_at_once_with_what_is_wrong(program: str) -> None:
    """Before it asks anything of a cluster, of which there is none here."""
    name = f"MUSTER_{program.upper()}_LISTEN_PORT"
    environment = {**os.environ, name: "99999", "KUBECONFIG": "/nowhere"}
    command = [sys.executable, "-m", program]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    (line,) = done.stderr.splitlines()
    assert line == f"{name}: '99999': Input should be less than or equal to 65535"
    assert (done.returncode, done.stdout) == (2, "")
