"""Builds the input of a cycle: the waiting gangs, what each queue holds, and when that may end."""

from collections.abc import Iterator, Mapping
from itertools import chain
from math import inf

from coordinator.gang.demand import avoiding
from coordinator.gang.view import GangView
from coordinator.queues.counting import pods_that_count
from coordinator.queues.history import began, since
from coordinator.state.average_usage import cluster_of, settle_usage
from coordinator.state.cycle.joining import join_up, take_apart
from coordinator.state.cycle.preemptible import given_back, parts_of
from coordinator.state.cycle.requested_moves import promises_of
from coordinator.state.cycle.victims_together import taken_together
from coordinator.state.known import Known
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.waiting import WaitingGangs

NO_QUEUE = ""
"""No GangQueue has this name: what counts in it counts against no quota."""


def line_up(known: Known) -> list[GangKey]:
    """Have the gangs wait in their queues that ask for room now, and no others.

    Only those are looked at that were looked at since the last time; all where the queues changed,
    and while pods avoid nodes, which ones being a matter of the moment. Returns those of them that
    ask and are not decided, because too many older gangs of their namespace wait.
    """
    cycles, tree = known.cycles, known.queues.tree
    avoided = _avoided(known)
    if cycles.waiting.tree is not tree:
        cycles.waiting = WaitingGangs(tree)
        cycles.parts.clear()
        cycles.looked_at |= known.views.keys()
    if avoided or cycles.avoided:
        cycles.looked_at |= known.views.keys()
    cycles.avoided = avoided
    looked_at, cycles.looked_at = cycles.looked_at, set()
    looked_at |= take_apart(known, looked_at)
    for key in looked_at:
        cycles.parts.pop(key, None)
        _line_up(known, key)
    return [key for key in looked_at if known.waiting_limit.is_beyond(cycles.joined.asker(key))]


def _line_up(known: Known, key: GangKey) -> None:
    view, cycles = known.views.get(key), known.cycles
    asked = view.question if view is not None else None
    if view is not None and view.joins:
        asked = join_up(known, view)
    in_line = asked is not None and not known.waiting_limit.is_beyond(key)
    if asked is None or not in_line or not _takes(known, asked):
        cycles.waiting.drop(key)
        cycles.ages.drop(key)
    else:
        cycles.waiting.put(avoiding(asked, cycles.avoided.get(key.namespace, {})))
        _note_age(known, asked)


def _takes(known: Known, asked: PendingGang) -> bool:
    """Say whether the queue of a gang works, and admits what it asks for."""
    queue, queues = asked.queue, known.queues
    works = queue in known.cycles.waiting.tree.index and queue not in queues.faults
    return works and (asked.is_repair or queue not in queues.stops)


def _note_age(known: Known, asked: PendingGang) -> None:
    """Let the gang age from when all pods of its minimum existed; a surplus alone never does.

    Of gangs that are asked for as one it counts from when the last was gathered.
    """
    ages, rules = known.cycles.ages, known.queues.queue(asked.queue)
    if not asked.minimum or asked.yields or not asked.needs_nodes:
        ages.drop(asked.key)
        return
    keys = [each.key for each in known.cycles.joined.of(asked.key)] or [asked.key]
    gathered = [since(known.views[key], "Gathered") for key in keys]
    due = max(inf if each is None else each + rules.longest_wait for each in gathered)
    ages.note(asked.key, due, rules.most_passes)


def _avoided(known: Known) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the nodes that kube-scheduler refused of late, by namespace and shape."""
    refusals = known.term.refusals
    return {namespace: refusals.nodes(namespace) for namespace in refusals.namespaces}


def queues_of(known: Known, moment: Moment) -> Queues:
    """Say how the queues stand at this moment; times are seconds since 1970."""
    waiting, ages = known.cycles.waiting, known.cycles.ages
    ages.pass_time(moment.wall)
    settle_usage(known, moment)
    waiting.arrange(known.fair.shares, ages.overdue)
    return Queues(
        waiting,
        known.quota.held(waiting.tree),
        cluster_of(known) if waiting.tree.resources else {},
        moment.wall,
        lambda: _holdings(known, moment),
        ages.aged,
        ages.overdue,
        lambda: chain(taken_together(known, parts_of(known, moment)), given_back(known)),
        known.fair.shares,
        promises_of(known, moment),
    )


def _holdings(known: Known, moment: Moment) -> Iterator[Holding]:
    """Yield what each gang holds, with the time when it is expected to end."""
    for key, by_uid in known.quota.gangs.items():
        for uid, held in by_uid.items():
            yield from _holdings_of(key, uid, held.queue, known, moment.wall)


def _holdings_of(key: GangKey, uid: str, queue: str, known: Known, now: float) -> Iterator[Holding]:
    """Yield what a gang holds; its pods that no quota counts hold room on nodes alone."""
    view = known.views.get(key)
    mine = view if view is not None and view.cluster_uid == uid else None
    ends = expected_end(mine, known, now) if mine is not None else inf
    start = began(mine) if mine is not None else None
    priority = mine.understood.priority if mine is not None else 0
    counted = [pod for pod in pods_that_count(known.cache, key, uid) if pod.holds]
    reserved = mine.reservation.reserved.room.items() if mine is not None else ()
    room = [(pod.holds, pod.used) for pod in counted]
    room += [(node, _times(requests, pods)) for (node, requests), pods in reserved]
    yield Holding(key, queue, tuple(room), ends, priority, inf if start is None else start)
    there = [pod for pod in known.cache.members(key, uid) if pod.holds]
    if len(there) > len(counted):
        uids = {pod.uid for pod in counted}
        rest = [(pod.holds, pod.used) for pod in there if pod.uid not in uids]
        yield Holding(key, NO_QUEUE, tuple(rest), ends)


def _times(requests: tuple[tuple[str, int], ...], pods: int) -> tuple[tuple[str, int], ...]:
    return tuple((resource, amount * pods) for resource, amount in requests)


def expected_end(view: GangView, known: Known, now: float) -> float:
    """Say when a gang is expected to end; one that outlives its duration at twice its age."""
    start, duration = began(view), expected_duration(view, known)
    if start is None:
        return inf
    return start + duration if start + duration > now else now + (now - start)


def expected_duration(view: GangView, known: Known) -> float:
    """Say how long a gang is expected to run, by itself or its queue; infinite where neither."""
    terms = view.understood.terms
    if terms is None:
        return inf
    return terms.expected_duration or known.queues.queue(terms.queue).duration
