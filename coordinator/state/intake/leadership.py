"""Starts and ends a term of leadership."""

from coordinator.messages.events import TermEnded, TermStarted, WatchLost, WatchRecovered
from coordinator.queues.waiting_limit import WaitingLimit
from coordinator.state.joined_gangs import JoinedGangs
from coordinator.state.known import Known, Term
from coordinator.state.manager_leases import note_fence
from runtime.controller.moment import Moment
from scheduling.queueing.waiting import WaitingGangs


def begin_term(event: TermStarted, known: Known, moment: Moment) -> None:
    """Look at every gang; pods that are gated may be under release by an earlier leader."""
    forget_term(known)  # also one whose end was never told
    gated = frozenset(pod.uid for pod in known.cache.pods.values() if pod.gated)
    known.term = Term(event.epoch, frozenset() if event.clean else gated)
    known.orphan_reservations.adopt(moment.now + known.patience.arrival)
    known.agenda.dirty = set(known.cache.sources) | set(known.cache.gangs)
    known.agenda.dirty |= known.cache.keys_of_pods() | known.quota.gangs.keys()
    known.agenda.dirty |= known.stray_gates.keys() | known.cache.offers.keys()
    known.reports.census.changed |= known.queues.objects.keys()
    known.agenda.cycle_wanted = True
    for offer in known.cache.offers.values():
        note_fence(known, offer)


def end_term(event: TermEnded, known: Known, moment: Moment) -> None:
    """Lead no longer."""
    forget_term(known)


def forget_term(known: Known) -> None:
    """Drop all that is only of use to a leader: others may have changed it meanwhile."""
    for view in known.views.values():
        known.room.release(view)
    known.orphan_reservations.forget()
    known.submitter_room.forget()
    known.turns.forget()
    known.node_quota.forget()
    known.term = Term()
    known.agenda.forget_term()
    known.unknown_keys.forget_told()
    known.stray_gates.forget_told()
    known.reports.forget_term()
    known.fair.forget_term()
    known.learned.forget_term()
    known.waiting_limit = WaitingLimit(known.waiting_limit.most)
    known.cycles.memory = None
    known.cycles.parts.clear()
    known.cycles.waiting = WaitingGangs(known.queues.tree)
    known.cycles.joined = JoinedGangs()


def lose_sight(event: WatchLost, known: Known, moment: Moment) -> None:
    """Decide and release nothing while a watch is down."""
    known.blind.add(event.watch)


def regain_sight(event: WatchRecovered, known: Known, moment: Moment) -> None:
    """Look at every gang once all watches are up."""
    known.blind.discard(event.watch)
    if not known.blind:
        known.agenda.dirty |= set(known.views) | set(known.cache.gangs) | known.term.left.keys()
        known.agenda.dirty |= known.cache.offers.keys()
        known.agenda.cycle_wanted = True
