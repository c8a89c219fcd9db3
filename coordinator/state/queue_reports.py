"""Requests the writes that GangQueues lack: their status, and the finalizer.

A queue is looked at a moment after its counts, its rules or its object changed, so that the start
of a gang costs one write. The status is computed at that time.
"""

from collections.abc import Iterator, Sequence

from coordinator.messages.actions import QueueAction, WriteQueueFinalizers, WriteQueueStatus
from coordinator.queues.holes import QueueHoles
from coordinator.queues.reports import QueueWrite
from coordinator.queues.status import (
    Status,
    Usage,
    above,
    active_reason,
    reason_of,
    recorded,
    status_of,
    usage_of,
    with_durations,
    with_usage,
)
from coordinator.queues.write_budget import NEVER
from coordinator.state.average_usage import settle_usage
from coordinator.state.cycle.device_facts import class_resources
from coordinator.state.known import Known
from kube.objects.names import QUEUE_FINALIZER
from kube.objects.queues.queue import GangQueue
from runtime.controller.moment import Moment
from scheduling.state.node_snapshot import NodeSnapshot

SETTLE = 1.0
"""Seconds after a change until a queue is looked at."""


def report(known: Known, moment: Moment) -> list[QueueAction]:
    """Return the writes that are due and within the budget."""
    settle_usage(known, moment)
    _mark(known, moment.now)
    reports = known.reports
    if known.blind or reports.next_at is None or reports.next_at > moment.now:
        return []
    return list(_writes(known, moment))


def _mark(known: Known, now: float) -> None:
    """Plan a look at the queues that changed, and at those above, which count their use as well."""
    reports, registry = known.reports, known.queues
    labels = (each.metadata.labels for each in known.cache.namespaces.values())
    changed = reports.census.changed
    changed |= reports.selected.refresh(registry.selections, labels)
    counted_above = {each for name in changed for each in above(name, registry)}
    for name in changed | counted_above:
        if name in registry.objects:
            soon = max(now + SETTLE, _again_at(known, registry.objects[name]))
            soon = now if _is_urgent(registry.objects[name]) else soon
            reports.due[name] = min(reports.due.get(name, soon), soon)
    changed.clear()
    _mark_turn(known, now)


def _mark_turn(known: Known, now: float) -> None:
    """Plan a look at the next queue whose room on nodes may have changed."""
    reports, objects = known.reports, known.queues.objects
    edition = known.cache.table.edition + known.cache.devices.index.edition
    reports.turns.moved(edition, len(objects))
    if reports.turns.next_at is None or reports.turns.next_at > now:
        return
    for name in reports.turns.take(sorted(objects), now):
        reports.turns.came.add(name)
        reports.due.setdefault(name, max(now, reports.budget.again_at(name)))


def _writes(known: Known, moment: Moment) -> Iterator[QueueAction]:
    reports, tree = known.reports, known.queues.tree
    usage, room = usage_of(tree, known.quota.held(tree)), _holes(known)
    for _, name in sorted((at, name) for name, at in reports.due.items() if at <= moment.now):
        if reports.budget.free_at > moment.now:
            return
        del reports.due[name]
        found = known.queues.objects[name]
        action = _write(known, found, usage, room, moment)
        if action is not None:
            yield action


def _holes(known: Known) -> QueueHoles:
    """Count GPUs, and devices by class where some gang claims any, once a queue is written."""

    def read() -> tuple[NodeSnapshot, Sequence[str]]:
        devices = class_resources(known)
        return devices.nodes, (*known.gpu_pools.resources, *devices.names)

    return QueueHoles(read, known.queues.node_rules)


def _write(
    known: Known, found: GangQueue, usage: Usage, room: QueueHoles, moment: Moment
) -> QueueAction | None:
    """Return the write that a queue lacks; where it must wait, a later look is planned."""
    reports, meta = known.reports, found.metadata
    write = reports.write_of(meta.name)
    if write.under_way or write.outdated == meta.resource_version:
        return None  # the end of the write, or the watch, has it looked at again
    if write.attempts.not_before > moment.now:
        reports.due[meta.name] = write.attempts.not_before
        return None
    finalizers = _finalizers(found, held=reports.census.admitted[meta.name])
    if finalizers != meta.finalizers:
        reports.budget.spend(moment.now)
        asked = WriteQueueFinalizers(meta.name, meta.uid, meta.resource_version, finalizers)
        return _send(write, asked)
    return _write_status(known, found, usage, room, moment)


def _finalizers(found: GangQueue, held: int) -> tuple[str, ...]:
    """Return the finalizers that a queue should have: ours until it is deleted and holds nothing.

    It is there before the first gang is, so that no queue goes while one is being admitted.
    """
    finalizers = found.metadata.finalizers
    if not _is_ending(found):
        return finalizers if QUEUE_FINALIZER in finalizers else (*finalizers, QUEUE_FINALIZER)
    if held:
        return finalizers
    return tuple(each for each in finalizers if each != QUEUE_FINALIZER)


def _write_status(
    known: Known, found: GangQueue, usage: Usage, room: QueueHoles, moment: Moment
) -> QueueAction | None:
    reports, meta = known.reports, found.metadata
    status = _status(known, found, usage, room, moment)
    if not _is_news(status, recorded(found), its_turn=meta.name in reports.turns.came):
        reports.turns.came.discard(meta.name)
        return None
    again = _again_at(known, found)
    if again > moment.now:
        reports.due[meta.name] = again
        return None
    reports.budget.spend(moment.now, meta.name)
    reports.turns.came.discard(meta.name)
    status = with_usage(status, known.fair.renewed(meta.name, moment))
    asked = WriteQueueStatus(meta.name, meta.uid, meta.resource_version, status, found.status)
    return _send(reports.write_of(meta.name), asked)


def _status(
    known: Known, found: GangQueue, usage: Usage, room: QueueHoles, moment: Moment
) -> Status:
    name, reports = found.metadata.name, known.reports
    selected, holes, told = reports.selected.names, room.of(name), known.fair.told(name)
    stamp = moment.stamp
    status = status_of(found, known.queues, reports.census, usage, selected, stamp, holes, told)
    return with_durations(status, found, known.learned.of(found), stamp)


def _again_at(known: Known, found: GangQueue) -> float:
    """Say when a status may be written: at any time one that contradicts those above the queue."""
    name = found.metadata.name
    outdated = active_reason(found) not in ("", reason_of(name, known.queues))
    return NEVER if outdated else known.reports.budget.again_at(name)


def _is_news(status: Status, before: Status, *, its_turn: bool) -> bool:
    """Say whether a status is to be written: for its holes alone only when its turn has come."""
    if its_turn:
        return status != before
    return {**status, "holes": None} != {**before, "holes": None}


def _send(write: QueueWrite, action: QueueAction) -> QueueAction | None:
    """Note that a write is under way; not one that the API server took and made nothing of."""
    if write.sent == action:
        return None
    write.under_way, write.sent = True, action
    return action


def _is_urgent(found: GangQueue) -> bool:
    """Say whether a write may be missing that keeps a queue from going, or lets it go."""
    return _is_ending(found) or QUEUE_FINALIZER not in found.metadata.finalizers


def _is_ending(found: GangQueue) -> bool:
    return found.metadata.deletion_timestamp is not None
