"""Keeps the quota of a gang that runs on another cluster until its attempt there is closed.

The dispatcher asks clusters while the record holds a placement. It alone closes the attempts that
it has opened. Until the coordinator reads that, the attempt may run there, which uses the quota. A
gang for which no cluster has room gives its quota to others, unless its queue lets no gang pass.
"""

from collections.abc import Iterator

from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.start import TEXT_LIMIT
from coordinator.gang.view import GangView
from coordinator.queues.history import since
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from scheduling.model.queue import WhenBlocked
from scheduling.model.verdict import Reason

PATIENCE = 60.0
"""Seconds for which a gang keeps quota that others wait for, while no cluster has room for it."""


def may_run_elsewhere(look: Look) -> bool:
    """Say whether an attempt on another cluster is open."""
    found = look.source.dispatched
    return found is not None and found.is_open


def hear_of_end(look: Look) -> StepResult:
    """Make a gang wait anew after its attempt was closed: its quota was for that attempt."""
    found, view = look.source.dispatched, look.view
    if found is None or found.is_open or found.attempt <= view.reservation.closed:
        return NOTHING_DONE
    view.reservation.closed, view.reservation.placement = found.attempt, None
    view.held.tries.text = _why_back(found.cluster, found.message)
    if view.eviction.endings:
        view.eviction.finish()
    return SURVEY_AGAIN


def forget_why_back(look: Look) -> StepResult:
    """Drop the reason of its return once the gang is sent away again."""
    found = look.source.dispatched
    if found is not None and found.is_recorded:
        look.view.held.tries.text = ""
    return NOTHING_DONE


def let_others_have_its_quota(look: Look) -> StepResult:
    """Release the quota of a gang without room on any cluster, where its queue lacks quota."""
    due, view = _lets_go_at(look), look.view
    if due is None or look.now < due or not any(map(_lacks_quota, _beside(look))):
        return NOTHING_DONE
    said = f"no cluster had room for it in {PATIENCE:.0f} s, and gangs of its queue wait for quota"
    view.held.tries.pause(NotReady(Reason.HELD, said), look.scene.moment, look.scene.patience)
    view.reservation.placement = None
    return SURVEY_AGAIN


def next_at(look: Look) -> Iterator[float]:
    """Yield when it may let others have its quota, and then from time to time."""
    due = _lets_go_at(look)
    if due is not None:
        yield due if due > look.now else look.now + PATIENCE


def _lets_go_at(look: Look) -> float | None:
    """Return when a gang without a cluster has had its quota for long; None where it keeps it."""
    found, view = look.source.dispatched, look.view
    if found is None or found.is_recorded or view.reservation.placement is None:
        return None
    rule = look.scene.queues.queue(view.understood.queue).when_blocked
    since_then = view.reservation.admitted_at or since(view, "QuotaReserved")
    if rule is WhenBlocked.STRICT or since_then is None or not view.understood.has_quota:
        return None
    return look.now + since_then + PATIENCE - look.scene.moment.wall


def _beside(look: Look) -> Iterator[GangView]:
    """Yield the other gangs of its queue."""
    queue = look.view.understood.queue
    others = (each for each in look.scene.views.values() if each is not look.view)
    return (each for each in others if each.understood.queue == queue)


def _lacks_quota(view: GangView) -> bool:
    refusal = view.queueing.refusal
    return view.waits_for_room and refusal is not None and refusal.reason is Reason.QUOTA_EXCEEDED


def _why_back(cluster: str, message: str) -> str:
    """Say why it is back from a cluster; nothing where it had not come to one."""
    if not cluster:
        return ""
    said = f": {message.removeprefix(f'{cluster}: ')}" if message else ""
    return f"it is back from cluster {cluster}{said}"[:TEXT_LIMIT]
