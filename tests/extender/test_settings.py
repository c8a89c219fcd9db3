"""Settings that would give reserved room away are refused."""

from __future__ import annotations

from typing import cast

import pytest
from pydantic import ValidationError

from extender import serve
from extender.settings import Settings
from kube.api.client import Client


def test_the_defaults_hold_together() -> None:
    settings = Settings()
    assert settings.wake_pause_seconds < settings.settle_seconds
    assert settings.silence_seconds < settings.passed_seconds


def test_a_pod_counts_for_as_long_as_the_scheduler_may_hold_on_to_it() -> None:
    """Its own bounds: to be permitted, and for volumes and for devices to be bound."""
    permit, volumes, devices = 15 * 60, 600, 600
    assert Settings().passed_seconds >= permit + volumes + devices


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"passed_seconds": 90}, "passed_seconds 90.0 must be more than silence_seconds 90.0"),
        (
            {"passed_seconds": 120, "silence_seconds": 120},
            "passed_seconds 120.0 must be more than silence_seconds 120.0",
        ),
        ({"settle_seconds": 1}, "wake_pause_seconds must be less than settle_seconds"),
    ],
)
def test_what_does_not_hold_together_is_named(given: dict[str, float], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings(**given)  # type: ignore[arg-type]


def test_the_watches_are_told_of_feature_gates_that_are_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[object] = []

    class Told(Exception):  # noqa: N818 - ends what would need certificates
        pass

    def watches(*_: object, gates_off: object, **__: object) -> None:
        told.append(gates_off)
        raise Told

    monkeypatch.setattr(serve, "Watches", watches)
    settings = Settings.model_validate({"feature_gates_off": '["DRADeviceTaints"]'})
    with pytest.raises(Told):
        serve._assemble(settings, cast(Client, None))
    assert told == [("DRADeviceTaints",)]
