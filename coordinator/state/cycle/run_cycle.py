"""Runs a scheduling cycle: asks the core about all waiting gangs, and stores its answers."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from math import inf

from coordinator.gang.assumed_pods import assumed_claims, assumed_pods
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.pods.growth import minimums_of
from coordinator.gang.pods.submitter import parted
from coordinator.gang.view import GangView
from coordinator.record.urgency import quiet_delay
from coordinator.record.write_lines import told_position
from coordinator.state.cycle.claim_quota import answers_within_quota
from coordinator.state.cycle.cycle_input import line_up, queues_of
from coordinator.state.cycle.device_facts import device_facts
from coordinator.state.cycle.joining import asked_for, placed_with, plans_of
from coordinator.state.cycle.preemption_trials import note_plan, propose
from coordinator.state.known import Known
from coordinator.state.verdict_counts import GANG, PODS
from reservation.edits import merged, with_homeless
from runtime.controller.moment import Moment
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import NodeFacts, next_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.preemption import Preemption
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.model.verdict import Admitted, Decision, Reason, Refusal
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.holder_index import Holders
from scheduling.state.pod_index import ExistingPods

NO_PLACEMENT = Placement()

SNAPSHOT = "snapshot"
DECIDING = "deciding"
ANSWERS = "answers"
"""The parts of a decision: what is asked, the core's answers, and taking them in."""


def decide(known: Known, moment: Moment) -> list[GangKey]:
    """Decide; returns the gangs in the order of the queue, in which they are to be written."""
    agenda = known.agenda
    agenda.cycle_wanted, agenda.refresh_at, agenda.cycled_at = False, None, moment.now
    _refuse_beyond_limit(known, line_up(known), moment)
    decisions = _decisions(known, moment)
    answers = tuple(answers_within_quota(known, decisions))
    waiting = _note_answers(known, answers, moment)
    known.cycles.quiet = quiet_delay(waiting)
    known.lap(ANSWERS)
    return [decision.key for decision in answers]


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
    asked = question(known, _remembered(known, moment), moment)
    known.lap(SNAPSHOT)
    decisions, cycles.memory = asked()
    known.lap(DECIDING)
    cycles.ages.passed(cycles.memory.passed)
    propose(known, cycles.memory.preemptions, moment)
    _note_plans(known, cycles.memory.preemptions)
    if cycles.memory.old:
        known.agenda.refresh_by(cycles.renewals.next_at(moment.now, cycles.quiet))
    if cycles.memory.asks_again_in < inf:
        known.agenda.refresh_by(moment.now + cycles.memory.asks_again_in)
    return decisions


Answers = tuple[tuple[Decision, ...], Memory]


def question(known: Known, memory: Memory | None, moment: Moment) -> Callable[[], Answers]:
    """Return what asks the core about all gangs that wait in line; it notes no answer."""
    return partial(
        next_cycle,
        queues_of(known, moment),
        known.cache.columns(),
        memory,
        existing=existing_pods(known),
        volumes=_volumes(known),
        facts=NodeFacts(Holders(known.cache.holders), known.cache.daemons, device_facts(known)),
    )


def _note_plans(known: Known, preemptions: Iterable[Preemption]) -> None:
    """Note where gangs will be for which all that is in their way ends already, and drop the rest.

    That their victims end is being written, or can be seen: so any leader comes to such a plan.
    """
    waits = known.cycles.waiting
    asked = (each for each in preemptions if waits.gang(each.preemptor) is not None)
    begun = (each for each in asked if all(part.is_ending for part in each.parts))
    plans: dict[GangKey, Placement] = {}
    for each in begun:
        plans.update(plans_of(known, each.preemptor, each.plan))
    planned = [view for view in known.views.values() if view.queueing.planned is not None]
    new = [known.views[key] for key in plans if key in known.views]
    for view in (*planned, *new):
        note_plan(known, view, plans.get(view.key))


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
    answers, waiting = list(decisions), known.cycles.waiting
    placed = [(each.key, each.verdict) for each in answers if isinstance(each.verdict, Admitted)]
    for key, verdict in placed:
        _admitted(known, known.views[key], verdict, moment)
    for key, _ in placed:
        if known.views[key].queueing.left_out is None or known.cycles.joined.of(key):
            waiting.drop(known.cycles.joined.asker(key))
    refused = [(each.key, each.verdict) for each in answers if isinstance(each.verdict, Refusal)]
    askers = {key: known.cycles.joined.asker(key) for key, _ in refused}
    before = _positions(waiting, askers.values())
    for key, refusal in refused:
        position = told_position(1 + before[askers[key]], len(waiting))
        _refused(known, known.views[key], refusal, position, moment)
    return len(waiting)


def _positions(waiting: WaitingGangs, askers: Iterable[GangKey]) -> dict[GangKey, int]:
    """Return how many gangs wait before each of those that stand in line with some gangs."""
    asked = (waiting.gang(key) for key in askers)
    queues = {each.queue for each in asked if each is not None}
    lines = (waiting.line(queue) for queue in sorted(queues))
    return dict(chain.from_iterable(line.minimums_ahead() for line in lines))


def _refuse_beyond_limit(known: Known, keys: Iterable[GangKey], moment: Moment) -> None:
    """Say once why gangs are not decided; the number in it is that of when they came to wait."""
    for key in keys:
        view = known.views[key]
        before = view.queueing.refusal
        if before is None or before.reason != Reason.NAMESPACE_LIMIT:
            refusal = known.waiting_limit.refusal(known.cycles.joined.asker(key))
            _refused(known, view, _as_recorded(view, refusal), 0, moment)


def _as_recorded(view: GangView, refusal: Refusal) -> Refusal:
    """Return a refusal as an earlier leader told it, if it did."""
    written = view.record.written
    if written.get("reason") != refusal.reason:
        return refusal
    return Refusal(refusal.reason, written.get("message", "").partition("; ")[0])


def _admitted(known: Known, view: GangView, admitted: Admitted, moment: Moment) -> None:
    """Take the room; where it is none, why the surplus waits may still be news."""
    queueing, placed = view.queueing, view.reservation
    if queueing.left_out != admitted.left_out:
        _look_when_quiet(known, view, moment)
    queueing.refusal, queueing.position, queueing.left_out = None, 0, admitted.left_out
    if not admitted.placement.assignments:
        return
    pods = known.cache.members(view.key, view.cluster_uid)
    placement, submitter = parted(admitted.placement)
    known.submitter_room.keep(view.key, submitter)
    known.cycles.admissions += 1
    known.cycles.verdicts.placements[GANG if placed.placement is None else PODS] += 1
    if placed.placement is None:
        asked = asked_for(known, view.key)
        placed.admitted_at, placed.queue = moment.wall, asked.queue if asked else DEFAULT_QUEUE
        placed.together, view.together.begun = placed_with(known, view.key), False
    stay = {pod.uid for pod in pods if pod.alive} - view.pod_writes.leaving
    before = with_homeless(placed.placement or NO_PLACEMENT, pods, stay)
    placed.placement = merged(before, placement, pods)
    placed.epoch = known.term.epoch
    placed.decided += 1
    placed.admitted_as = known.cycles.admissions
    if view.understood.terms is not None and not (view.survey.ran or view.released_any):
        placed.minimums = minimums_of(view.understood.terms.pod_sets)
    view.logged.decided(placement, placed.decided)
    known.agenda.cycle_wanted |= known.room.update(view, pods)
    known.agenda.dirty.add(view.key)


def _refused(known: Known, view: GangView, refusal: Refusal, position: int, moment: Moment) -> None:
    """Numbers that moved are written when the gang's quiet time is over, a new reason now."""
    queueing, before = view.queueing, view.queueing.refusal
    same_reason = before is not None and before.reason == refusal.reason
    known.cycles.verdicts.refused(before, refusal)
    same = same_reason and before == refusal and queueing.position == position
    queueing.refusal, queueing.position, queueing.left_out = refusal, position, None
    if not same_reason:
        known.agenda.dirty |= {view.key} if _is_told(known, view) else set()
    elif not same:
        _stand_in_line(known, view, moment)


def _is_told(known: Known, view: GangView) -> bool:
    """Say whether it is read why a gang waits, or a gang may be suspended again for that."""
    return known.agenda.lines.are_read or view.held.phase is Phase.RESUMED


def _look_when_quiet(known: Known, view: GangView, moment: Moment) -> None:
    since, urgency = view.record.fall_behind(moment.now), view.record.urgency
    known.agenda.wake_by(view.key, since + urgency.renewal_delay(known.cycles.quiet))


def _stand_in_line(known: Known, view: GangView, moment: Moment) -> None:
    """Have the gang looked at when its numbers have been wrong for long and it is its turn."""
    urgency, position = view.record.urgency, view.queueing.position
    later = position == view.record.written.get("position", 0)
    since = view.record.fall_behind(moment.now)
    due = since + urgency.delay_of(known.cycles.quiet, later=later)
    known.agenda.lines.numbers.plan(view.key, due, later=later)
