"""Stores how often releases of a gang were refused: the count outlives a leader."""

from dataclasses import dataclass
from typing import Any

from coordinator.gang.setbacks.late_starts import stamp_of
from kube.codec.fields import moment_of
from kube.objects.gang import GangRefusedReleases


@dataclass(frozen=True, slots=True)
class Refused:
    """Since when a release is refused and nothing runs.

    `gives_up`: the placement is given up once no release can arrive any more.
    """

    since: float
    gives_up: bool = False


@dataclass(frozen=True, slots=True)
class RefusedReleases:
    """How often the placement was given up for that, until when it is a setback, and why.

    `until` is in seconds since 1970. The record does not say why.
    """

    count: int = 0
    until: float = 0.0
    text: str = ""


def refused_releases_json(refused: RefusedReleases) -> dict[str, Any]:
    """Write the count down as the record holds it."""
    if not refused.count:
        return {}
    return {"count": refused.count, "until": stamp_of(refused.until)}


def refused_releases_recorded(written: GangRefusedReleases | None) -> RefusedReleases:
    """Read the count that a record holds."""
    if written is None:
        return RefusedReleases()
    return RefusedReleases(count=written.count, until=moment_of(written.until))
