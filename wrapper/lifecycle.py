"""Decides the next step of one AppWrapper. Pure: what is known goes in, one step comes out.

    "", Suspended ──placed──▶ Resuming ──all created──▶ Running ──completed──▶ Succeeded
          ▲                      │  │                    │  │  │
          │                      │  └──────stopped───────┼▶ Suspending ──all gone──▶ Suspended
          └──all gone, paused── Resetting ◀──again───────┘  └──for good──▶ Failed

A phase is written before anything is done in it, and each step is decided anew from what is written
and what is there. So any of them may be the last of a leader: the next goes on from it.
"""

import math
from collections.abc import Callable, Mapping

from appwrapper.completion import Completion
from appwrapper.phases import Phase
from appwrapper.requeuing import dispatched_until, has_too_few, is_last, requeue_at
from appwrapper.spec.retries import is_final, may_retry
from kube.codec.fields import moment_of
from wrapper.contents import ends_noted
from wrapper.messages import Wrapper
from wrapper.steps import (
    SUSPENDING_PHASE,
    Become,
    Create,
    Delete,
    Inspect,
    Look,
    Reason,
    Record,
    Remember,
    Rest,
    Step,
    may_start,
    recorded,
)

FIRST_READ = 1.25
"""Seconds after the end of one of its pods until the items are read: a Job says so 1 s after it."""

QUIET_READ, QUIET_DOUBLINGS = 8.0, 4
"""Seconds until items are read of which no pod has ended, and how far pauses have grown then."""

TOLD_AFTER = 30.0
"""Seconds of a deletion until it is told what it waits for."""

LEFT = "; left to be deleted: "
"""Where that begins in a message; before it stands why the phase began."""

MCAD_PAUSE = 20.0
"""Seconds until one of MCAD's generation is queued again: its BACKOFFTIME."""


def next_step(look: Look) -> Step:
    """Return what to do next. Of an AppWrapper that is deleted the garbage collector takes care."""
    if look.wrapper.metadata.deletion_timestamp:
        return Rest()
    decide = _DECIDE.get(look.wrapper.status.phase)
    return decide(look) if decide is not None else Rest()


def is_known(phase: str) -> bool:
    """Say whether a phase is one of ours; another's controller may have written one of its own."""
    return phase in _DECIDE


def _wait(look: Look, seconds: float) -> Rest:
    return Rest(look.moment.now + max(seconds, 0.0))


# --- while it is queued -----------------------------------------------------------------------


def _queued(look: Look) -> Step:
    contents = look.contents
    if contents.fault or contents.suspended or look.pods.strangers:
        return Rest()
    if not may_start(look.wrapper, look.signal):
        return Rest()
    return Become(Phase.RESUMING, Reason.PLACED, "the gang has its place; the items are created")


# --- while its items exist --------------------------------------------------------------------


def _resuming(look: Look) -> Step:
    found = _stopped(look) or _not_creatable(look)
    if found is not None:
        return found
    if not set(look.contents.items) <= set(recorded(look.wrapper)):
        return Record()
    progress = look.progress
    left = tuple(at for at in range(len(look.contents.items)) if at not in progress.created)
    if not left:
        return Become(Phase.RUNNING, Reason.ITEMS_CREATED, _created(look))
    if look.moment.now < progress.pause.not_before:
        return Rest(progress.pause.not_before)
    return Create(left)


def _not_creatable(look: Look) -> Become | None:
    """Say that an item cannot be created, for good or for too long."""
    progress = look.progress
    if look.contents.fault:
        return Become(Phase.FAILED, Reason.ITEM_CREATION_FAILURE, look.contents.fault)
    if progress.trouble and progress.lasts:
        return Become(Phase.FAILED, Reason.ITEM_CREATION_FAILURE, progress.trouble)
    if progress.trouble and progress.forbidden:
        return Become(Phase.SUSPENDING, Reason.ITEM_CREATION_FAILURE, progress.trouble)
    if progress.trouble and look.moment.now >= _given_up_at(look):
        return _again(look, Reason.ITEM_CREATION_FAILURE, progress.trouble)
    return None


def _given_up_at(look: Look) -> float:
    """Return until when is tried to create an item that cannot be created but might."""
    return look.progress.trouble_since + look.contents.patience.admission


def _created(look: Look) -> str:
    count = len(look.contents.items)
    return f"all {count} items are created" if count != 1 else "its item is created"


def _running(look: Look) -> Step:
    found = _stopped(look) or _over_time(look) or _ended(look)
    found = found or (_too_few(look) if look.contents.is_mcad else _unhealthy(look))
    if found is not None:
        return found
    if not set(look.progress.ends) <= set(ends_noted(look.wrapper.status).items()):
        return Remember(look.progress.ends)
    next_read = _read_at(look)
    if look.moment.now >= next_read:
        return Inspect(_is_quiet(look))
    deadline = min(_limit_at(look), _requeue_at(look), _ready_until(look)) - look.moment.wall
    return Rest(min(next_read, look.moment.now + deadline, _repaired_until(look)))


def _read_at(look: Look) -> float:
    """Return when its items are read: not at once where its pods are only just starting."""
    at = look.progress.pause.not_before
    if at or not _is_quiet(look):
        return at
    return look.moment.now + max(QUIET_READ - look.lasted, 0.0)


def _is_quiet(look: Look) -> bool:
    """Say that items that have pods end later: no pod has ended. Few end otherwise (RayJobs)."""
    return look.contents.pods > 0 and not (look.pods.succeeded or look.pods.failed)


def _stopped(look: Look) -> Become | None:
    """Say why it is stopped, by a person or by the coordinator."""
    signal = look.signal
    if look.contents.suspended:
        return Become(Phase.SUSPENDING, Reason.SUSPENDED, "spec.suspend is true")
    if signal is None or signal.of != look.wrapper.metadata.uid:
        return None
    if signal.held != SUSPENDING_PHASE:
        return None
    reason = signal.reason or Reason.STOPPED
    return Become(Phase.SUSPENDING, reason, signal.message or "the gang gave its place back")


def _over_time(look: Look) -> Become | None:
    if look.moment.wall < _limit_at(look):
        return None
    asked = look.contents.scheduling.dispatch_duration
    seconds = asked.limit if asked is not None else 0
    said = f"Dispatch deadline exceeded. allowed to run for {seconds} seconds"
    return Become(Phase.FAILED, Reason.DEADLINE_EXCEEDED, said)


def _ended(look: Look) -> Become | None:
    """Say that it completed, or that an item is lost or failed."""
    match look.progress.completion:
        case Completion.SUCCEEDED:
            return Become(Phase.SUCCEEDED, Reason.COMPLETED, "all items that end have completed")
        case Completion.FAILED:
            return _unless_final(look, Reason.ITEM_FAILED, "an item says that it failed")
    if look.progress.missing:
        said = f"{look.progress.missing}; it is not created again"
        return Become(Phase.FAILED, Reason.ITEM_MISSING, said)
    return None


def _too_few(look: Look) -> Become | None:
    """Say that fewer pods run than must, for longer than is allowed; as MCAD says it."""
    pods = look.pods
    if look.moment.wall < _requeue_at(look):
        return None
    said = (
        f"Insufficient number of Running and Completed pods, minimum={look.contents.minimum}, "
        f"running={pods.running}, completed={pods.succeeded}."
    )
    return _again(look, Reason.MIN_PODS_NOT_RUNNING, said)


def _unhealthy(look: Look) -> Become | None:
    """Say that pods stay failed, or were never ready, for longer than CodeFlare's terms allow."""
    pods = look.pods
    if look.moment.now >= _repaired_until(look):
        failed = f"{pods.failed} pod{'s are' if pods.failed != 1 else ' is'} failed"
        return _unless_final(look, Reason.PODS_FAILED, failed)
    if look.moment.wall >= _ready_until(look):
        counts = f"{pods.pending} pending, {pods.running} running, {pods.succeeded} succeeded"
        said = f"of {look.contents.needed} pods that must run at once: {counts}"
        return _unless_final(look, Reason.PODS_NOT_READY, said)
    return None


def _repaired_until(look: Look) -> float:
    """Return until when failed pods are to be replaced (monotonic); infinity without any."""
    since = look.progress.failed_since
    if since is None or look.contents.is_mcad:
        return math.inf
    return since + look.contents.patience.failure


def _ready_until(look: Look) -> float:
    """Return until when all pods must run, in seconds since 1970; infinity once they did.

    Failed pods have a time of their own.
    """
    pods, patient, status = look.pods, look.contents.patience, look.wrapper.status
    were_ready = look.progress.were_ready or _were_ready(look.wrapper)
    if look.contents.is_mcad or were_ready or pods.failed:
        return math.inf
    exist = pods.pending + pods.running + pods.succeeded >= look.contents.needed
    return moment_of(status.phase_since) + (patient.warmup if exist else patient.admission)


def _were_ready(wrapper: Wrapper) -> bool:
    """Say whether an earlier leader wrote that all pods ran at once since the items exist."""
    status = wrapper.status
    written = (each for each in status.conditions if each.type == "PodsReady")
    return any(
        each.status == "True"
        or moment_of(each.last_transition_time) > moment_of(status.phase_since)
        for each in written
    )


def _unless_final(look: Look, reason: Reason, message: str) -> Become:
    """Queue it again, but not where an exit code says that it would fail again."""
    if look.contents.is_mcad or not is_final(look.contents.patience, look.pods.exits):
        return _again(look, reason, message)
    codes = ", ".join(map(str, sorted(look.pods.exits)))
    return Become(Phase.FAILED, reason, f"{message} (exit codes {codes}: not started again)")


def _again(look: Look, reason: Reason, message: str) -> Become:
    """Take all back and queue it again; after the last time it has failed."""
    starts = look.restarts + 1
    if not _is_last(look):
        return Become(Phase.RESETTING, reason, message, again=True)
    said = f"{message} (given up after {starts} start{'s' if starts != 1 else ''})"
    return Become(Phase.FAILED, reason, said)


def _is_last(look: Look) -> bool:
    contents = look.contents
    if contents.is_mcad:
        return is_last(contents.scheduling.requeuing, look.restarts)
    return not may_retry(contents.patience, look.restarts)


def _limit_at(look: Look) -> float:
    """Return until when it may run, from its first start on, in seconds since 1970."""
    first = moment_of(look.wrapper.status.first_dispatched) or look.moment.wall
    return dispatched_until(look.contents.scheduling.dispatch_duration, first)


def _requeue_at(look: Look) -> float:
    """Return when it is queued again for its few pods; infinity where they suffice."""
    scheduling, status = look.contents.scheduling, look.wrapper.status
    if not has_too_few(scheduling, look.pods.running, look.pods.succeeded):
        return math.inf
    since = moment_of(status.phase_since)
    return requeue_at(scheduling, status.requeueing_time_in_seconds, since)


# --- while its items are taken back -----------------------------------------------------------


def _suspending(look: Look) -> Step:
    return _cleared(look) or _suspended(look)


def _resetting(look: Look) -> Step:
    found = _cleared(look)
    if found is not None:
        return found
    if recorded(look.wrapper):
        return Record(gone=True)
    pause = MCAD_PAUSE if look.contents.is_mcad else look.contents.patience.pause
    if look.lasted < pause and not look.contents.suspended:
        return _wait(look, pause - look.lasted)
    return _suspended(look)


def _suspended(look: Look) -> Become:
    status = look.wrapper.status
    return Become(Phase.SUSPENDED, status.reason, status.message.partition(LEFT)[0])


def _failed(look: Look) -> Step:
    return _over(look, look.contents.patience.failed_ttl)


def _succeeded(look: Look) -> Step:
    """Leave all as it is: it goes with the AppWrapper; of CodeFlare's generation after a week."""
    return _over(look, math.inf if look.contents.is_mcad else look.contents.patience.success_ttl)


def _over(look: Look, kept: float) -> Step:
    """Delete the items of an AppWrapper that is over, after a time."""
    if not recorded(look.wrapper):
        return Rest()
    if look.lasted < kept:
        return _wait(look, kept - look.lasted) if kept < math.inf else Rest()
    return _cleared(look, kept) or Record(gone=True)


def _cleared(look: Look, kept: float = 0.0) -> Step | None:
    """Delete what is left; None where neither an item nor a pod of the AppWrapper is left.

    `kept` are the seconds of the phase in which nothing was deleted.
    """
    if not recorded(look.wrapper):
        return None
    now, pause = look.moment.now, look.progress.pause
    forced_at = now + kept + _forced_after(look) - look.lasted
    forced = tuple(look.own_pods()) if forced_at <= now else ()
    if look.left or forced:
        return Delete(look.left, forced) if now >= pause.not_before else Rest(pause.not_before)
    if not look.pods.total:
        return None
    told_at = now + TOLD_AFTER - look.lasted
    later = [at for at in (forced_at, told_at) if now < at < math.inf]
    return Rest(min(later, default=None))


def _forced_after(look: Look) -> float:
    """Return the seconds of deleting after which pods that are left are deleted by force."""
    return math.inf if look.contents.is_mcad else look.contents.patience.deletion


_DECIDE: Mapping[str, Callable[[Look], Step]] = {
    Phase.NEW: _queued,
    Phase.SUSPENDED: _queued,
    Phase.RESUMING: _resuming,
    Phase.RUNNING: _running,
    Phase.SUSPENDING: _suspending,
    Phase.RESETTING: _resetting,
    Phase.FAILED: _failed,
    Phase.SUCCEEDED: _succeeded,
}
