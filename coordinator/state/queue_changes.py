"""Requeues gangs affected by a change of GangQueues, in batches."""

from collections.abc import Iterator

from coordinator.gang.view import GangView
from coordinator.queues.registry import Outward
from coordinator.state.known import Known
from kube.codec.observed_pod import STRAYS
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


def follow_queues(known: Known, moment: Moment) -> None:
    """Look at the gangs that may find another queue, or whose queue says something else.

    A change of quota alone is a matter of the next cycle. Until it is its turn a gang is decided as
    it was understood last, as if the change had been seen later.
    """
    before, now = known.followed, known.queues.outward
    if now is before:
        return
    known.followed = now
    known.agenda.look_in_turn(_concerned(known, before, now), moment.now)


def _concerned(known: Known, before: Outward, now: Outward) -> Iterator[GangKey]:
    if now.selections is not before.selections:
        yield from known.views
        yield from (key for key in known.quota.gangs if key.name == STRAYS)
        return
    names = now.by_queue.keys() | before.by_queue.keys()
    changed = {each for each in names if now.by_queue.get(each) != before.by_queue.get(each)}
    if changed:
        yield from (key for key, view in known.views.items() if changed & _queues_of(view))


def _queues_of(view: GangView) -> set[str]:
    terms = view.understood.terms
    return {view.reservation.queue, terms.queue if terms is not None else ""}
