"""Runs a cycle: asks the core about all gangs that wait, and notes its answers in their views."""

from collections.abc import Iterable
from itertools import accumulate
from math import inf

from coordinator.gang.assumed_pods import assumed_claims, assumed_pods
from coordinator.gang.view import GangView
from coordinator.messages.clock import Moment
from coordinator.queues.asking import line_up, queues_of
from coordinator.record.urgency import quiet_delay
from coordinator.state.known import Known
from coordinator.state.preempting import propose
from reservation.edits import merged
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.model.verdict import Admitted, Decision, Refusal
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.holder_index import Holders
from scheduling.state.pod_index import ExistingPods

NO_PLACEMENT = Placement()


def decide(known: Known, moment: Moment) -> list[GangKey]:
    """Decide; returns the gangs in the order of the queue, in which they are to be written."""
    agenda = known.agenda
    agenda.cycle_wanted, agenda.refresh_at, agenda.cycled_at = False, None, moment.now
    line_up(known)
    decisions = _decisions(known, moment)
    waiting = _note_answers(known, decisions, moment)
    known.cycles.quiet = quiet_delay(waiting)
    return [decision.key for decision in decisions]


def existing_pods(known: Known) -> ExistingPods:
    """The pods on nodes, with those that have their room and are not bound yet."""
    if not known.cache.has_pod_constraints:
        return ExistingPods(known.cache.pod_index)
    on_their_way = (view for view in known.views.values() if view.reservation.reserved.room)
    assumed = (pod for view in on_their_way for pod in assumed_pods(view))
    return ExistingPods(known.cache.pod_index, assumed)


def _decisions(known: Known, moment: Moment) -> tuple[Decision, ...]:
    """Decide anew what a change could have turned, and those whose numbers are to be renewed.

    A refusal that is kept has the numbers of its time, so another cycle follows where they may
    have moved.
    """
    cycles = known.cycles
    decisions, cycles.memory = next_cycle(
        queues_of(known, moment),
        known.cache.columns(),
        _remembered(known, moment),
        existing=existing_pods(known),
        holders=Holders(known.cache.holders),
        volumes=_volumes(known),
    )
    cycles.passes.update(cycles.memory.passed)
    propose(known, cycles.memory.preemptions, moment)
    if cycles.memory.old:
        known.agenda.refresh_at = cycles.renewals.next_at(moment.now, cycles.quiet)
    if cycles.memory.asks_again_in < inf:
        known.agenda.refresh_by(moment.now + cycles.memory.asks_again_in)
    return decisions


def _remembered(known: Known, moment: Moment) -> Memory | None:
    """What is known of the last cycle, without the gangs that are due to be decided anew."""
    cycles = known.cycles
    waiting = cycles.memory.waiting() if cycles.memory else ()
    due = cycles.renewals.due(waiting, moment.now, cycles.quiet)
    return cycles.memory.without(due) if cycles.memory else None


def _volumes(known: Known) -> Volumes:
    """What is known of volumes, with the claims of pods that are not bound yet."""
    cache = known.cache
    if not cache.is_mounting:
        return Volumes(cache.storage)
    assumed = (key for view in known.views.values() for key in assumed_claims(view))
    return Volumes(cache.storage, cache.table.held, assumed)


def _note_answers(known: Known, decisions: Iterable[Decision], moment: Moment) -> int:
    """Note each answer; returns how many gangs wait, or have surplus that waits."""
    answers = [(known.views[each.key], each.verdict) for each in decisions]
    for view, verdict in answers:
        if isinstance(verdict, Admitted):
            _admitted(known, view, verdict, moment)
            if known.views[view.key].queueing.left_out is None:
                known.cycles.waiting.drop(view.key)
    refused = [(view, verdict) for view, verdict in answers if isinstance(verdict, Refusal)]
    before = _positions(known.cycles.waiting) if refused else {}
    for view, verdict in refused:
        _refused(known, view, verdict, 1 + before[view.key], moment)
    return len(known.cycles.waiting)


def _positions(waiting: WaitingGangs) -> dict[GangKey, int]:
    """Return how many gangs of its queue wait for their minimum before each gang.

    One that has its minimum waits for surplus alone and is before no other gang.
    """
    before: dict[GangKey, int] = {}
    for line in waiting.lines():
        ahead = accumulate((bool(gang.minimum) for gang in line.gangs), initial=0)
        before.update(zip((gang.key for gang in line.gangs), ahead, strict=False))
    return before


def _admitted(known: Known, view: GangView, admitted: Admitted, moment: Moment) -> None:
    """Take the room; where it is none, why the surplus waits may still be news."""
    queueing, placed = view.queueing, view.reservation
    if queueing.left_out != admitted.left_out:
        _look_when_quiet(known, view, moment)
    queueing.refusal, queueing.position, queueing.left_out = None, 0, admitted.left_out
    if not admitted.placement.assignments:
        return
    pods = known.cache.members(view.key, view.cluster_uid)
    known.cycles.admissions += 1
    if placed.placement is None:
        asked = known.cycles.waiting.gang(view.key)
        placed.admitted_at, placed.queue = moment.wall, asked.queue if asked else DEFAULT_QUEUE
    placed.placement = merged(placed.placement or NO_PLACEMENT, admitted.placement, pods)
    placed.epoch = known.term.epoch
    placed.decided += 1
    placed.admitted_as = known.cycles.admissions
    view.notes.decided(admitted.placement, placed.decided)
    known.agenda.cycle_wanted |= known.room.update(view, pods)
    known.agenda.dirty.add(view.key)


def _refused(known: Known, view: GangView, refusal: Refusal, position: int, moment: Moment) -> None:
    """Numbers that moved are written when the gang's quiet time is over, a new reason now."""
    queueing, before = view.queueing, view.queueing.refusal
    same_reason = before is not None and before.reason == refusal.reason
    same = same_reason and before == refusal and queueing.position == position
    queueing.refusal, queueing.position, queueing.left_out = refusal, position, None
    if not same_reason:
        known.agenda.dirty.add(view.key)
    elif not same:
        _look_when_quiet(known, view, moment)


def _look_when_quiet(known: Known, view: GangView, moment: Moment) -> None:
    urgency = view.record.urgency
    since = urgency.fall_behind(moment.now)
    known.agenda.wake_by(view.key, since + urgency.renewal_delay(known.cycles.quiet))
