"""Keeps the Gang object of a RayCluster in line with what is decided; one write at a time."""

from typing import Any

from coordinator.gang import ending
from coordinator.gang.attempts import LAST_RETRY
from coordinator.gang.demand import NotReady
from coordinator.gang.eviction.endings import endings_json
from coordinator.gang.record import Record, Writing
from coordinator.gang.view import GangView
from coordinator.messages.actions import Action, CreateGang, PatchGangSpec, WriteGangStatus
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.status.gang_status import status_of
from coordinator.record.spec import body_of, is_of, spec_of, spec_recorded
from coordinator.record.status import recorded
from coordinator.record.urgency import GATHER_DELAY, Status
from kube.objects.gang import Gang
from scheduling.model.verdict import Reason


def sync_record(look: Look) -> StepResult:
    """Take in the record as it is now; one of an earlier RayCluster of this name must go."""
    view, record = look.view, look.view.record
    view.forget_pods({pod.uid for pod in look.pods})
    gang = look.scene.cache.gangs.get(view.key)
    record.outlived = ""
    if gang is None or not is_of(gang, view.cluster_uid):
        record.gang, record.written, record.sent = None, {}, {}
    elif gang is not record.gang:
        read_record(record, gang)
    _hear_schema(record)
    if gang is None or record.gang is not None:
        return NOTHING_DONE
    record.outlived = ending.outlived_by(gang)
    return StepResult(clear_away(look, gang))


def read_record(record: Record, gang: Gang) -> None:
    """Take in the Gang object of this RayCluster."""
    record.gang = gang
    record.written = recorded(gang.status)


def _hear_schema(record: Record) -> None:
    """Find out whether one part, and nothing else, is lost of what is written.

    Without the phase of the held start it cannot be said of a RayCluster that Muster suspended it,
    and without its group nothing of a gang is started that starts together with others.
    """
    for part, ways in _LOSSES.items():
        if record.sent.get(part) and not record.writing:
            is_lost = any(_loses(record, *parts) for parts in ways)
            record.drops = record.drops | {part} if is_lost else record.drops - {part}


_LOSSES: dict[str, list[tuple[str, ...]]] = {
    "held": [("held",)],
    "together": [("together",), ("held", "together")],
}
"""What is missing in a record where a part of its status is lost."""


def _loses(record: Record, *parts: str) -> bool:
    others = {key: said for key, said in record.sent.items() if key not in parts}
    return record.written == others


def clear_away(look: Look, gang: Gang) -> list[Action]:
    """Have a Gang that is not, or no longer, the record of the RayCluster reserve nothing."""
    if not _is_writable(look):
        return []
    actions = ending.clear_away(look.view.key, gang, look.scene.epoch)
    look.view.record.writing = Writing() if actions else None
    return actions


def keep_queue(look: Look, gang: Gang) -> list[Action]:
    """Have the record of what was opted out say no more than the queue that its pods count in."""
    if not _is_writable(look):
        return []
    actions = ending.keep_queue(look.view.key, gang, look.scene.epoch)
    look.view.record.writing = Writing() if actions else None
    return actions


def write_record(look: Look) -> StepResult:
    """Create the Gang, or bring its spec, then its status in line."""
    return StepResult(_write(look)) if _is_writable(look) else NOTHING_DONE


def _is_writable(look: Look) -> bool:
    record = look.view.record
    return not record.writing and record.attempts.not_before <= look.now


def _write(look: Look) -> list[Action]:
    view, record = look.view, look.view.record
    if record.gang is None and (view.understood.terminating or record.outlived):
        return []  # the garbage collector may have been faster; or its name is not free
    found = view.understood
    spec = spec_of(view.cluster_uid, found.queue, found.priority, found.terms)
    if record.gang is None:
        return _create(look, body_of(look.source, spec))
    if spec != spec_recorded(record.gang) and not _decides(view):
        record.writing = Writing()
        meta = record.gang.metadata
        return [PatchGangSpec(view.key, meta.uid, meta.resource_version, spec, record.gang.spec)]
    return _write_status(look, record.gang)


def _decides(view: GangView) -> bool:
    """Whether pods wait for the placement, or for what is stopped, to be written."""
    unwritten = view.reservation.placement is not None and not view.survey.durable
    return unwritten or not endings_written(view)


def endings_written(view: GangView) -> bool:
    """Whether the record says what is being stopped, and nothing else."""
    written: list[Any] = view.record.written.get("evictions", [])
    return written == endings_json(view.eviction.endings)


def _create(look: Look, body: dict[str, Any]) -> list[Action]:
    """Create the Gang when a pod has come: that tells the priority, which the spec holds."""
    view, record, asked = look.view, look.view.record, look.view.queueing.asked
    record.due = record.fall_behind(look.now) + GATHER_DELAY
    incomplete = isinstance(asked, NotReady) and asked.reason == Reason.GANG_INCOMPLETE
    exist = any(each.exist for each in view.survey.standing)
    if incomplete and look.now < record.due and not exist:
        return []
    record.writing, record.due = Writing(), None
    return [CreateGang(view.key, body)]


def _write_status(look: Look, gang: Gang) -> list[Action]:
    view, record, scene, now = look.view, look.view.record, look.scene, look.now
    if not scene.lines.are_read and _only_waits(view):
        return []
    asked = view.queueing.asked
    not_ready = asked if isinstance(asked, NotReady) else None
    status = status_of(view, not_ready, epoch=scene.epoch, stamp=scene.moment.stamp)
    refused = view.queueing.refusal is not None and not_ready is None and view.waits_for_room
    record.urgency = record.urgency.compared(status, record.written, now)
    due = record.urgency.due(status, record.written, scene.activity, refused=refused)
    record.due = _not_again_at_once(record, status, due)
    if _stands_in_line(look, status) or record.due is None or record.due > now:
        return []
    replaces = status.get("placement") != record.written.get("placement")
    record.writing, record.due, record.sent = Writing(replaces, record.urgency), None, status
    record.urgency = record.urgency.sent(status, record.written, now)
    meta, decides, before = gang.metadata, _decides(view), gang.status
    return [WriteGangStatus(view.key, meta.uid, meta.resource_version, status, decides, before)]


def _only_waits(view: GangView) -> bool:
    """Say whether a record would only say why a gang waits: no decision depends on it."""
    written, held = view.record.written, view.held
    decided = written.keys() & {"placement", "planned", "evictions"} or view.eviction.endings
    as_held = written.get("held", {}).get("phase", "") == (held.phase if held.holds else "")
    return view.waits_for_room and as_held and not decided and view.queueing.planned is None


def _stands_in_line(look: Look, status: Status) -> bool:
    """Say whether the gang must wait for its turn; nothing else then has it written."""
    view, record, lines = look.view, look.view.record, look.scene.lines
    waits = view.waits_for_room or view.queueing.left_out is not None
    line = None
    if record.due is not None:
        line = lines.line_of(status, record.written, waits=waits)
    lines.drop(view.key, but=line)
    if line is None or record.due is None or line.admits(view.key):
        return False
    later = status.get("position") == record.written.get("position")
    line.plan(view.key, record.due, later=later)
    record.due = None
    return True


def _not_again_at_once(record: Record, status: Status, due: float | None) -> float | None:
    """When to write a status; if it was taken before, others or an older schema drop a part."""
    if due is None or status != record.sent:
        return due
    return max(due, record.urgency.written_at + LAST_RETRY)
