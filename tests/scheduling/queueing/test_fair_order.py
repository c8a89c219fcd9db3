"""The order of gangs where queues have fair sharing: worked examples, time as an argument."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pytest

from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import DEFAULT_QUEUE, FairSharing, Ordering, Queue, WhenBlocked
from scheduling.queueing.average_usage import QueueUsage
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import gang, group, shape

GPU = "nvidia.com/gpu"
DAY = 24 * 3600.0
CLUSTER = {GPU: 64, "cpu": 640_000, "pods": 110}
FAIR = FairSharing()

Past = Mapping[tuple[str, str], tuple[int, float, float]]
"""By queue and namespace: what was held from one time to another."""


def asks(namespace: str, name: str, gpus: int = 1, queue: str = "a", **more: int) -> PendingGang:
    asked = gang(name, group("workers", gpus, shape(gpu=1)), **more)  # type: ignore[arg-type]
    return replace(asked, key=GangKey(namespace, name), queue=queue)


def fair(name: str, gpus: int, parent: str = "", rules: FairSharing = FAIR) -> Queue:
    return Queue(name, parent, {GPU: gpus}, fair=rules)


class Day:
    """Queues after a time in which some things were held; hands out gangs and admits all."""

    def __init__(self, queues: list[Queue], past: Past, now: float = DAY) -> None:
        self.tree, self.now = QuotaTree(queues), now
        self.usages = {q.name: QueueUsage(q.fair, 0.0) for q in queues if q.fair is not None}
        self.held: dict[str, int] = {}
        for (queue, namespace), (gpus, since, until) in past.items():
            self.usages[queue].hold(namespace, {GPU: gpus}, since)
            if until < now:
                self.usages[queue].hold(namespace, {}, until)
            else:
                self.held[queue] = self.held.get(queue, 0) + gpus
        for each in self.usages.values():
            each.settle(now)
        self.waiting = WaitingGangs(self.tree)
        self.shares = FairShares(self.usages, self.tree, CLUSTER)

    def put(self, *gangs: PendingGang) -> None:
        for each in gangs:
            self.waiting.put(each)

    def order(self, *gangs: PendingGang, overdue: Collection[GangKey] = ()) -> list[str]:
        """Return the order in which gangs are decided."""
        self.put(*gangs)
        late = frozenset(overdue)
        self.waiting.arrange(self.shares, late)
        rows = [self.tree.requests({GPU: self.held.get(each, 0)}) for each in self.tree.names]
        held = np.array(rows, dtype=np.int64)
        order = QueueOrder(self.waiting, held, CLUSTER, late, fair=self.shares)
        found = []
        for each in order:
            found.append(each.key.name)
            order.take(each, {GPU: sum(g.count for g in each.minimum)})
        return found


YESTERDAY = {("a", "old"): (8, 0.0, DAY / 2)}


def test_who_used_all_yesterday_comes_after_who_used_nothing() -> None:
    waiting = [asks("old", "o1", created=1), asks("old", "o2", created=2)]
    waiting += [asks("new", "n1", created=3), asks("new", "n2", created=4)]
    assert Day([fair("a", 8)], YESTERDAY).order(*waiting) == ["n1", "n2", "o1", "o2"]
    plain = replace(fair("a", 8), fair=None)
    assert Day([plain], {}).order(*waiting) == ["o1", "o2", "n1", "n2"]


def test_namespaces_without_a_past_take_turns_within_one_cycle() -> None:
    """An admission counts at once; between namespaces as short of it arrival decides."""
    waiting = [asks("x", f"x{at}", created=at) for at in range(3)]
    waiting += [asks("y", f"y{at}", created=10 + at) for at in range(3)]
    assert Day([fair("a", 8)], {}).order(*waiting) == ["x0", "y0", "x1", "y1", "x2", "y2"]


def test_a_large_gang_counts_as_much_as_several_small_ones() -> None:
    waiting = [asks("x", "x0", 4), asks("x", "x1", 1, created=1)]
    waiting += [asks("y", f"y{at}", created=10 + at) for at in range(5)]
    found = Day([fair("a", 16)], {}).order(*waiting)
    assert found == ["x0", "y0", "y1", "y2", "y3", "x1", "y4"]


def test_who_has_a_small_lead_does_not_take_all() -> None:
    past = {("a", "x"): (1, 0.0, DAY / 8)}
    waiting = [asks("x", f"x{at}") for at in range(3)]
    waiting += [asks("y", f"y{at}", created=9) for at in range(3)]
    assert Day([fair("a", 8)], past).order(*waiting) == ["y0", "x0", "y1", "x1", "y2", "x2"]


def test_a_namespace_of_twice_the_weight_gets_twice_as_much() -> None:
    rules = FairSharing(weights={"y": 2})
    waiting = [asks("x", f"x{at}") for at in range(3)]
    waiting += [asks("y", f"y{at}", created=9) for at in range(6)]
    found = Day([fair("a", 16, rules=rules)], {}).order(*waiting)
    assert [found[:3].count("x0"), [each[0] for each in found[:6]].count("y")] == [1, 4]


def test_priority_comes_before_usage() -> None:
    waiting = [asks("new", "low"), asks("old", "high", priority=1, created=9)]
    assert Day([fair("a", 8)], YESTERDAY).order(*waiting) == ["high", "low"]


def test_a_fifo_queue_goes_by_arrival_alone() -> None:
    queue = replace(fair("a", 8), ordering=Ordering.FIFO)
    waiting = [asks("old", "first"), asks("new", "second", created=1)]
    assert Day([queue], YESTERDAY).order(*waiting) == ["first", "second"]


def test_a_gang_that_waited_too_long_comes_first_and_such_ones_as_they_arrived() -> None:
    waiting = [
        asks("old", "o1", created=1),
        asks("old", "o2", created=2),
        asks("new", "n", created=3),
    ]
    overdue = [waiting[1].key]
    assert Day([fair("a", 8)], YESTERDAY).order(*waiting, overdue=overdue) == ["o2", "n", "o1"]
    day = Day([fair("a", 8)], YESTERDAY)
    assert day.order(*waiting) == ["n", "o1", "o2"]
    both = [waiting[0].key, waiting[1].key]
    assert day.order(overdue=both) == ["o1", "o2", "n"], "and it is seen when they age"


def test_a_repair_comes_before_usage() -> None:
    waiting = [asks("new", "n"), replace(asks("old", "broken", created=1), is_repair=True)]
    assert Day([fair("a", 8)], YESTERDAY).order(*waiting) == ["broken", "n"]


def test_of_two_queues_the_one_that_used_less_over_time_is_next() -> None:
    queues = [fair("a", 8), fair("b", 8)]
    past = {("a", "x"): (8, 0.0, DAY / 2), ("b", "y"): (1, DAY / 2, DAY)}
    waiting = [asks("x", "ax", queue="a"), asks("y", "by", queue="b", created=9)]
    assert Day(queues, past).order(*waiting) == ["by", "ax"]
    plain = [replace(each, fair=None) for each in queues]
    day = Day(plain, {})
    day.held = {"b": 1}
    assert day.order(*waiting) == ["ax", "by"], "b holds more at the moment"


def test_a_queue_of_weight_two_may_use_twice_as_much() -> None:
    past = {("a", "x"): (4, 0.0, DAY / 2), ("b", "y"): (6, 0.0, DAY / 2)}
    waiting = [asks("x", "ax", queue="a"), asks("y", "by", queue="b", created=9)]
    assert Day([fair("a", 8), fair("b", 8)], past).order(*waiting) == ["ax", "by"]
    heavy = fair("b", 8, rules=FairSharing(weight=2))
    assert Day([fair("a", 8), heavy], past).order(*waiting) == ["by", "ax"]


def test_quota_comes_before_usage() -> None:
    """A gang that its quota covers is never kept waiting by one that borrows, whatever was used."""
    queues = [Queue("all"), fair("a", 8, "all"), fair("b", 2, "all")]
    past = {("a", "x"): (8, 0.0, DAY / 2)}
    waiting = [asks("new", "borrows", 4, queue="b"), asks("x", "within", 4, queue="a", created=9)]
    assert Day(queues, past).order(*waiting) == ["within", "borrows"]


def test_borrowers_go_by_what_they_used_of_the_cluster() -> None:
    queues = [Queue("all", quota={GPU: 40}), fair("a", 2, "all"), fair("b", 0, "all")]
    past = {("a", "x"): (20, 0.0, DAY / 2), ("b", "y"): (4, 0.0, DAY / 2)}
    waiting = [asks("x", "ax", 4, queue="a"), asks("y", "by", 4, queue="b", created=9)]
    assert Day(queues, past).order(*waiting) == ["by", "ax"]


def test_without_any_quota_namespaces_go_by_what_they_used_of_the_cluster() -> None:
    queue = Queue(DEFAULT_QUEUE, fair=FAIR)
    past = {(DEFAULT_QUEUE, "old"): (8, 0.0, DAY / 2)}
    waiting = [
        asks("old", "o", queue=DEFAULT_QUEUE),
        asks("new", "n", queue=DEFAULT_QUEUE, created=1),
    ]
    assert Day([queue], past).order(*waiting) == ["n", "o"]


def test_the_dominant_resource_is_taken_when_it_is_asked_for() -> None:
    """One namespace used CPUs, the other GPUs: the larger share counts, of each as it is now."""
    day = Day([Queue("a", quota={GPU: 8, "cpu": 64_000}, fair=FAIR)], {})
    day.usages["a"].begin_with({"cpus": {"cpu": 32_000.0}, "gpus": {GPU: 2.0}}, {}, DAY)
    waiting = [asks("cpus", "c"), asks("gpus", "g", created=1)]
    assert day.order(*waiting) == ["g", "c"]
    assert day.shares.of_namespace("a", "cpus") == pytest.approx(466_516, abs=1)
    assert day.shares.of_namespace("a", "gpus") == pytest.approx(233_258, abs=1)


def test_in_a_strict_queue_what_is_behind_by_usage_waits() -> None:
    queue = replace(fair("a", 8), when_blocked=WhenBlocked.STRICT)
    waiting = [
        asks("old", "small"),
        asks("new", "large", 9, created=1),
        asks("new", "n", created=2),
    ]
    day = Day([queue], YESTERDAY)
    assert day.order(*waiting) == ["n", "small"], "what no quota covers blocks nothing"
    day.waiting.drop(waiting[1].key)
    day.held = {"a": 4}
    assert day.order(asks("new", "five", 5, created=1)) == []


def test_usage_alone_changes_the_next_order_within_a_queue() -> None:
    """No gang comes or goes: the line is arranged anew for its usage."""
    day = Day([fair("a", 8)], {})
    assert day.order(asks("x", "x0"), asks("y", "y0", created=1)) == ["x0", "y0"]
    day.usages["a"].hold("x", {GPU: 4}, day.now)
    assert day.order() == ["y0", "x0"]


def test_usage_alone_changes_the_next_order_between_queues() -> None:
    day = Day([fair("a", 8), fair("b", 8)], {})
    assert day.order(asks("x", "in-a"), asks("x", "in-b", queue="b", created=1)) == ["in-a", "in-b"]
    day.usages["a"].hold("x", {GPU: 4}, day.now)
    assert day.order() == ["in-b", "in-a"]


def test_a_queue_whose_usage_counts_no_more_is_ordered_without_it() -> None:
    day = Day([fair("a", 8), fair("b", 8)], {("a", "x"): (4, 0.0, DAY / 2)})
    assert day.order(asks("x", "in-a"), asks("x", "in-b", queue="b", created=1)) == ["in-b", "in-a"]
    del day.usages["a"]
    assert day.order() == ["in-a", "in-b"]


def test_places_stay_consistent_as_gangs_come_and_go() -> None:
    day = Day([fair("a", 8)], YESTERDAY)
    gangs = [asks(f"ns{at % 7}", f"g{at:02}", 1 + at % 3, created=at) for at in range(40)]
    day.put(*gangs[:20])
    for at, each in enumerate(gangs[20:]):
        day.waiting.arrange(day.shares, frozenset({gangs[at].key}))
        day.waiting.put(each)
        day.waiting.drop(gangs[at].key)
        day.usages["a"].hold(each.key.namespace, {GPU: at}, DAY + at)
        line = day.waiting.line("a")
        assert line.places == sorted(line.places)
        assert [line.position(gang) for gang in line.gangs] == list(range(len(line.gangs)))
    day.waiting.arrange(day.shares, frozenset())
    again = Day([fair("a", 8)], YESTERDAY)
    again.usages = day.usages
    again.shares = FairShares(day.usages, again.tree, CLUSTER)
    again.put(*gangs[20:])
    again.waiting.arrange(again.shares, frozenset())
    assert [g.key for g in day.waiting.line("a").gangs] == [
        g.key for g in again.waiting.line("a").gangs
    ], "arranged step by step or at once, the order is the same"
