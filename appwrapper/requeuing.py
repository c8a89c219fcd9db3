"""Works out when an AppWrapper is queued again, and how its priority grows, as MCAD does.

MCAD waits the same time twice before it lets it grow, and counts requeuings in the status. Times
are seconds since 1970, or seconds.
"""

import math

from kube.objects.app_wrapper import AppWrapperSpec, DispatchDuration, Requeuing, SchedulingSpec

USUAL_SECONDS = 300
_LONGEST = 2**31 - 1
_HIGHEST, _LOWEST = 2**31 - 1, -(2**31)


def system_priority(spec: AppWrapperSpec, waited: float) -> float:
    """Return the priority that has grown by its slope for each second since it was first seen."""
    return (spec.priority or 0) + (spec.priority_slope or 0.0) * max(waited, 0.0)


def whole_priority(priority: float) -> int:
    """Cut a priority to what a gang can have."""
    if math.isnan(priority):
        return 0
    return math.floor(min(max(priority, _LOWEST), _HIGHEST))


def wait_seconds(asked: Requeuing | None, grown: int) -> int:
    """Return how long too few pods may run; `grown` is requeueingTimeInSeconds of the status."""
    return grown if grown > 0 else _first(asked)


def grown_seconds(asked: Requeuing | None, grown: int) -> int:
    """Return the next requeueingTimeInSeconds; 0 where the time does not grow."""
    first, growth = _first(asked), _growth(asked)
    later = {"exponential": 2 * grown or _usual(asked), "linear": grown + first}.get(growth, grown)
    most = (asked.max_time_in_seconds if asked else 0) or 0
    return min(later, most if most > 0 else _LONGEST)


def is_last(asked: Requeuing | None, number: int) -> bool:
    """Say whether an AppWrapper that was queued again so often is not to be queued once more."""
    most = (asked.max_num_requeuings if asked else 0) or 0
    before = (asked.num_requeuings if asked else 0) or 0
    return 0 < most <= before + number


def has_too_few(scheduling: SchedulingSpec, running: int, succeeded: int) -> bool:
    """Say whether fewer pods run or have succeeded than are to; of no minimum that is never so."""
    return running + succeeded < (scheduling.min_available or 0)


def requeue_at(scheduling: SchedulingSpec, grown: int, since: float) -> float:
    """Return when an AppWrapper is queued again that has too few pods since then."""
    return since + wait_seconds(scheduling.requeuing, grown)


def dispatched_until(asked: DispatchDuration | None, first_dispatched: float) -> float:
    """Return when an AppWrapper fails that still runs; infinity where it has no limit."""
    limit = (asked.limit if asked else 0) or 0
    return first_dispatched + limit if limit > 0 else math.inf


def _usual(asked: Requeuing | None) -> int:
    seconds = asked.time_in_seconds if asked else None
    return USUAL_SECONDS if seconds is None else max(seconds, 0)


def _first(asked: Requeuing | None) -> int:
    initial = (asked.initial_time_in_seconds if asked else 0) or 0
    return initial if initial > 0 else _usual(asked)


def _growth(asked: Requeuing | None) -> str:
    """Return how the time grows; what is misspelt does not let it grow."""
    said = asked.growth_type if asked else None
    return "exponential" if said is None else said
