"""Reads the retry limits and grace periods of CodeFlare's AppWrapper from its annotations."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from appwrapper.spec.faults import Fault, shown
from kube.objects.base import Labels
from kube.ray.gang_terms import parse_duration

PREFIX = "workload.codeflare.dev.appwrapper/"
_CODE = re.compile(r"[0-9]{1,3}")

LONGEST = 24 * 3600.0
"""No grace is longer, as CodeFlare's controller has it."""

_DURATION = "a duration such as 90s or 1h30m"
_NUMBER = "a whole number from 0 on"
_CODES = "exit codes from 1 to 255, separated by commas"


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds of grace, and how often an AppWrapper is started again; CodeFlare's defaults.

    `admission` until all pods exist, `warmup` until they are ready, `failure` until failed pods are
    replaced, `pause` before it is started again, `deletion` until pods are deleted by force,
    `failed_ttl` before the objects of a failed one are deleted, `success_ttl` of one that
    succeeded. A pod that failed with an exit code of `terminal`, or with none of `retryable` where
    there are any, is not worth another start.
    """

    admission: float = 60.0
    warmup: float = 300.0
    failure: float = 60.0
    pause: float = 90.0
    deletion: float = 600.0
    failed_ttl: float = 0.0
    success_ttl: float = 7 * 24 * 3600.0
    retries: int = 3
    terminal: frozenset[int] = frozenset()
    retryable: frozenset[int] = frozenset()


_SECONDS = {
    "admissionGracePeriodDuration": "admission",
    "warmupGracePeriodDuration": "warmup",
    "failureGracePeriodDuration": "failure",
    "retryPausePeriodDuration": "pause",
    "forcefulDeletionGracePeriodDuration": "deletion",
    "deletionOnFailureGracePeriodDuration": "failed_ttl",
    "successTTLDuration": "success_ttl",
}
_RETRIES = "retryLimit"
_EXIT_CODES = ("terminalExitCodes", "retryableExitCodes")


def patience(annotations: Labels) -> tuple[Patience, tuple[Fault, ...]]:
    """Read the annotations; what cannot be read stays at its default."""
    seconds: dict[str, float] = {}
    faults: list[Fault] = []
    for name, attribute in _SECONDS.items():
        text = annotations.get(PREFIX + name)
        read = None if text is None else _seconds(text)
        if read is not None:
            seconds[attribute] = min(read, _longest(attribute))
        elif text is not None:
            faults.append(Fault("", f"metadata.annotations[{PREFIX}{name}]", text, _DURATION))
    number = _retries(annotations.get(PREFIX + _RETRIES))
    if number is None:
        text = annotations[PREFIX + _RETRIES]
        faults.append(Fault("", f"metadata.annotations[{PREFIX}{_RETRIES}]", text, _NUMBER))
        number = Patience().retries
    terminal, retryable = (_exit_codes(annotations, name, faults) for name in _EXIT_CODES)
    found = Patience(**seconds, retries=number, terminal=terminal, retryable=retryable)
    return found, tuple(faults)


def _exit_codes(annotations: Labels, name: str, faults: list[Fault]) -> frozenset[int]:
    """Read a list of exit codes; of one that holds anything else nothing counts."""
    text = annotations.get(PREFIX + name, "")
    found = [each.strip() for each in text.split(",")] if text.strip() else []
    if all(_CODE.fullmatch(each) and 0 < int(each) < 256 for each in found):
        return frozenset(map(int, found))
    faults.append(Fault("", f"metadata.annotations[{PREFIX}{name}]", shown(text), _CODES))
    return frozenset()


def _longest(attribute: str) -> float:
    return Patience().success_ttl if attribute == "success_ttl" else LONGEST


def _seconds(text: str) -> float | None:
    return 0.0 if text in ("0", "0s") else parse_duration(text)


def _retries(text: str | None) -> int | None:
    """Read a number of retries; None where it is no number."""
    if text is None:
        return Patience().retries
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def may_retry(patient: Patience, resetting_count: int) -> bool:
    """Say whether an AppWrapper that was started again so often may be once more."""
    return resetting_count < patient.retries


def is_final(patient: Patience, exits: Collection[int]) -> bool:
    """Say whether pods that failed with such exit codes, none of them 0, would fail again."""
    unlisted = bool(patient.retryable) and not patient.retryable.issuperset(exits)
    return unlisted or not patient.terminal.isdisjoint(exits)
