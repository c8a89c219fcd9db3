"""Tells a cycle of the queues: the gangs that wait in them, what is held, and when that may end."""

from collections.abc import Iterator, Mapping
from math import inf

from coordinator.gang.demand import avoiding
from coordinator.gang.view import GangView
from coordinator.messages.clock import Moment
from coordinator.queues.history import began, since
from coordinator.queues.parts import parts_of
from coordinator.state.known import Known
from scheduling.model.amounts import exact_sum
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import Queue
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.waiting import WaitingGangs


def question_of(view: GangView) -> PendingGang | None:
    """What the gang asks of a cycle, once there is a record that can hold the answer."""
    asked = view.queueing.asked
    if view.record.gang is None or not isinstance(asked, PendingGang):
        return None
    return asked


def line_up(known: Known) -> None:
    """Have the gangs wait in their queues that ask for room now, and no others.

    Only those are looked at that were looked at since the last time; all where the queues changed,
    and while pods avoid nodes, which ones being a matter of the moment.
    """
    cycles, tree = known.cycles, known.queues.tree
    avoided = _avoided(known)
    if cycles.waiting.tree is not tree:
        cycles.waiting = WaitingGangs(tree)
        cycles.looked_at |= known.views.keys()
    if avoided or cycles.avoided:
        cycles.looked_at |= known.views.keys()
    cycles.avoided = avoided
    for key in cycles.looked_at:
        _line_up(known, key)
    cycles.looked_at.clear()


def _line_up(known: Known, key: GangKey) -> None:
    view, cycles = known.views.get(key), known.cycles
    asked = question_of(view) if view is not None else None
    if asked is None or asked.queue not in cycles.waiting.tree.index:
        cycles.waiting.drop(key)
        cycles.passes.pop(key, None)
    else:
        cycles.waiting.put(avoiding(asked, cycles.avoided.get(key.namespace, {})))


def _avoided(known: Known) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the nodes that kube-scheduler refused of late, by namespace and shape."""
    refusals = known.term.refusals
    return {namespace: refusals.nodes(namespace) for namespace in refusals.namespaces}


def queues_of(known: Known, moment: Moment) -> Queues:
    """Say how the queues stand at this moment; times are seconds since 1970."""
    waiting = known.cycles.waiting
    return Queues(
        waiting,
        known.quota.held(waiting.tree),
        _cluster(known) if waiting.tree.resources else {},
        moment.wall,
        lambda: _holdings(known, moment),
        _Aged(known, moment.wall),
        _Overdue(known, moment.wall),
        lambda: parts_of(known, moment),
    )


def _cluster(known: Known) -> Mapping[str, int]:
    """Return what all nodes have of each resource."""
    nodes = known.cache.columns()
    return dict(zip(nodes.resources, map(exact_sum, nodes.allocatable), strict=True))


class _Aged:
    """The gangs that waited so long, or were passed so often, that nothing may pass them.

    One that has its minimum waits for surplus, which never ages.
    """

    def __init__(self, known: Known, now: float) -> None:
        self._waiting, self._passes, self._now = known.cycles.waiting, known.cycles.passes, now
        self._views = known.views

    def __contains__(self, key: object) -> bool:
        gang = self._that_waits(key)
        if gang is None:
            return False
        return self._is_overdue(gang) or self._passes[gang.key] >= self._rules(gang).most_passes

    def _that_waits(self, key: object) -> PendingGang | None:
        """Return the gang if it waits for its minimum."""
        gang = self._waiting.gang(key) if isinstance(key, GangKey) else None
        return gang if gang is not None and gang.minimum else None

    def _rules(self, gang: PendingGang) -> Queue:
        return self._waiting.tree.queues[self._waiting.tree.index[gang.queue]]

    def _is_overdue(self, gang: PendingGang) -> bool:
        return self._now - self._gathered(gang) >= self._rules(gang).longest_wait

    def _gathered(self, gang: PendingGang) -> float:
        """Return since when all pods of the minimum exist, as the record says it."""
        view = self._views.get(gang.key)
        return since(view, "Gathered") or self._now if view is not None else self._now


class _Overdue(_Aged):
    """Those of them that waited so long; a tenant cannot bring that about by gangs of its own."""

    def __contains__(self, key: object) -> bool:
        gang = self._that_waits(key)
        return gang is not None and self._is_overdue(gang)


def _holdings(known: Known, moment: Moment) -> Iterator[Holding]:
    """Yield what each gang holds, with the time when it is expected to end."""
    for key, by_uid in known.quota.gangs.items():
        for uid, held in by_uid.items():
            if held.queue in known.cycles.waiting.tree.index:
                yield _holding(key, uid, held.queue, known, moment.wall)


def _holding(key: GangKey, uid: str, queue: str, known: Known, now: float) -> Holding:
    room = [(pod.holds, pod.used) for pod in known.cache.members(key, uid) if pod.holds]
    view = known.views.get(key)
    if view is None or view.cluster_uid != uid:
        return Holding(key, queue, tuple(room))
    reserved = view.reservation.reserved.room.items()
    room += [(node, _times(requests, pods)) for (node, requests), pods in reserved]
    return Holding(key, queue, tuple(room), _ends(view, known, now))


def _times(requests: tuple[tuple[str, int], ...], pods: int) -> tuple[tuple[str, int], ...]:
    return tuple((resource, amount * pods) for resource, amount in requests)


def _ends(view: GangView, known: Known, now: float) -> float:
    """Say when a gang is expected to end; one that outlives its duration at twice its age."""
    terms, start = view.understood.terms, began(view)
    if terms is None or start is None:
        return inf
    duration = terms.expected_duration or known.queues.queue(terms.queue).duration
    return start + duration if start + duration > now else now + (now - start)
