"""Moves gangs as an administrator requested in `status.moves` of the gang that starts by it.

The moved gangs end as by preemption for that gang, all of them or none. Room is kept for all of
these gangs until each moved gang has a place anew, or until the requested time. Nothing is kept,
and no gang ends, if one of them may not be stopped, or if the gang or a node has changed since.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.gang.view import GangView
from coordinator.record.spec import is_of
from coordinator.state.cycle.preemptible import parts_of
from coordinator.state.known import Known
from kube.codec.fields import InvalidObject, moment_of
from kube.codec.placement import placement_from_status
from kube.objects.gang import GangMoves, GangPlacement
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement, amounts_of
from scheduling.model.preemption import GangPart, Preemption, Promise
from scheduling.queueing.line import requests_of

LONGEST = 3600.0
"""Seconds for which room is kept at most, whatever is asked for."""


@dataclass(frozen=True, eq=False, slots=True)
class _Move:
    """A gang that is to move and has not yet."""

    view: GangView
    to: Placement

    @property
    def runs(self) -> bool:
        """Whether it has its old room, and nothing ends it."""
        view = self.view
        return view.reservation.placement is not None and view.eviction.whole is None


def promises_of(known: Known, moment: Moment) -> tuple[Promise, ...]:
    """Return the room kept for gangs that start or move by request."""
    asked = sorted(known.cache.moves, key=str)
    return tuple(promise for key in asked for promise in _promises(known, key, moment))


def _promises(known: Known, key: GangKey, moment: Moment) -> Iterator[Promise]:
    gang, view = known.cache.gangs[key], known.views.get(key)
    moves = gang.status.moves
    if moves is None or view is None or not is_of(gang, view.cluster_uid):
        return
    left = moment_of(moves.until) - moment.wall
    if not 0 < left <= LONGEST:
        return
    known.agenda.refresh_by(moment.now + left)
    try:
        yield from _kept(known, view, moves, moment)
    except InvalidObject:
        return  # edited by hand


def _kept(known: Known, view: GangView, moves: GangMoves, moment: Moment) -> Iterator[Promise]:
    plan, to_move = _read(moves.placement), list(_to_move(known, moves))
    running = [each for each in to_move if each.runs]
    parts = [part for part in parts_of(known, moment) if part.gang in _keys(to_move)]
    waits = known.cycles.waiting.gang(view.key)
    if running and (waits is None or not _may_begin(known, view, plan, to_move, parts)):
        return
    yield from (_promise(known, each) for each in to_move)
    if waits is not None and waits.minimum:
        yield Promise(Preemption(view.key, tuple(parts), plan), waits.queue)


def _to_move(known: Known, moves: GangMoves) -> Iterator[_Move]:
    for each in moves.gangs:
        view = known.views.get(GangKey(each.namespace, each.name))
        if view is not None and view.reservation.decided <= each.decided:
            yield _Move(view, _read(each.placement))


def _read(written: GangPlacement | None) -> Placement:
    return placement_from_status(written) if written is not None else Placement()


def _keys(moves: Sequence[_Move]) -> set[GangKey]:
    return {each.view.key for each in moves}


def _may_begin(
    known: Known,
    view: GangView,
    plan: Placement,
    to_move: Sequence[_Move],
    parts: Sequence[GangPart],
) -> bool:
    """Say whether all is as it was when this was asked for, and all may be stopped."""
    if any(part.is_minimum and part.kept_because and not part.is_ending for part in parts):
        return False
    asked = view.question
    is_same = asked is not None and requests_of(asked.minimum) == dict(amounts_of(plan))
    plans = (plan, *(each.to for each in to_move))
    names = {node for each in plans for one in each.assignments for node, _ in one.nodes}
    nodes = [known.cache.nodes.get(name) for name in names]
    return is_same and all(node is not None and not node.unschedulable for node in nodes)


def _promise(known: Known, move: _Move) -> Promise:
    """Keep room for a gang where it goes, beside what it holds."""
    key, terms = move.view.key, move.view.understood.terms
    queue = terms.queue if terms is not None else move.view.reservation.queue
    held = Counter[str]()
    for each in known.quota.of(key).values():
        held.update(each.amounts if each.queue == queue else {})
    return Promise(Preemption(key, (), move.to), queue, held)
