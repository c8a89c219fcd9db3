"""Counts how often a gang was stopped because it lost a part of its minimum for good.

Each stop is a setback: the gang waits after others for a time, which doubles if it loses its
minimum again soon. Times are seconds since 1970, because the count outlives the leader.
"""

from dataclasses import dataclass, field
from math import floor
from typing import Any

from coordinator.gang.setbacks.late_starts import stamp_of
from coordinator.messages.clock import Patience
from kube.codec.fields import AFTER_ALL, moment_of
from kube.objects.gang import GangBreaks


@dataclass(frozen=True, slots=True)
class Breaks:
    """How many in a row, and until when they are a setback.

    `of` is when the last of them began (RFC 3339): where its end is refused it counts once. The
    record does not say it.
    """

    count: int
    until: float
    of: str = field(default="", compare=False)


def one_more(before: Breaks | None, of: str, patience: Patience, now: float) -> Breaks:
    """Count a break; one long after the last is the first of its row."""
    soon = before is not None and now < before.until + patience.setback_after(before.count)
    count = 1 + (before.count if before is not None and soon else 0)
    return Breaks(count, float(floor(now + patience.setback_after(count))), of)


def breaks_at(breaks: Breaks | None, now: float) -> int:
    """Count the breaks for which the gang comes after others now."""
    return breaks.count if breaks is not None and now < breaks.until else 0


def breaks_json(breaks: Breaks | None) -> dict[str, Any]:
    """Write the count down as the record holds it."""
    if breaks is None:
        return {}
    return {"count": breaks.count, "until": stamp_of(breaks.until)}


def breaks_recorded(written: GangBreaks | None) -> Breaks | None:
    """Read the count that a record holds; a time that cannot be read is no setback."""
    until = moment_of(written.until) if written is not None else AFTER_ALL
    if written is None or not written.count or until == AFTER_ALL:
        return None
    return Breaks(written.count, until)
