"""Ends the start of a gang whose minimum is not ready in time, as its queue says."""

from dataclasses import replace

from coordinator.gang.demand import NotReady
from coordinator.gang.eviction.endings import Ending
from coordinator.gang.setbacks.late_starts import (
    GIVEN_UP,
    cause_in_words,
    edition_of,
    is_given_up,
    one_more,
    pause_in_words,
)
from coordinator.queues.history import began
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from scheduling.model.verdict import Reason

READY, PAUSE, SETBACK = "ready", "pause", "setback"
"""The deadlines of a start: for its minimum, the next start, and its place behind others."""


def time_out(look: Look) -> StepResult:
    """Have the gang stopped whole where its minimum is not ready in time; it waits again then."""
    view = look.view
    forget_what_is_over(look)
    due, wall = _due_at(look), look.scene.moment.wall
    if due is None or not look.scene.sighted or view.eviction.whole is not None:
        return NOTHING_DONE
    if not _is_past(look, READY, due):
        return NOTHING_DONE
    if view.eviction.kept_now("", look.now).because:
        return NOTHING_DONE  # a budget refused it of late
    late, timeouts = view.late_starts, look.timeouts
    if late is None or not late.is_current:
        late = view.late_starts = one_more(late, edition_of(look.source), timeouts, wall)
    message = cause_in_words(late, timeouts)
    view.eviction.decide(Ending(Reason.READY_TIMEOUT, message, look.scene.moment.stamp))
    return NOTHING_DONE


def next_at(look: Look) -> float | None:
    """Return when time alone ends a start, or a pause after one (monotonic seconds)."""
    view, moment = look.view, look.scene.moment
    if view.reservation.placement is None:
        return _pause_ends_at(look)
    at = _due_at(look)
    if at is None:
        return None
    return max(moment.now, view.deadlines.at(READY, at, moment), _kept_until(look))


def setbacks(look: Look) -> int:
    """Count the late starts for which the gang comes after others for a time."""
    late = look.view.late_starts
    if late is None or _is_past(look, SETBACK, _set_back_until(look)):
        return 0
    return late.count


def pause(look: Look) -> NotReady | None:
    """Say that the gang may not start yet, or no more, after starts that were late."""
    late, timeouts = look.view.late_starts, look.timeouts
    if late is None or look.view.reservation.placement is not None:
        return None
    if is_given_up(late, timeouts):
        return NotReady(Reason.RETRIES_EXHAUSTED, GIVEN_UP)
    if _is_past(look, PAUSE, late.not_before):
        return None
    return NotReady(Reason.READY_TIMEOUT, pause_in_words(late))


def forget_what_is_over(look: Look) -> StepResult:
    """Begin to count anew: the gang got ready, or its RayCluster says another try."""
    view, late = look.view, look.view.late_starts
    if late is not None and (view.survey.ran or late.of != edition_of(look.source)):
        view.late_starts = None
    elif late is not None and view.reservation.placement is None:
        view.late_starts = replace(late, is_current=False)
    return NOTHING_DONE


def _pause_ends_at(look: Look) -> float | None:
    """Return when the gang may start again, and from then on when its setback is over."""
    late, moment, deadlines = look.view.late_starts, look.scene.moment, look.view.deadlines
    if late is None:
        return None
    pause = deadlines.at(PAUSE, late.not_before, moment)
    ends = pause if moment.now < pause else deadlines.at(SETBACK, _set_back_until(look), moment)
    return max(moment.now, ends, _kept_until(look))


def _is_past(look: Look, what: str, wall: float) -> bool:
    """Whether a deadline in seconds since 1970 is over, by a clock that is never set."""
    return look.now >= look.view.deadlines.at(what, wall, look.scene.moment)


def _set_back_until(look: Look) -> float:
    late = look.view.late_starts
    if late is None:
        return 0.0
    return late.not_before + look.scene.patience.setback_after(late.count)


def _kept_until(look: Look) -> float:
    """Return until when the whole gang cannot be evicted (monotonic seconds)."""
    kept = look.view.eviction.kept.get("")
    return kept.until if kept is not None else 0.0


def _due_at(look: Look) -> float | None:
    """Return by when the minimum must be ready (seconds since 1970); None where that is over."""
    view, seconds = look.view, look.timeouts.ready_seconds
    if seconds is None or view.survey.ran or not view.survey.durable:
        return None
    start = max(began(view) or 0.0, view.reservation.admitted_at or 0.0)
    return start + seconds if start else None
