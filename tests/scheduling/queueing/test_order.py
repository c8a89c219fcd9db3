"""The order of gangs across queues: worked examples, and the rule asked of all gangs each time."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import DEFAULT_QUEUE, Ordering, Queue, Reclaim, WhenBlocked
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.refusal_refresh import BEHIND, DECIDED
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import gang, group, shape

GPU = "nvidia.com/gpu"
CLUSTER = {GPU: 64}
DEFAULT = Queue(DEFAULT_QUEUE)


def asks(name: str, gpus: int, queue: str, *, priority: int = 0, created: float = 0) -> PendingGang:
    asked = gang(name, group("workers", gpus, shape(gpu=1)), priority=priority, created=created)
    return replace(asked, queue=queue)


def repairs(name: str, gpus: int, queue: str, **more: Any) -> PendingGang:
    """A gang that runs and has lost so many pods of its minimum."""
    return replace(asks(name, gpus, queue, **more), is_repair=True)


class Cycle:
    """Hands out gangs, and admits all but those that are named in `blocked`."""

    def __init__(
        self,
        queues: list[Queue],
        gangs: list[PendingGang],
        held: Mapping[str, int] | None = None,
        overdue: Collection[GangKey] = (),
    ) -> None:
        self.tree = QuotaTree(queues)
        self.waiting = waiting = WaitingGangs(self.tree)
        for each in gangs:
            waiting.put(each)
        holds = held or {}
        rows = [self.tree.requests({GPU: holds.get(name, 0)}) for name in self.tree.names]
        self.order = QueueOrder(waiting, np.array(rows, dtype=np.int64), CLUSTER, overdue)
        self.gpus = {each.key.name: sum(g.count for g in each.minimum) for each in gangs}

    def run(self, *blocked: str) -> list[str]:
        done = []
        for each in self.order:
            done.append(each.key.name)
            if each.key.name in blocked:
                self.order.block(each)
            else:
                self.order.take(each, {GPU: self.gpus[each.key.name]})
        return done

    def held_back(self) -> dict[str, GangKey | None]:
        undecided, columns = self.order.undecided(), self.waiting.columns
        found = {}
        for at in np.flatnonzero(undecided.why != DECIDED).tolist():
            row = int(columns.queue[at])
            gangs = self.waiting.line(self.tree.names[row]).gangs
            behind = gangs[undecided.ends[row]].key if undecided.why[at] == BEHIND else None
            found[gangs[columns.position[at]].key.name] = behind
        return found


def team(name: str, quota: int, when: WhenBlocked = WhenBlocked.BEST_EFFORT) -> Queue:
    return Queue(name, quota={GPU: quota}, when_blocked=when)


def test_in_a_queue_priority_decides_and_then_arrival() -> None:
    waiting = [
        asks("late", 1, "a", created=2),
        asks("early", 1, "a", created=1),
        asks("urgent", 1, "a", priority=5, created=3),
    ]
    assert Cycle([team("a", 8)], waiting).run() == ["urgent", "early", "late"]


def test_in_a_fifo_queue_only_arrival_decides() -> None:
    waiting = [asks("late", 1, "a", priority=5, created=2), asks("early", 1, "a", created=1)]
    queue = replace(team("a", 8), ordering=Ordering.FIFO)
    assert Cycle([queue], waiting).run() == ["early", "late"]


def test_the_queue_that_uses_the_smaller_share_of_its_quota_is_next() -> None:
    queues = [team("a", 8), team("b", 16)]
    waiting = [asks(f"a{n}", 2, "a", created=n) for n in range(3)]
    waiting += [asks(f"b{n}", 2, "b", created=10 + n) for n in range(3)]
    assert Cycle(queues, waiting).run() == ["a0", "b0", "b1", "a1", "b2", "a2"]


def test_a_gang_within_its_quota_comes_before_one_that_borrows() -> None:
    queues = [Queue("all"), Queue("a", "all", {GPU: 2}), Queue("b", "all", {GPU: 8})]
    waiting = [asks("borrows", 4, "a", priority=9), asks("within", 4, "b", created=5)]
    assert Cycle(queues, waiting).run() == ["within", "borrows"]


def test_the_queue_without_quota_comes_after_all_that_are_within_theirs() -> None:
    waiting = [asks("guest", 1, DEFAULT_QUEUE, priority=9), asks("within", 8, "a", created=5)]
    assert Cycle([DEFAULT, team("a", 8)], waiting).run() == ["within", "guest"]


def test_those_that_borrow_as_far_are_ordered_by_their_share_of_the_cluster() -> None:
    queues = [Queue("all", quota={GPU: 40}), Queue("a", "all", {GPU: 2}), Queue("b", "all")]
    waiting = [asks("a", 4, "a", created=9), asks("b", 1, "b")]
    assert Cycle(queues, waiting, {"a": 4, "b": 8}).run() == ["a", "b"]
    assert Cycle(queues, waiting, {"a": 9, "b": 8}).run() == ["b", "a"]


def test_who_has_no_quota_comes_after_those_that_borrow() -> None:
    queues = [DEFAULT, Queue("all", quota={GPU: 40}), Queue("a", "all", {GPU: 2})]
    waiting = [asks("guest", 1, DEFAULT_QUEUE), asks("borrows", 4, "a", created=9)]
    assert Cycle(queues, waiting, {"a": 9, DEFAULT_QUEUE: 8}).run() == ["borrows", "guest"]


NESTED = [
    Queue("root", quota={GPU: 4}),
    Queue("team", "root", {GPU: 4}),
    Queue("member", "team", reclaim=Reclaim.ANY),
    Queue("guest", "root", reclaim=Reclaim.ANY),
]


def test_of_those_that_borrow_the_one_that_need_not_go_as_far_is_next() -> None:
    waiting = [asks("guest", 2, "guest", priority=9), asks("member", 2, "member", created=5)]
    assert Cycle(NESTED, waiting).run() == ["member", "guest"]
    assert Cycle(NESTED, waiting, {"team": 4}).run() == ["guest", "member"]
    assert Cycle(NESTED, waiting, {"team": 2}).run() == ["member", "guest"]


def test_a_gang_that_asks_for_nothing_that_is_limited_comes_after_those_that_quota_covers() -> None:
    free = gang("free", group("workers", 1, shape(cpu=1)))
    waiting = [replace(free, queue="a"), asks("within", 1, "b", created=5)]
    cycle = Cycle([team("a", 8), team("b", 8)], waiting)
    assert cycle.run() == ["within", "free"]


def test_a_gang_beyond_the_quota_is_not_decided_and_others_of_its_queue_are() -> None:
    cycle = Cycle([team("a", 4)], [asks("large", 5, "a"), asks("small", 3, "a", created=1)])
    assert cycle.run() == ["small"]
    assert cycle.held_back() == {"large": None}


def test_in_a_strict_queue_nothing_passes_a_gang_that_is_beyond_the_quota() -> None:
    queue = team("a", 8, WhenBlocked.STRICT)
    waiting = [asks(f"{n}", size, "a", created=n) for n, size in enumerate((1, 5, 3))]
    cycle = Cycle([queue], waiting, {"a": 4})
    assert cycle.run() == ["0"]
    assert cycle.held_back() == {"1": None, "2": waiting[1].key}


def test_a_gang_that_no_quota_will_ever_cover_blocks_nothing() -> None:
    waiting = [asks("absurd", 9, "a"), asks("small", 3, "a", created=1)]
    cycle = Cycle([team("a", 8, WhenBlocked.STRICT)], waiting)
    assert cycle.run() == ["small"]
    assert cycle.held_back() == {"absurd": None}


def test_the_short_ones_pass_first_where_a_gang_is_blocked() -> None:
    queue = team("a", 8, WhenBlocked.BACKFILL)
    lengths = {"head": 5.0, "long": 9.0, "short": 1.0, "unknown": inf, "urgent": 99.0}
    waiting = [
        replace(asks(name, 1, "a", created=at, priority=name == "urgent"), duration=lasts)
        for at, (name, lasts) in enumerate(lengths.items())
    ]
    first = replace(waiting[0], priority=2)
    cycle = Cycle([queue], [first, *waiting[1:]])
    assert cycle.run("head") == ["head", "urgent", "short", "long", "unknown"]


def test_in_a_strict_queue_nothing_passes_a_gang_that_found_no_room() -> None:
    queue = team("a", 8, WhenBlocked.STRICT)
    waiting = [asks(f"{n}", 1, "a", created=n) for n in range(3)]
    cycle = Cycle([queue, team("b", 8)], [*waiting, asks("other", 1, "b", created=9)])
    assert cycle.run("1") == ["0", "other", "1"]
    assert cycle.held_back() == {"2": waiting[1].key}


def test_in_a_strict_queue_a_gang_may_go_beyond_the_quota_by_what_went_before_it() -> None:
    queue = team("a", 4, WhenBlocked.STRICT)
    waiting = [asks(f"{n}", 2, "a", created=n) for n in range(4)]
    cycle = Cycle([queue], waiting)
    assert cycle.run() == ["0", "1"]
    assert cycle.held_back() == {"2": None, "3": waiting[2].key}


def test_what_a_sibling_takes_is_gone_for_the_one_that_wanted_to_borrow_it() -> None:
    queues = [Queue("all"), Queue("a", "all", {GPU: 2}), Queue("b", "all", {GPU: 8})]
    waiting = [asks("borrows", 8, "a"), asks("little", 2, "a", created=1), asks("b", 8, "b")]
    cycle = Cycle(queues, waiting)
    assert cycle.run() == ["b", "little"]
    assert cycle.held_back() == {"borrows": None}


def test_what_those_below_a_queue_take_counts_in_its_share_at_once() -> None:
    queues = [Queue("all", quota={GPU: 8}), Queue("a", "all", {GPU: 8}), team("b", 8)]
    waiting = [asks("a", 8, "a", priority=1), asks("all", 1, "all"), asks("b", 1, "b")]
    assert Cycle(queues, waiting, {"b": 2}).run() == ["a", "b", "all"]


def test_large_shares_of_the_cluster_are_told_apart() -> None:
    tree = QuotaTree(
        [Queue("all", quota={"memory": 100 * 2**40}), *(Queue(n, "all") for n in "ab")]
    )
    waiting = WaitingGangs(tree)
    for name in "ab":
        asked = gang(name, group("workers", 1, shape(memory=2**40)), priority=name == "a")
        waiting.put(replace(asked, queue=name))
    rows = {"a": 60 * 2**40, "b": 2 * 2**40}
    held = np.array([tree.requests({"memory": rows.get(name, 0)}) for name in tree.names])
    order = QueueOrder(waiting, held, {"memory": 100 * 2**40})
    assert [each.key.name for each in order] == ["b", "a"]


@pytest.mark.parametrize("ordering", Ordering)
def test_a_repair_comes_before_older_gangs_of_its_priority(ordering: Ordering) -> None:
    """Volcano 5805: what came free went to another one, and a gang stayed broken."""
    waiting = [asks("older", 1, "a"), repairs("broken", 1, "a", created=1)]
    queue = replace(team("a", 8), ordering=ordering)
    assert Cycle([queue], waiting).run() == ["broken", "older"]


def test_a_repair_comes_after_gangs_of_higher_priority() -> None:
    waiting = [repairs("broken", 1, "a"), asks("urgent", 1, "a", priority=1, created=1)]
    assert Cycle([team("a", 8)], waiting).run() == ["urgent", "broken"]


def test_a_repair_within_its_quota_comes_before_gangs_of_other_queues() -> None:
    waiting = [asks("b", 1, "b"), repairs("broken", 1, "a", created=1)]
    assert Cycle([team("a", 8), team("b", 8)], waiting, {"a": 7}).run() == ["broken", "b"]
    overdue = [waiting[0].key]
    cycle = Cycle([team("a", 8), team("b", 8)], waiting, {"a": 7}, overdue)
    assert cycle.run() == ["broken", "b"]


def test_a_repair_that_borrows_comes_after_gangs_within_their_quota() -> None:
    queues = [Queue("all"), Queue("a", "all", {GPU: 2}), Queue("b", "all", {GPU: 8})]
    waiting = [repairs("broken", 1, "a"), asks("within", 1, "b", created=5)]
    assert Cycle(queues, waiting, {"a": 2}).run() == ["within", "broken"]


def test_a_repair_passes_a_blocked_gang_before_shorter_ones() -> None:
    queue = team("a", 8, WhenBlocked.BACKFILL)
    first = asks("head", 1, "a", priority=1)
    short = replace(asks("short", 1, "a", created=1), duration=1.0)
    broken = replace(repairs("broken", 1, "a", created=2), duration=9.0)
    assert Cycle([queue], [first, short, broken]).run("head") == ["head", "broken", "short"]


def test_surplus_beside_a_repair_brings_no_gang_forward() -> None:
    broken = repairs("broken", 1, "a", created=1)
    more = replace(broken, surplus=(broken.minimum,))
    assert Cycle([team("a", 8)], [asks("older", 1, "a"), more]).run() == ["older", "broken"]


# ---- the rule, asked of all gangs each time one is to be chosen


def level_of(tree: QuotaTree, held: Amounts, at: int, demand: Amounts) -> int:
    """How far up the quota is that covers a gang, with all that the queues hold and the gang."""
    with_it = held.copy()
    with_it[at] += demand
    if with_it[at][0] <= tree.queues[at].quota[GPU]:
        return 0
    used = tree.used(with_it)
    is_parent = any(each.parent == tree.names[at] for each in tree.queues)
    for steps, row in enumerate(tree.path(at), start=int(is_parent)):
        if used[row][0] <= tree.subtree[row][0]:
            return steps
    return 9


def plainly(queues: list[Queue], gangs: list[PendingGang], blocked: set[str]) -> list[str]:
    """What the order is if each time every queue is asked for its first gang."""
    tree = QuotaTree(queues)
    held = np.zeros((len(queues), len(tree.resources)), dtype=np.int64)
    left = list(gangs)
    done: list[str] = []
    stopped: set[str] = set()
    while True:
        used = tree.used(held)
        available, shares = np.maximum(tree.available(used), 0), tree.shares(used)
        heads = []
        for queue in tree.queues:
            own = sorted(
                (each for each in left if each.queue == queue.name),
                key=lambda g: (
                    0 if queue.ordering is Ordering.FIFO else -g.priority,
                    not g.is_repair,
                    g.created,
                ),
            )
            at, is_stopped = tree.index[queue.name], queue.name in stopped
            for each in own:
                demand = tree.requests({GPU: sum(g.count for g in each.minimum)})
                if is_stopped and not each.is_repair:
                    continue
                if (demand <= available[at]).all():
                    level = level_of(tree, held, at, demand)
                    part = (
                        int(max(used[at][0], held[at][0])) * 10**6 // CLUSTER[GPU]
                        if level
                        else int(shares[at])
                    )
                    later = level, not each.is_repair, part, -each.priority
                    heads.append((*later, each.created, each.key.name, each))
                    break
                if queue.when_blocked is WhenBlocked.STRICT and (demand <= tree.most[at]).all():
                    is_stopped = True
        if not heads:
            return done
        chosen = min(heads, key=lambda head: head[:-1])[-1]
        left.remove(chosen)
        done.append(chosen.key.name)
        if chosen.key.name not in blocked:
            held[tree.index[chosen.queue]] += tree.requests(
                {GPU: sum(g.count for g in chosen.minimum)}
            )
        elif tree.queues[tree.index[chosen.queue]].when_blocked is WhenBlocked.STRICT:
            stopped.add(chosen.queue)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Queue], list[PendingGang], set[str]]:
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    queues = [Queue("all", quota={GPU: draw(st.integers(0, 6))})]
    queues += [
        Queue(
            name,
            draw(st.sampled_from(["all", ""])),
            {GPU: draw(st.integers(0, 8))},
            ordering=draw(st.sampled_from(list(Ordering))),
            when_blocked=draw(st.sampled_from([WhenBlocked.STRICT, WhenBlocked.BEST_EFFORT])),
        )
        for name in names
    ]
    gangs = [
        replace(
            asks(
                f"g{at}",
                draw(st.integers(1, 6)),
                draw(st.sampled_from([*names, "all"])),
                priority=draw(st.integers(0, 2)),
                created=at,
            ),
            is_repair=draw(st.booleans()),
        )
        for at in range(draw(st.integers(1, 9)))
    ]
    blocked = draw(st.sets(st.sampled_from([each.key.name for each in gangs]), max_size=3))
    return queues, gangs, blocked


@given(worlds())
def test_the_walk_takes_the_gang_that_the_rule_names_each_time(
    world: tuple[list[Queue], list[PendingGang], set[str]],
) -> None:
    queues, gangs, blocked = world
    cycle = Cycle(queues, gangs)
    assert cycle.run(*blocked) == plainly(queues, gangs, blocked)


@given(worlds())
def test_every_gang_is_decided_or_held_back_with_a_reason(
    world: tuple[list[Queue], list[PendingGang], set[str]],
) -> None:
    queues, gangs, blocked = world
    cycle = Cycle(queues, gangs)
    decided, held_back = cycle.run(*blocked), cycle.held_back()
    assert sorted([*decided, *held_back]) == sorted(each.key.name for each in gangs)
