"""Stores how often releases of a gang were refused: the count outlives a leader."""

from dataclasses import dataclass
from typing import Any

from coordinator.gang.setbacks.late_starts import stamp_of
from kube.codec.fields import moment_of
from kube.objects.gang import GangRefusedReleases


@dataclass(frozen=True, slots=True)
class Refused:
    """Since when a release is refused and nothing runs, and if the placement is given up for it."""

    since: float
    gives_up: bool = False


@dataclass(frozen=True, slots=True)
class RefusedReleases:
    """How often that was, until when it is a setback (seconds since 1970), and why at last."""

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
