"""Tells a cycle of the queues: the gangs that wait in them, what is held, and when that may end."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

import numpy as np

from coordinator.gang.view import GangView
from coordinator.messages.clock import Moment
from coordinator.state.known import Known
from kube.codec.fields import moment_of
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.waiting import WaitingGangs


def line_up(known: Known, pending: Iterable[PendingGang]) -> None:
    """Have these gangs wait in their queues, and no others."""
    cycles, tree = known.cycles, known.queues.tree
    if cycles.waiting.tree is not tree:
        cycles.waiting = WaitingGangs(tree)
    asked = {each.key: each for each in pending if each.queue in tree.index}
    for key in cycles.waiting.keys() - asked.keys():
        cycles.waiting.drop(key)
        cycles.passes.pop(key, None)
    for gang in asked.values():
        cycles.waiting.put(gang)


def queues_of(known: Known, moment: Moment) -> Queues:
    """Say how the queues stand at this moment; times are seconds since 1970."""
    waiting = known.cycles.waiting
    return Queues(
        waiting,
        known.quota.held(waiting.tree),
        _cluster(known) if waiting.tree.resources else {},
        moment.wall,
        lambda: _holdings(known, moment),
        _aged(known, moment),
    )


def _cluster(known: Known) -> Mapping[str, int]:
    """Return what all nodes have of each resource."""
    nodes = known.cache.columns()
    totals = np.minimum(nodes.allocatable, 2**40).sum(axis=1)
    return dict(zip(nodes.resources, totals.tolist(), strict=True))


def _aged(known: Known, moment: Moment) -> frozenset[GangKey]:
    """Return the gangs that waited so long, or were passed so often, that nothing may pass them."""
    rules = {queue.name: queue for queue in known.cycles.waiting.tree.queues}
    passes = known.cycles.passes
    return frozenset(
        gang.key
        for gang in known.cycles.waiting
        if moment.wall - gang.created >= rules[gang.queue].longest_wait
        or passes[gang.key] >= rules[gang.queue].most_passes
    )


def _holdings(known: Known, moment: Moment) -> Iterator[Holding]:
    """Yield what each gang holds, with the time when it is expected to end."""
    for key, held in known.quota.gangs.items():
        view, pods = known.views.get(key), known.cache.pods_of(key)
        room = [(pod.holds, pod.used) for pod in pods if pod.holds]
        if view is not None:
            reserved = view.reservation.reserved.room.items()
            room += [(node, _times(requests, pods)) for (node, requests), pods in reserved]
        ends = inf if view is None else _ends(view, known, moment.wall)
        if held.queue in known.cycles.waiting.tree.index:
            yield Holding(key, held.queue, tuple(room), ends)


def _times(requests: tuple[tuple[str, int], ...], pods: int) -> tuple[tuple[str, int], ...]:
    return tuple((resource, amount * pods) for resource, amount in requests)


def _ends(view: GangView, known: Known, now: float) -> float:
    """Say when a gang is expected to end; one that outlives its duration at twice its age."""
    terms, began = view.understood.terms, _began(view)
    if terms is None or began is None:
        return inf
    duration = terms.expected_duration or known.queues.queue(terms.queue).duration
    return began + duration if began + duration > now else now + (now - began)


def _began(view: GangView) -> float | None:
    """Return when the gang was admitted, as its record says it; now where that is to be written."""
    for condition in view.record.gang.status.conditions if view.record.gang else ():
        if condition.type == "Admitted" and condition.status == "True":
            return moment_of(condition.last_transition_time)
    return view.reservation.admitted_at
