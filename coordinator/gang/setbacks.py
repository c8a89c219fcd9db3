"""Stores how often releases of a gang were refused: the count outlives a leader."""

from typing import Any

from coordinator.gang.late_starts import stamp_of
from coordinator.gang.view import Retreat
from kube.codec.fields import moment_of
from kube.objects.gang import GangRefusedReleases


def refused_releases_json(retreat: Retreat) -> dict[str, Any]:
    """Write the count down as the record holds it."""
    if not retreat.count:
        return {}
    return {"count": retreat.count, "until": stamp_of(retreat.until)}


def refused_releases_recorded(written: GangRefusedReleases | None) -> Retreat:
    """Read the count that a record holds."""
    if written is None:
        return Retreat()
    return Retreat(count=written.count, until=moment_of(written.until))
