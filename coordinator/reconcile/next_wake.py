"""Works out when a gang is looked at next if nothing happens to it."""

from collections.abc import Iterator

from coordinator.reconcile import owner_deadlines
from coordinator.reconcile.held_start import advance as held_start
from coordinator.reconcile.look import Look
from coordinator.reconcile.repair import missed_pods
from coordinator.reconcile.setbacks import below_minimum, late_starts
from coordinator.reconcile.winding_down import OPT_OUT_DELAY


def wake_at(look: Look, spacing: float) -> float | None:
    """Return the next moment at which time alone may have something to be done.

    `spacing` are the seconds for which an Event keeps its message.
    """
    return min(
        (at for at in _moments(look, spacing) if at is not None and at > look.now), default=None
    )


def _moments(look: Look, spacing: float) -> Iterator[float | None]:
    view, patience = look.view, look.scene.patience
    yield from (tried.not_before for tried in view.pod_writes.attempts.values())
    yield from (since + patience.bind for since in view.repairs.stuck_since.values())
    yield view.repairs.rounds.next_begin(patience.bind)
    yield view.repairs.kept.next_end
    yield _end(view.out_since, OPT_OUT_DELAY)
    yield _end(view.repairs.torn_since, patience.torn)
    yield _end(view.pod_writes.withdrawn_since, patience.arrival)
    yield _end(view.pod_writes.doubted_since, patience.arrival)
    yield view.release_refused.since + patience.torn if view.release_refused else None
    yield from (look.now + at - look.scene.moment.wall for at in _times_of_day(look))
    yield view.record.due
    yield view.record.attempts.not_before
    yield from below_minimum.moments(look)
    yield from view.eviction.moments()
    yield late_starts.next_at(look)
    yield from held_start.next_at(look)
    yield from missed_pods.next_at(look)
    yield owner_deadlines.warn_at(look)
    yield view.events.next_at(spacing)
    yield view.nominating.next_at
    yield view.node_request.again_at
    yield view.node_request.attempts.not_before


def _times_of_day(look: Look) -> Iterator[float]:
    yield look.view.refused_releases.until
    if look.source.offered is not None:
        yield look.source.offered.may_stop_until


def _end(since: float | None, seconds: float) -> float | None:
    return since + seconds if since is not None else None
