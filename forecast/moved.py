"""Explains why a gang's expected start is later than before: what overran, or came before it."""

from collections.abc import Iterator, Mapping

from forecast.course import Basis, Course
from forecast.estimates import gang_name
from scheduling.diagnosis.amount_texts import lasting
from scheduling.model.gang import GangKey


def why_later(key: GangKey, since: float, course: Course, created: Mapping[GangKey, float]) -> str:
    """Name what a gang waits for longer than was known at `since`; "" where nothing tells.

    `created` says when each gang came, in seconds since 1970.
    """
    chain = list(_waits_for(key, course))
    late = next((each for each in chain if _overran(each, course)), None)
    if late is not None:
        return f"{gang_name(late)} outlived the {lasting(course.running[late].duration)} it had"
    newer = [each for each in _before(key, course) if created.get(each, since) > since]
    if newer:
        first = next((each for each in chain if each in newer), newer[0])
        more = f", and {len(newer) - 1} more" if len(newer) > 1 else ""
        return f"{gang_name(first)} came since{more}, and is before it"
    return f"it starts after {gang_name(chain[0])} ends" if chain else ""


def _waits_for(key: GangKey, course: Course) -> Iterator[GangKey]:
    """Yield the gangs whose ends a start waits for, the nearest first."""
    seen, todo = {key}, [key]
    while todo:
        start = course.starts.get(todo.pop(0))
        new = [each for each in (start.after if start is not None else ()) if each not in seen]
        yield from new
        seen.update(new)
        todo += new


def _overran(key: GangKey, course: Course) -> bool:
    return key in course.running and course.running[key].basis is Basis.OVERDUE


def _before(key: GangKey, course: Course) -> Iterator[GangKey]:
    """Yield the gangs of its queue that run, or start before it, in the order of their starts."""
    queue = next((each.queue for each in course.waiting if each.key == key), "")
    mine = course.starts.get(key)
    yield from (each for each, found in course.running.items() if found.queue == queue)
    for each, start in course.starts.items():
        expected = course.expected(each)
        same = expected is not None and expected.queue == queue
        if each != key and same and (mine is None or start.at <= mine.at):
            yield each
