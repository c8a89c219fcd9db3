"""Which gangs may pass a blocked one: EASY backfilling, told on one pool of nodes."""

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
import pytest

from scheduling.admission.question import SearchSteps
from scheduling.backfill.outlook import Cluster, Outlook, RunningGang
from scheduling.backfill.reservations import (
    NO_TURN,
    Bar,
    Claim,
    Contested,
    Kept,
    KeptPart,
    Passer,
    Reservations,
    Start,
    StartReservation,
    Turn,
)
from scheduling.model.amounts import Mask
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import Queue
from scheduling.queueing.line import Place
from scheduling.queueing.quota_tree import QuotaTree
from tests.builders import columns, gang, group, node, shape

NOWHERE, NONE = np.zeros(2, dtype=np.bool_), np.zeros(1, dtype=np.bool_)
ALL = np.ones(1, dtype=np.bool_)
CLUSTER = Cluster(
    columns(node("n0", cpu=9), node("n1", cpu=9)),
    None,
    QuotaTree([Queue("default", quota={"units": 100})]),
    SearchSteps(0),
)
FIRST: Place = (0, 0, False, 0.0, 0.0, "", "")
LATER: Place = (0, 0, False, 0.0, 1.0, "", "")


class Sum(Outlook):
    """Each pod takes one unit, on any node; the only queue may hold 100."""

    def short_of(self, gang: PendingGang) -> Mask:
        return np.array([_pods(gang) + int(self.held.sum()) > 100])

    def has_room_for(self, gang: PendingGang) -> bool:
        return _pods(gang) <= int(self.free.sum())

    def spares(self, *_: object) -> bool:
        return False


def _pods(gang: PendingGang) -> int:
    return sum(each.count for each in gang.minimum)


def asks(name: str, pods: int) -> PendingGang:
    return gang(name, group("workers", pods, shape(cpu=1)))


def runs(name: str, ends: float, *on: int) -> RunningGang:
    """A gang that holds so many units on each node, in the only queue."""
    nodes, units = np.flatnonzero(on), np.array([[each for each in on if each]], dtype=np.int64)
    return RunningGang(GangKey("team", name), ends, nodes, units, 0, np.array([sum(on)]))


def waits_for(*nodes: bool) -> Contested:
    return Contested(np.array([*nodes, False][:2], dtype=np.bool_), NONE, NONE)


QUOTA = Contested(NOWHERE, ALL, ALL)


def claim(asked: PendingGang, *, borrows: bool = False, turn: Turn = NO_TURN) -> Claim:
    """What is kept for a gang that came first, of the only queue or, if it borrows, of another."""
    return Claim(asked, 1 if borrows else 0, FIRST, turn, borrows=borrows)


def start_of(asked: PendingGang, contested: Contested, promised: float = inf) -> StartReservation:
    return StartReservation(claim(asked), contested, contested, promised=promised)


def aged(asked: PendingGang, contested: Contested, promised: float = inf) -> StartReservation:
    """A start, and a bar to the same where it is over or cannot be told."""
    bar = Bar(claim(asked), contested)
    return replace(start_of(asked, contested, promised), instead=(bar,))


@dataclass
class Pool:
    """Nodes with so many units free, and gangs that run on them."""

    free: tuple[int, ...]
    running: list[RunningGang] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        held = sum(int(each.quota.sum()) for each in self.running)
        free = np.array([[*self.free, 0][:2]], dtype=np.int64)
        self.outlook: Outlook = Sum(CLUSTER, free, np.array([[held]]))
        self.kept = Reservations(self.now, self.running)

    def broken_by(self, gang: RunningGang, *, borrows: bool = True) -> Kept | None:
        who = Passer(gang.key, 0, LATER, lambda: borrows)
        return self.kept.broken_by(Start(who, gang, self.outlook))

    def lets(self, gang: RunningGang, *, borrows: bool = True) -> bool:
        """Whether a gang may start; if it may, it does."""
        if self.broken_by(gang, borrows=borrows) is not None:
            return False
        self.outlook = self.outlook.beside(gang)
        return True


def test_without_a_reservation_everything_passes() -> None:
    assert Pool((4,)).lets(runs("x", inf, 4))


def test_a_gang_that_ends_before_the_start_of_the_blocked_one_passes() -> None:
    pool = Pool((2,), [runs("old", 100, 6)])
    pool.kept.keep(start_of(asks("head", 8), waits_for(True)))
    assert pool.lets(runs("short", 100, 2))


def test_a_gang_that_ends_later_and_takes_what_the_blocked_one_needs_does_not_pass() -> None:
    pool = Pool((2,), [runs("old", 100, 6)])
    pool.kept.keep(start_of(asks("head", 8), waits_for(True)))
    assert not pool.lets(runs("long", 101, 1))


def test_a_gang_that_ends_later_passes_if_the_blocked_one_has_room_beside_it() -> None:
    pool = Pool((2,), [runs("old", 100, 6)])
    pool.kept.keep(start_of(asks("head", 6), waits_for(True)))
    assert pool.lets(runs("long", inf, 1))
    assert pool.lets(runs("another", inf, 1))
    assert not pool.lets(runs("third", inf, 1))


def test_the_start_is_after_as_many_ends_as_are_needed_and_no_more() -> None:
    pool = Pool((0,), [runs("a", 10, 2), runs("b", 20, 2), runs("c", 30, 2)])
    pool.kept.keep(start_of(asks("head", 4), waits_for(True)))
    assert pool.lets(runs("until 20", 20, 0))
    broken = pool.broken_by(runs("x", 21, 3))
    assert isinstance(broken, StartReservation)
    assert broken.starts == 20


def test_other_nodes_are_no_matter_of_the_blocked_gang() -> None:
    pool = Pool((0, 4), [runs("old", 100, 4, 0)])
    pool.kept.keep(start_of(asks("head", 8), waits_for(True, False)))
    assert pool.lets(runs("elsewhere", inf, 0, 4))


def test_only_the_first_gang_that_waits_for_some_nodes_has_a_start() -> None:
    pool = Pool((2,), [runs("early", 100, 4), runs("late", 200, 2)])
    pool.kept.keep(start_of(asks("head", 8), waits_for(True)))
    pool.kept.keep(start_of(asks("second", 5), waits_for(True)))
    assert pool.lets(runs("short", 150, 2))


def test_gangs_that_wait_for_other_nodes_each_have_a_start() -> None:
    pool = Pool((1, 1), [runs("a", 50, 1, 0), runs("b", 100, 0, 1)])
    pool.kept.keep(start_of(asks("left", 3), waits_for(True, False)))
    pool.kept.keep(start_of(asks("right", 4), waits_for(False, True)))
    assert not pool.lets(runs("x", 60, 1, 0))
    assert not pool.lets(runs("y", 101, 0, 1))


def test_without_a_time_nothing_is_kept_and_all_pass() -> None:
    pool = Pool((2,), [runs("endless", inf, 6)])
    pool.kept.keep(start_of(asks("head", 8), waits_for(True)))
    assert pool.lets(runs("long", inf, 2))


def test_nothing_passes_a_barred_gang_on_its_nodes() -> None:
    pool = Pool((2, 2), [runs("endless", inf, 6, 0)])
    pool.kept.keep(Bar(claim(asks("aged", 8)), waits_for(True, False)))
    assert not pool.lets(runs("short", 1, 1, 0))
    assert pool.lets(runs("elsewhere", inf, 0, 1))


def test_what_a_part_of_an_aged_gang_has_now_it_keeps_and_no_more() -> None:
    pool = Pool((4,), [runs("endless", inf, 96)])
    part = asks("aged", 3)
    pool.kept.keep(KeptPart(claim(part), waits_for(True), part))
    assert pool.lets(runs("one", inf, 1))
    assert not pool.lets(runs("another", inf, 1))


def test_quota_that_an_aged_gang_has_now_it_keeps_and_no_more() -> None:
    pool = Pool((99,), [runs("endless", inf, 96)])
    pool.kept.keep(KeptPart(claim(asks("aged", 3)), QUOTA, asks("aged", 0)))
    assert pool.lets(runs("one", inf, 1))
    assert not pool.lets(runs("another", inf, 1))


@pytest.mark.parametrize(("now", "passes"), [(50, True), (61, False)])
def test_an_aged_gang_keeps_the_first_start_that_it_was_told(now: float, *, passes: bool) -> None:
    """It was told 60; what runs has outlived what it told, and is expected to end at 100 now."""
    pool = Pool((2,), [runs("liar", 100, 6)], now)
    pool.kept.keep(aged(asks("head", 8), waits_for(True), promised=60))
    assert pool.lets(runs("until 60", 60, 1)) is passes
    assert not pool.lets(runs("until 100", 100, 1))


def test_an_aged_gang_without_a_start_is_barred_and_so_is_the_next_one() -> None:
    """The first can never be told a start, but the second, which then keeps its own."""
    pool = Pool((2, 2), [runs("endless", inf, 6, 0), runs("old", 100, 0, 6)])
    pool.kept.keep(aged(asks("first", 99), waits_for(True, True)))
    pool.kept.keep(aged(asks("second", 9), waits_for(False, True)))
    broken = pool.broken_by(runs("x", 101, 0, 2))
    assert isinstance(broken, Bar)
    pool.kept.drop(broken.claim.gang.key)
    assert isinstance(pool.broken_by(runs("x", 101, 0, 2)), StartReservation)
    assert pool.lets(runs("y", 100, 0, 2))


def test_a_gang_that_was_admitted_before_counts_as_one_that_will_end() -> None:
    pool = Pool((6,))
    assert pool.lets(runs("first", 50, 4))
    pool.kept.keep(start_of(asks("head", 6), waits_for(True)))
    assert pool.lets(runs("short", 50, 1))
    assert not pool.lets(runs("long", 51, 1))


@pytest.mark.parametrize(("ends", "passes"), [(100, True), (101, False)])
def test_what_a_queue_may_hold_is_kept_like_room_on_nodes(ends: float, passes: bool) -> None:
    pool = Pool((200,), [runs("old", 100, 60)])
    pool.kept.keep(start_of(asks("head", 100), QUOTA))
    assert pool.lets(runs("x", ends, 40)) is passes


def test_what_is_kept_for_a_borrower_is_free_for_the_own_quota_of_another_queue() -> None:
    pool = Pool((2,), [runs("endless", inf, 6)])
    pool.kept.keep(Bar(claim(asks("aged", 8), borrows=True), waits_for(True)))
    assert not pool.lets(runs("borrows", inf, 1))
    assert pool.lets(runs("within", inf, 1), borrows=False)


@pytest.mark.parametrize(("arrived", "heeds"), [(1.0, False), (3.0, True)])
def test_an_overdue_gang_heeds_what_is_kept_for_an_older_one_of_another_queue(
    arrived: float, *, heeds: bool
) -> None:
    kept = Claim(asks("aged", 8), 1, FIRST, (2.0, "team", "aged"))
    other = Passer(GangKey("team", "x"), 0, LATER, lambda: False, (arrived, "team", "x"))
    assert kept.is_heeded_by(other) is heeds
