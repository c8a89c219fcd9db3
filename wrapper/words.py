"""Describes the progress of an AppWrapper in the terms of `appwrapper.status.told`."""

from collections.abc import Mapping

import msgspec

from appwrapper.completion import Completion
from appwrapper.phases import Phase
from appwrapper.spec.wrapped import Generation
from appwrapper.status import told
from appwrapper.status.conditions import with_notices
from appwrapper.status.states import status_of
from appwrapper.status.told import PodCounts, Told
from appwrapper.status.waiting import waiting_step
from kube.codec.fields import moment_of
from kube.objects.app_wrapper import AppWrapperStatus
from wrapper.steps import Look, Reason, may_start

_FAILED: Mapping[str, told.Step] = {
    Reason.DEADLINE_EXCEEDED: told.Step.OVERDUE,
    Reason.ITEM_CREATION_FAILURE: told.Step.NOT_CREATED,
    Reason.MIN_PODS_NOT_RUNNING: told.Step.GIVEN_UP,
    Reason.PODS_NOT_READY: told.Step.GIVEN_UP,
    Reason.PODS_FAILED: told.Step.FAILED_PODS,
}
_RESETTING: Mapping[str, told.Step] = {
    Reason.MIN_PODS_NOT_RUNNING: told.Step.TOO_FEW,
    Reason.PODS_NOT_READY: told.Step.TOO_FEW,
    Reason.PODS_FAILED: told.Step.FAILED_PODS,
}
_STEPS: Mapping[str, told.Step] = {
    Phase.RESUMING: told.Step.DISPATCHED,
    Phase.SUSPENDING: told.Step.STOPPING,
    Phase.SUCCEEDED: told.Step.SUCCEEDED,
}


def worded(look: Look, after: AppWrapperStatus) -> AppWrapperStatus:
    """Return a status with the words of its generation beside ours."""
    contents = look.contents
    generation = Generation.MCAD if contents.is_mcad else Generation.CODEFLARE
    pods = look.pods
    said = Told(
        step=_step(look, after),
        phase=Phase(after.phase),
        moment=look.moment.wall,
        reason=after.reason,
        message=after.message,
        detail=_detail(look, after),
        pods=PodCounts(contents.pods, pods.pending, pods.running, pods.succeeded, pods.failed),
        totals=pods.totals,
        min_available=contents.minimum,
        priority=float(contents.priority),
        first_seen=moment_of(after.first_seen),
        first_dispatched=moment_of(after.first_dispatched),
        requeued_seconds=after.requeueing_time_in_seconds,
        requeued=after.number_of_requeueings,
        resets=after.resetting_count,
        pending_pods=pods.unschedulable,
    )
    found = status_of(generation, said, after)
    # Counts and times are those of either generation, exactly as they were written first.
    return msgspec.structs.replace(
        found,
        transition_count=after.transition_count,
        first_seen=after.first_seen,
        first_dispatched=after.first_dispatched,
        conditions=with_notices(found.conditions, contents.notices, look.moment.wall),
    )


def _step(look: Look, after: AppWrapperStatus) -> told.Step:
    match after.phase:
        case Phase.SUSPENDED:
            return _queued(look, after)
        case Phase.RUNNING:
            if look.progress.completion is Completion.HOLD:
                return told.Step.HOLDING
            return told.Step.RUNNING if look.pods.running else told.Step.DISPATCHED
        case Phase.RESETTING:
            return _RESETTING.get(after.reason, told.Step.STOPPING)
        case Phase.FAILED:
            return _FAILED.get(after.reason, told.Step.BROKEN)
        case _:
            return _STEPS[after.phase]


def _queued(look: Look, after: AppWrapperStatus) -> told.Step:
    if look.contents.suspended:
        return told.Step.SUSPENDED
    if may_start(look.wrapper, look.signal):
        return told.Step.FIRST
    return waiting_step(after.reason)


def _detail(look: Look, after: AppWrapperStatus) -> str:
    """Complete what MCAD says of a failure: its text, or the limit in seconds."""
    if after.reason != Reason.DEADLINE_EXCEEDED:
        return after.message
    asked = look.contents.scheduling.dispatch_duration
    return str(asked.limit if asked is not None else 0)
