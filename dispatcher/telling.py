"""Decides what to report on one object on the manager: status, Warnings, members' answers. Pure."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec.structs import replace

from appwrapper.status.sent import status_without_copy as wrapper_without_copy
from dispatcher.candidates import one_line, refusals
from dispatcher.copies import why_never
from dispatcher.messages import (
    EVENT,
    RECORD,
    STATUS,
    MirrorStatus,
    TellWarning,
    WriteRecord,
    Written,
)
from dispatcher.mirroring import differs, status_at_end, status_of, status_without_copy
from dispatcher.preempting import not_over
from dispatcher.protocol.objects import Phase
from dispatcher.reading import Original, Turn, parsed
from dispatcher.view import OLDER, Look
from kube.gang.sent import WRAPPER_RESOURCES
from kube.objects.clusters.dispatch import CLOSED, OFFERED, STARTED, GangDispatch

TOLD_EVERY = 2.0
"""Seconds from one record of what members say to the next."""
WAITS_TOLD_EVERY = 30.0
"""Seconds from one status that says why an AppWrapper waits to the next, for the same reason."""


def told(look: Look) -> Iterator[Written]:
    """Yield the reports on an object that can be written now."""
    original, turn = look.view.original, look.view.turn
    if original is None or original.is_going or turn is None:
        return
    yield from _mirrored(look, original, turn)
    if turn.dispatch is None:
        return
    for reason, message in islice(look.view.warnings.pending.items(), 1):
        yield EVENT, TellWarning(original, reason, message)
    after = _record_told(look, original, turn.dispatch)
    if after == turn.dispatch or not after.is_open or after.term != look.view.leader.term:
        return
    due = look.view.told_at + TOLD_EVERY
    if after.phase == turn.dispatch.phase and due > look.moment.now:
        look.wakes.append(due)
        return
    yield RECORD, WriteRecord(turn, after, informs=True)


def _record_told(look: Look, original: Original, dispatch: GangDispatch) -> GangDispatch:
    """Return the record with the members' latest answers on the gang."""
    if not dispatch.is_open:
        return dispatch
    if dispatch.cluster:
        answer = look.answer(dispatch.cluster)
        is_started = dispatch.phase == STARTED or (answer and answer.phase == Phase.STARTED)
        phase = STARTED if is_started else OFFERED
        reason, message = "", _trouble(look, dispatch.cluster, phase)
        if phase == STARTED and answer is not None and not message:
            reason, message = answer.reason, one_line(answer.message)
        return replace(dispatch, phase=phase, reason=reason, message=message)
    if look.clusters is None:
        return dispatch
    said = look.trouble() | {
        name: OLDER if look.view.is_older(each) else each.message or each.reason
        for name, each in look.all_answers()
        if each.attempt == dispatch.attempt and each.phase != CLOSED
    }
    faults = {name: each for name, each in look.view.faults.items() if name in look.members}
    place = original.metadata.namespace
    lines = refusals(look.clusters, place, look.members, said | faults)
    leave = not_over(dispatch, look.moment.wall)
    return replace(dispatch, message=why_never(original), refusals=lines, stops_gangs=leave)


def _trouble(look: Look, cluster: str, phase: str) -> str:
    member, fault = look.members.get(cluster), look.view.faults.get(cluster, "")
    if member is not None and phase == OFFERED:
        fault = fault or member.lease_fault
    if member is None:
        return f"there is no MemberCluster {cluster} any more"
    if not member.up:
        fence = look.view.dispatch.lost_after_seconds if look.view.dispatch else 0
        then = f"; it is sent elsewhere once that lasted {fence} s" if fence else ""
        return one_line(f"{cluster} is not connected: {member.why_down}") + then
    return one_line(f"{cluster}: {fault}") if fault else ""


def _mirrored(look: Look, original: Original, turn: Turn) -> Iterator[Written]:
    """Write into the original the status of its copy, or that there is no copy any more."""
    record = turn.dispatch
    ended = record if record is not None and record.end else None
    cluster = ended.cluster if ended is not None else look.view.cluster
    member, copy = look.members.get(cluster), look.view.copy_on(cluster)
    if cluster and (member is None or not member.up):
        return  # it is as it was last seen
    status: dict[str, Any] | None
    if copy is not None and not parsed(copy.status):
        return  # KubeRay is about to say how it is
    if copy is not None:
        status = _settled(look, original, status_of(original, copy, cluster))
    elif original.kind in WRAPPER_RESOURCES:
        status = _of_wrapper(look, original, turn)
    elif record is None:
        return
    elif ended is not None:
        status = status_at_end(original, ended)
    else:
        said = f"it starts on cluster {cluster}" if cluster else "it waits for a cluster"
        status = status_without_copy(original, said, look.moment.stamp)
    if status is None:
        return
    if differs(original, status) and status != look.view.mirrored:
        yield STATUS, MirrorStatus(original, status)


def _settled(look: Look, original: Original, status: dict[str, Any]) -> dict[str, Any] | None:
    """Return the status of a copy once it has settled: KubeRay writes several in a second."""
    settling, now = look.view.settling, look.moment.now
    if not differs(original, status) or status == look.view.mirrored:
        settling.end()
        return None
    due = settling.due(status, now)
    if due > now:
        look.wakes.append(due)
        return None
    return status


def _of_wrapper(look: Look, original: Original, turn: Turn) -> dict[str, Any] | None:
    """Return the status of an AppWrapper without a copy; None where it is told later, or never."""
    spec, known = parsed(original.spec), parsed(original.status)
    due = look.view.mirrored_at + WAITS_TOLD_EVERY
    if turn.waits and turn.waits.reason == known.get("reason") and due > look.moment.now:
        look.wakes.append(due)
        return None
    return wrapper_without_copy(spec, known, turn.dispatch, turn.waits, look.moment.wall)
