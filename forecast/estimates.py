"""Turns forecasts into estimates: when each waiting gang starts, how sure that is, and why."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf

from msgspec.structs import replace

from coordinator.queues.learned_durations import LEAST
from forecast.course import Basis, Course, Start, Waiting
from forecast.expected import ExpectedReport, Sure
from forecast.world import AGAIN
from kube.objects import names
from scheduling.diagnosis.amount_texts import lasting
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder

NAMED = 2
"""Gangs whose end nothing tells are named up to so many; the others are counted."""

DEFAULT_DURATION = "spec.defaultDurationSeconds"
YEAR_10000 = 253_402_300_800.0


def estimates(course: Course, others: Sequence[Course] = ()) -> Iterator[ExpectedReport]:
    """Yield an estimate of each gang that waits; `others` were run with other durations."""
    behind = _behind(course)
    for each in course.waiting:
        start = course.starts.get(each.key)
        if start is not None:
            yield _forward(each, start, course, others)
        elif each.key in behind:
            yield _by_rate(each, behind[each.key], course)
        else:
            yield _report(each, Sure.UNKNOWN, _nothing(each, course))


def stamp(wall: float) -> str:
    """Write seconds since 1970 as RFC 3339; nothing for what is beyond all calendars."""
    if not 0 <= wall < YEAR_10000:
        return ""
    return datetime.fromtimestamp(int(wall), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def gang_name(key: GangKey) -> str:
    """Name a gang as its user does, without what tells apart what is made again or asked about."""
    return str(gang_holder(GangKey(key.namespace, key.name.partition(AGAIN)[0])))


def _forward(
    found: Waiting, start: Start, course: Course, others: Sequence[Course]
) -> ExpectedReport:
    if start.at <= course.began:
        return _report(found, Sure.NOW, "there is room for it: the next cycle admits it", start.at)
    starts = [each.starts.get(found.key) for each in others]
    times = [start.at, *(each.at for each in starts if each is not None)]
    latest = inf if None in starts else max(times)
    said = _report(found, Sure.FORWARD, _after(start, course), start.at, course.began)
    if not others:
        return said
    return replace(said, earliest=stamp(min(times)), latest=stamp(latest))


def _report(
    found: Waiting, sure: Sure, why: str, at: float | None = None, began: float | None = None
) -> ExpectedReport:
    key, known = found.key, at is not None and at < inf
    return ExpectedReport(
        key.namespace,
        key.name,
        found.queue,
        found.position,
        sure,
        why,
        at=stamp(at) if at is not None and known else "",
        in_seconds=None if at is None or not known else max(0.0, at - (began or at)),
    )


# ---- why


def _after(start: Start, course: Course) -> str:
    if not start.after:
        return "time alone lets it start: it has waited long enough, or a setback of it ends"
    first, *rest = start.after
    more = f" and {len(rest)} more end" if rest else " ends"
    return f"after {gang_name(first)}{more} ({_tells(first, course)})"


def _tells(key: GangKey, course: Course) -> str:
    """Say what tells when a gang ends."""
    found = course.expected(key)
    if found is None:
        return "it is being deleted"
    waits = "" if key in course.running else "waits too, "
    said = "its queue has" if found.basis is Basis.DEFAULT else "declared"
    whose = found.learned or said
    runs = "" if waits else f", runs for {lasting(course.began - found.began)}"
    late = ": taken to end at twice its age" if found.basis is Basis.OVERDUE else ""
    return f"{waits}{whose} {lasting(found.duration)}{runs}{late}"


def _nothing(found: Waiting, course: Course) -> str:
    if not found.asks:
        return f"it does not wait for room: {found.reason}: {found.message}"
    if not course.finished:
        till = stamp(course.reached)
        return f"the forecast ended at {till}, for want of time; none of its queue started by then"
    unknown = _unknown(found, course)
    if unknown:
        return unknown
    return f"it does not start when all others have ended: {found.reason}: {found.message}"


def _unknown(found: Waiting, course: Course) -> str:
    """Name those whose end nothing tells, those of the gang's own queue first."""
    all_of = {**course.running, **course.started}
    mine = [key for key, each in all_of.items() if each.ends == inf and key != found.key]
    if not mine:
        return ""
    mine.sort(key=lambda key: (all_of[key].queue != found.queue, str(key)))
    named = " and ".join(gang_name(each) for each in mine[:NAMED])
    more = f" and {len(mine) - NAMED} more" if len(mine) > NAMED else ""
    ends = "ends" if len(mine) == 1 else "end"
    return (
        f"nothing tells when {named}{more} {ends}: no {names.EXPECTED_DURATION}, and no "
        f"{DEFAULT_DURATION} of the queue, of which fewer than {LEAST} have ended"
    )


# ---- the rate


def _behind(course: Course) -> Mapping[GangKey, float]:
    """Return when gangs start that the forecast did not reach, by the rate of their queues."""
    took = course.reached - course.began
    if course.finished or took <= 0:
        return {}
    started, left = defaultdict[str, int](int), defaultdict[str, list[GangKey]](list)
    for each in course.waiting:
        if each.key in course.starts:
            started[each.queue] += 1
        elif each.asks:
            left[each.queue].append(each.key)
    return dict(_at_rate(started, left, course.reached, took))


def _at_rate(
    started: Mapping[str, int],
    left: Mapping[str, Iterable[GangKey]],
    reached: float,
    took: float,
) -> Iterator[tuple[GangKey, float]]:
    for queue, keys in left.items():
        each = took / started[queue] if started.get(queue) else inf
        yield from ((key, reached + at * each) for at, key in enumerate(keys, 1) if each < inf)


def _by_rate(found: Waiting, at: float, course: Course) -> ExpectedReport:
    mine = sum(e.queue == found.queue and e.key in course.starts for e in course.waiting)
    took = lasting(course.reached - course.began)
    why = f"by the rate of its queue alone: {mine} starts in {took}, and those before it"
    said = _report(found, Sure.RATE, why, at, course.began)
    later = course.began + 2 * (at - course.began)
    return replace(said, earliest=stamp(course.reached), latest=stamp(later))
