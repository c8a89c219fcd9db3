"""Finds queues that cannot work as they are written; their gangs wait until the spec is mended."""

from collections.abc import Mapping
from types import MappingProxyType

from scheduling.model.queue import Queue

NONE: Mapping[str, str] = MappingProxyType({})


def faults(queues: Mapping[str, Queue], known: Mapping[str, str] = NONE) -> dict[str, str]:
    """Return the queues that are not active, by name, each with the reason for its user.

    `known` are faults that were found already; what is below those queues is not active either.
    """
    above = {each.parent for each in queues.values()}
    own = {name: _own_fault(queue, queues) for name, queue in queues.items()}
    leaves = (queue for name, queue in queues.items() if name not in above)
    own |= {each.name: own[each.name] or _fault_of_lending(each) for each in leaves}
    found = {name: fault for name, fault in own.items() if fault}
    found.update(known)
    for name in queues:
        faulty = _faulty_above(name, queues, found)
        if faulty and name not in found:
            found[name] = f"spec.parent: queue {faulty!r} above it is not active"
    return found


def rooted(queues: Mapping[str, Queue]) -> set[str]:
    """Return the queues from which the parents lead to one without parent."""
    found: set[str] = set()
    for name in queues:
        way, at = set[str](), name
        while at in queues and at not in way | found:
            way.add(at)
            at = queues[at].parent
        if not at or at in found:
            found |= way
    return found


def _own_fault(queue: Queue, queues: Mapping[str, Queue]) -> str:
    """Return what is wrong with the queue itself; empty where nothing is."""
    if queue.parent and queue.parent not in queues:
        return f"spec.parent: there is no GangQueue {queue.parent!r}"
    if circle := _circle(queue.name, queues):
        return f"spec.parent: the parents form a circle: {' -> '.join(circle)}"
    return _fault_of_limits(queue)


def _fault_of_limits(queue: Queue) -> str:
    for field, limits in (
        ("borrowingLimit", queue.borrowing_limit),
        ("lendingLimit", queue.lending_limit),
    ):
        if limits and not queue.parent:
            return f"spec.{field}: a queue without parent has no queue to share with"
    return ""


def _fault_of_lending(queue: Queue) -> str:
    """Say that a queue would lend more than it has; one above others lends what those have too.

    What those have is not compared: an edit of one of them would stop all.
    """
    for resource, limit in sorted(queue.lending_limit.items()):
        quota = queue.quota.get(resource, 0)
        if limit > quota:
            return (
                f"spec.lendingLimit[{resource}]: {limit} is more than the quota of {quota}; "
                f"allowed is at most the quota"
            )
    return ""


def _circle(name: str, queues: Mapping[str, Queue]) -> list[str]:
    """Return the way from a queue over its parents back to itself; empty where there is none."""
    way, at = [name], queues[name].parent
    while at in queues and at not in way:
        way.append(at)
        at = queues[at].parent
    return [*way, name] if at == name else []


def _faulty_above(name: str, queues: Mapping[str, Queue], faulty: Mapping[str, str]) -> str:
    """Return the nearest of the queues above that is not active; empty where all are."""
    seen, at = {name}, queues[name].parent
    while at in queues and at not in seen:
        if at in faulty:
            return at
        seen.add(at)
        at = queues[at].parent
    return ""
