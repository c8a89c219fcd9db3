"""Words the status of an AppWrapper as MCAD does."""

from typing import NamedTuple

from msgspec.structs import replace

from appwrapper.status.conditions import Conditions, appended, is_last, micro_stamp
from appwrapper.status.told import Step, Told
from kube.objects.app_wrapper import AppWrapperStatus

PENDING, RUNNING, COMPLETED = "Pending", "Running", "Completed"
FAILED, DELETED, HOLDING = "Failed", "Deleted", "RunningHoldCompletion"
NO_ROOM = "Insufficient resources to dispatch AppWrapper."
NO_QUOTA = "Insufficient quota and/or resources to dispatch AppWrapper."
NO_CLUSTER = "Cannot find a cluster with enough resources to dispatch AppWrapper."
NOT_RUNNABLE, PREEMPTED = "AppWrapperNotRunnable.", "PreemptionTriggered"


class _Words(NamedTuple):
    """What MCAD says of a step; `last` is the condition that queuejobstate repeats."""

    state: str
    last: str
    reason: str
    sender: str
    can_run: bool = False


_MCAD = {
    Step.QUEUED: _Words(PENDING, "Queueing", "AwaitingHeadOfLine", "worker - setQueueing"),
    Step.SUSPENDED: _Words(PENDING, "Queueing", "AwaitingHeadOfLine", "worker - setQueueing"),
    Step.STOPPING: _Words(PENDING, "Backoff", PREEMPTED, "[backoff] - Rejoining"),
    Step.FIRST: _Words(PENDING, "HeadOfLine", "FrontOfQueue.", "ScheduleNext - setHOL"),
    Step.NO_ROOM: _Words(PENDING, "Backoff", NOT_RUNNABLE, "[backoff] - Rejoining"),
    Step.NO_QUOTA: _Words(PENDING, "Backoff", NOT_RUNNABLE, "[backoff] - Rejoining"),
    Step.NO_CLUSTER: _Words(PENDING, "Backoff", NOT_RUNNABLE, "[backoff] - Rejoining"),
    Step.DISPATCHED: _Words(
        RUNNING,
        "Dispatched",
        "AppWrapperRunnable",
        "manageQueueJob - afterEtcdDispatching",
        can_run=True,
    ),
    Step.RUNNING: _Words(
        RUNNING, "Running", "PodsRunning", "[syncQueueJob] Update pod counts", can_run=True
    ),
    Step.HOLDING: _Words(
        HOLDING,
        HOLDING,
        "SomeItemsCompleted",
        "[UpdateQueueJobs]  setRunningHoldCompletion",
        can_run=True,
    ),
    Step.SUCCEEDED: _Words(COMPLETED, COMPLETED, "PodsCompleted", "[UpdateQueueJobs] setCompleted"),
    Step.FAILED_PODS: _Words(PENDING, "Backoff", PREEMPTED, "[backoff] - Rejoining"),
    Step.TOO_FEW: _Words(PENDING, "Backoff", PREEMPTED, "[backoff] - Rejoining"),
    Step.UNSCHEDULABLE: _Words(PENDING, "Backoff", PREEMPTED, "[backoff] - Rejoining"),
    Step.OVERDUE: _Words(
        FAILED,
        FAILED,
        "",
        "PreemptQueueJobs - CanRun: false -- DispatchDeadlineExceeded",
    ),
    Step.NOT_CREATED: _Words(
        FAILED, FAILED, "ItemCreationFailure.", "manageQueueJob - afterEtcdDispatching"
    ),
    Step.BROKEN: _Words(
        FAILED, FAILED, "ItemCreationFailure.", "manageQueueJob - afterEtcdDispatching"
    ),
    Step.GIVEN_UP: _Words(
        DELETED, "PreemptCandidate", "", "PreemptQueueJobs - CanRun: false -- MinPodsNotRunning"
    ),
}


_TRIED = {Step.NO_ROOM: NO_ROOM, Step.NO_QUOTA: NO_QUOTA, Step.NO_CLUSTER: NO_CLUSTER}
"""What is said once it was tried in vain."""


def mcad_status(told: Told, status: AppWrapperStatus) -> AppWrapperStatus:
    """Return the status with the fields of MCAD's generation."""
    words, pods = _MCAD[told.step], told.pods
    return replace(
        status,
        state=words.state,
        queue_job_state=words.last,
        can_run=words.can_run,
        filter_ignore=True,
        sender=f"before {words.sender}",
        conditions=mcad_conditions(told, status.conditions),
        pending=pods.pending,
        running=0 if told.step is Step.OVERDUE else pods.running,
        succeeded=pods.succeeded,
        failed=pods.failed,
        min_available=told.min_available,
        total_cpu=_int32(told.totals.cpu),
        total_memory=_int32(told.totals.memory),
        total_gpu=_int32(told.totals.gpu),
        system_priority=told.priority,
        first_seen=micro_stamp(told.first_seen) if told.first_seen else None,
        first_dispatched=micro_stamp(told.first_dispatched) if told.first_dispatched else None,
        requeueing_time_in_seconds=told.requeued_seconds,
        number_of_requeueings=told.requeued,
        pending_pod_conditions=told.pending_pods,
    )


def mcad_conditions(told: Told, known: Conditions) -> Conditions:
    """Return the conditions that MCAD would have written by now, the last one at the end."""
    if not any(each.type in _MCAD_TYPES for each in known):
        known = appended(known, "Init", "", "", told.first_seen or told.moment)
    words, candidate = _MCAD[told.step], _preemption(told)
    if not words.reason:
        return appended(known, "PreemptCandidate", *candidate, told.moment) if candidate else known
    message = _message(told)
    if is_last(known, words.last, words.reason, message):
        return known
    if candidate:
        known = appended(known, "PreemptCandidate", *candidate, told.moment)
    if told.step is Step.RUNNING:
        known = _at_least_once(known, Step.DISPATCHED, told.moment)
    if told.step in (*_TRIED, Step.DISPATCHED):
        known = _at_least_once(known, Step.FIRST, told.moment)
    return appended(known, words.last, words.reason, message, told.moment)


_MCAD_TYPES = frozenset(("Init", *(words.last for words in _MCAD.values())))


def _at_least_once(known: Conditions, step: Step, moment: float) -> Conditions:
    """Tell of a step that was passed unseen: scripts wait for each of them."""
    words = _MCAD[step]
    if any(each.type == words.last for each in known):
        return known
    return appended(known, words.last, words.reason, "", moment)


def _preemption(told: Told) -> tuple[str, str] | None:
    """Return reason and message of why an AppWrapper is stopped, where it is for its pods."""
    pods = told.pods
    if told.step in (Step.TOO_FEW, Step.GIVEN_UP):
        counts = f"minimum={told.min_available}, running={pods.running}, completed={pods.succeeded}"
        said = f"Insufficient number of Running and Completed pods, {counts}."
        return "MinPodsNotRunning", said
    if told.step is Step.UNSCHEDULABLE:
        failed = len(told.pending_pods)
        said = f"Pods failed scheduling failed={failed}, running={pods.running}."
        return "PodsFailedScheduling", said
    if told.step is Step.OVERDUE:
        said = f"Dispatch deadline exceeded. allowed to run for {told.detail} seconds"
        return "DispatchDeadlineExceeded", said
    return None


def _message(told: Told) -> str:
    if told.step in _TRIED:
        return _TRIED[told.step]
    if candidate := _preemption(told):
        return candidate[1]
    if told.step is Step.STOPPING:
        return told.message
    return told.detail if told.step in (Step.NOT_CREATED, Step.BROKEN) else ""


def _int32(amount: int) -> int:
    """Cut an amount to what the field can hold; memory in bytes is often more."""
    return max(min(amount, 2**31 - 1), -(2**31))
