"""Counts the starts of a gang that were not ready in time, and says when it may start again.

The pause doubles from one late start to the next. After the last retry that its queue grants, the
gang waits for a person: an edit of the RayCluster's spec, or another value of `muster.dev/retry`,
begins anew. Times are seconds since 1970, because the count outlives the leader.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import floor
from typing import Any

from kube.codec.fields import moment_of
from kube.gang.source import GangSource
from kube.objects import names
from kube.objects.gang import GangLateStarts
from kube.objects.queues.queue import Timeouts

LONGEST_BACKOFF = 3600.0
"""The most seconds between the end of one start and the next one."""

GIVEN_UP = (
    "the gang is not started again before the spec of its RayCluster is edited, or its annotation "
    f"{names.RETRY} gets another value"
)


@dataclass(frozen=True, slots=True)
class Edition:
    """What of a RayCluster says that a start is of another try than those before.

    With Ray's autoscaler the generation says nothing: that edits the spec by itself.
    """

    generation: int = 0
    retry: str = ""


@dataclass(frozen=True, slots=True)
class LateStarts:
    """How many starts in a row were late, of which edition, and when the next may be.

    `is_current`: the last of them has its placement still. Where its end is refused it counts
    once; the record does not say it.
    """

    count: int
    not_before: float
    of: Edition = Edition()
    is_current: bool = field(default=False, compare=False)


def edition_of(source: GangSource) -> Edition:
    """Return the edition of a RayCluster."""
    return Edition(source.edition, source.metadata.annotations.get(names.RETRY, ""))


def one_more(before: LateStarts | None, of: Edition, timeouts: Timeouts, now: float) -> LateStarts:
    """Count a start that is late now; times are in whole seconds, as the record has them."""
    count = before.count if before is not None else 0
    pause = min(LONGEST_BACKOFF, timeouts.backoff_seconds * 2.0 ** min(count, 16))
    return LateStarts(count + 1, float(floor(now + pause)), of, is_current=True)


def is_given_up(late: LateStarts | None, timeouts: Timeouts) -> bool:
    """Say whether the gang had all the retries that its queue grants."""
    return late is not None and late.count > timeouts.retries


def cause_in_words(late: LateStarts, timeouts: Timeouts) -> str:
    """Say which start was late."""
    starts = max(late.count, timeouts.retries + 1)
    return (
        f"the minimum was not ready within {timeouts.ready_seconds} s of its placement "
        f"(start {late.count} of {starts})"
    )


def pause_in_words(late: LateStarts) -> str:
    """Say until when the gang waits."""
    return f"the gang may start again from {stamp_of(late.not_before)} on"


def late_starts_json(late: LateStarts | None) -> dict[str, Any]:
    """Write the count down as the record holds it."""
    if late is None:
        return {}
    of = {"generation": late.of.generation, "retry": late.of.retry}
    return {"count": late.count, "notBefore": stamp_of(late.not_before)} | {
        key: value for key, value in of.items() if value
    }


def late_starts_recorded(written: GangLateStarts | None, began: float | None) -> LateStarts | None:
    """Read the count that a record holds, of a gang that was admitted when it `began`, if it is.

    Where that was before the pause is over, it is the start that was counted last.
    """
    if written is None or not written.count:
        return None
    edition, not_before = Edition(written.generation, written.retry), moment_of(written.not_before)
    is_current = began is not None and began < not_before
    return LateStarts(written.count, not_before, edition, is_current)


def stamp_of(moment: float) -> str:
    """Write a time down to the second (RFC 3339)."""
    found = datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
    return found.replace("+00:00", "Z")
