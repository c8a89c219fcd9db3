"""Cycles over a few nodes and queues, for the tests of backfill."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

import numpy as np

from scheduling.cycle import next_cycle
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.node import Node
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Refusal, Verdict
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.pod_index import ExistingPods
from tests.builders import GPU, columns, gang, group, node, shape

NODES = (node("n1", gpu=8), node("n2", gpu=8))


def asks(
    name: str,
    pods: int,
    *,
    queue: str = "a",
    surplus: int = 0,
    created: float = 0,
    lasts: float = inf,
) -> PendingGang:
    """A gang with pods of one GPU each, and units of surplus of one pod each."""
    one = shape(gpu=1)
    more = ((group("workers", 1, one),),) * surplus
    asked = gang(name, group("workers", pods, one), surplus=more, created=created)
    return replace(asked, queue=queue, duration=lasts)


def holds(name: str, gpus: Mapping[str, int], *, ends: float = inf, queue: str = "a") -> Holding:
    """A running gang with so many GPUs on each node."""
    room = tuple((where, ((GPU, count), ("pods", count))) for where, count in gpus.items())
    return Holding(GangKey("team", name), queue, room, ends)


def decide(
    queues: Iterable[Queue],
    *pending: PendingGang,
    running: Iterable[Holding] = (),
    aged: Iterable[PendingGang] = (),
    passed: Iterable[PendingGang] = (),
    nodes: tuple[Node, ...] = NODES,
    existing: ExistingPods | None = None,
) -> tuple[dict[str, Verdict], list[str]]:
    """The verdicts by name of the gang, and the blocked gangs that were passed.

    `aged` have waited too long, `passed` were passed too often.
    """
    tree, runs = QuotaTree(queues), list(running)
    waiting = WaitingGangs(tree)
    for each in pending:
        waiting.put(each)
    held = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
    used: dict[str, dict[str, int]] = {}
    for each_running in runs:
        for where, amounts in each_running.room:
            if each_running.queue in tree.index:
                held[tree.index[each_running.queue]] += tree.requests(dict(amounts))
            taken = used.setdefault(where, {})
            for resource, amount in amounts:
                taken[resource] = taken.get(resource, 0) + amount
    overdue = frozenset(each.key for each in aged)
    old = overdue | {each.key for each in passed}
    told = Queues(waiting, held, {GPU: 16}, 0.0, lambda: runs, old, overdue)
    decisions, memory = next_cycle(told, columns(*nodes, used=used), None, existing=existing)
    return {each.key.name: each.verdict for each in decisions}, [key.name for key in memory.passed]


def said(verdict: Verdict) -> str:
    assert isinstance(verdict, Refusal), verdict
    return f"{verdict.reason}: {verdict.message}"


def team(when: WhenBlocked = WhenBlocked.BEST_EFFORT, gpus: int = 99) -> Queue:
    return Queue("a", quota={GPU: gpus}, when_blocked=when)


BUSY = (holds("old", {"n1": 8}, ends=100), holds("other", {"n2": 6}, ends=200))
