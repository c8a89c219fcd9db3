"""Stops all running gangs of drained queues, whole and in the order of preemption."""

from coordinator.gang.eviction.endings import Ending
from coordinator.gang.view import GangView
from coordinator.state.cycle.preemptible import parts_of
from coordinator.state.cycle.preemption_trials import drop_trial
from coordinator.state.known import Known
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart
from scheduling.model.verdict import Reason
from scheduling.preemption.draining import drain_order


def drain(known: Known, moment: Moment) -> list[GangKey]:
    """Decide the ends that are missing; returns the gangs in the order in which they are to end.

    What cannot be stopped now is looked at in each cycle again.
    """
    stops = known.queues.stops
    drained = {name for name, stop in stops.items() if stop.drains}
    if not drained:
        return []
    order = drain_order(parts_of(known, moment), known.queues.tree, drained)
    ends = [part for part in order if part.gang in known.views]
    for part in ends:
        _end(known, known.views[part.gang], part, moment)
    return [part.gang for part in ends]


def _end(known: Known, view: GangView, part: GangPart, moment: Moment) -> None:
    """Decide the end of a gang; the preemption trials with it begin anew."""
    for preemptor in tuple(view.eviction.probes):
        drop_trial(known, preemptor)
    message = known.queues.stops[part.queue].in_words(part.queue)
    view.eviction.decide(Ending(Reason.QUEUE_STOPPED, message, moment.stamp))
    known.agenda.dirty.add(view.key)
    known.agenda.cycle_wanted = True
