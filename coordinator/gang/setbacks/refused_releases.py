"""Stores how often releases of a gang were refused: the count outlives a leader."""

from dataclasses import dataclass
from typing import Any

from coordinator.gang.setbacks.late_starts import stamp_of
from kube.codec.fields import moment_of
from kube.objects.gang import GangRefusedReleases


@dataclass(slots=True)
class RefusedReleases:
    """Gives the placement up because a release is refused.

    Written by `reconcile.setbacks.refused_releases`.
    """

    refused_since: float | None = None
    """Since when a release is refused and nothing runs."""
    under_way: bool = False
    """The placement is given up once no release can arrive any more."""
    count: int = 0
    """How often that was; recorded."""
    until: float = 0.0
    """Until then it is a setback (seconds since 1970)."""
    text: str = ""
    """Why the last time."""


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
