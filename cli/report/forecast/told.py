"""Reports what the forecaster wrote into a Gang: when it is expected to start."""

from __future__ import annotations

import msgspec

from kube.codec.fields import moment_of
from kube.objects.gang import Gang

FRESH = 900.0
"""Seconds: one that runs writes all estimates anew before they are as old."""


class ToldReport(msgspec.Struct, frozen=True, rename="camel"):
    """An estimate, in RFC 3339; empty where a time is not known. `moved` says why it is later."""

    at: str
    earliest: str
    latest: str
    sure: str
    why: str
    told: str
    moved: str = ""

    def is_fresh(self, now: float) -> bool:
        """Say whether it is no older than those of a forecaster that runs."""
        return now - moment_of(self.told) < FRESH


def told(gang: Gang) -> ToldReport | None:
    """Return the estimate of a Gang; None where it has none."""
    found = gang.status.expected_start
    if found is None:
        return None
    return ToldReport(
        at=found.time,
        earliest=found.earliest,
        latest=found.latest,
        sure=found.basis,
        why=found.reason,
        told=found.as_of,
        moved=found.moved,
    )
