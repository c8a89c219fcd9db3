"""Which gangs may pass a blocked one: EASY backfilling, told on one pool of nodes."""

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
import pytest

from scheduling.backfill.reservations import (
    Contested,
    Outlook,
    Reservation,
    Reservations,
    RunningGang,
)
from scheduling.model.gang import GangKey, PendingGang
from tests.builders import gang, group, shape

NOWHERE = np.zeros(1, dtype=np.bool_)


def fits(asked: PendingGang, outlook: Outlook) -> bool:
    """Each pod takes one unit, on any node; the only queue may hold 100."""
    wanted = sum(each.count for each in asked.minimum)
    return wanted <= int(outlook.free.sum()) and wanted + int(outlook.held.sum()) <= 100


def spares(*_: object) -> bool:
    """No node has anything to spare."""
    return False


def asks(name: str, pods: int) -> PendingGang:
    return gang(name, group("workers", pods, shape(cpu=1)))


def runs(name: str, ends: float, *on: int) -> RunningGang:
    """A gang that holds so many units on each node, in the only queue."""
    nodes, units = np.flatnonzero(on), np.array([[each for each in on if each]], dtype=np.int64)
    return RunningGang(GangKey("team", name), ends, nodes, units, 0, np.array([sum(on)]))


def waits_for(*nodes: bool) -> Contested:
    return Contested(np.array(nodes, dtype=np.bool_), NOWHERE)


@dataclass
class Pool:
    """Nodes with so many units free, and gangs that run on them."""

    free: tuple[int, ...]
    running: list[RunningGang] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        held = sum(int(each.quota.sum()) for each in self.running)
        self.outlook = Outlook(np.array([self.free], dtype=np.int64), np.array([[held]]))
        self.kept = Reservations(self.now, self.running, fits, spares)

    def lets(self, gang: RunningGang) -> bool:
        """Whether a gang may start; if it may, it does."""
        if self.kept.delayed_by(gang, self.outlook) is not None:
            return False
        self.outlook = self.outlook.beside(gang)
        return True


def test_without_a_reservation_everything_passes() -> None:
    assert Pool((4,)).lets(runs("x", inf, 4))


def test_a_gang_that_ends_before_the_start_of_the_blocked_one_passes() -> None:
    pool = Pool((2,), [runs("old", 100, 6)])
    pool.kept.reserve(Reservation(asks("head", 8), waits_for(True)))
    assert pool.lets(runs("short", 100, 2))


def test_a_gang_that_ends_later_and_takes_what_the_blocked_one_needs_does_not_pass() -> None:
    pool = Pool((2,), [runs("old", 100, 6)])
    pool.kept.reserve(Reservation(asks("head", 8), waits_for(True)))
    assert not pool.lets(runs("long", 101, 1))


def test_a_gang_that_ends_later_passes_if_the_blocked_one_has_room_beside_it() -> None:
    pool = Pool((2,), [runs("old", 100, 6)])
    pool.kept.reserve(Reservation(asks("head", 6), waits_for(True)))
    assert pool.lets(runs("long", inf, 1))
    assert pool.lets(runs("another", inf, 1))
    assert not pool.lets(runs("third", inf, 1))


def test_the_start_is_after_as_many_ends_as_are_needed_and_no_more() -> None:
    pool = Pool((0,), [runs("a", 10, 2), runs("b", 20, 2), runs("c", 30, 2)])
    pool.kept.reserve(Reservation(asks("head", 4), waits_for(True)))
    assert pool.lets(runs("until 20", 20, 0))
    broken = pool.kept.delayed_by(runs("x", 21, 3), pool.outlook)
    assert broken is not None
    assert broken.starts == 20


def test_other_nodes_are_no_matter_of_the_blocked_gang() -> None:
    pool = Pool((0, 4), [runs("old", 100, 4, 0)])
    pool.kept.reserve(Reservation(asks("head", 8), waits_for(True, False)))
    assert pool.lets(runs("elsewhere", inf, 0, 4))


def test_only_the_first_gang_that_waits_for_some_nodes_has_a_start() -> None:
    pool = Pool((2,), [runs("early", 100, 4), runs("late", 200, 2)])
    pool.kept.reserve(Reservation(asks("head", 8), waits_for(True)))
    pool.kept.reserve(Reservation(asks("second", 5), waits_for(True)))
    assert pool.lets(runs("short", 150, 2))


def test_gangs_that_wait_for_other_nodes_each_have_a_start() -> None:
    pool = Pool((1, 1), [runs("a", 50, 1, 0), runs("b", 100, 0, 1)])
    pool.kept.reserve(Reservation(asks("left", 3), waits_for(True, False)))
    pool.kept.reserve(Reservation(asks("right", 4), waits_for(False, True)))
    assert not pool.lets(runs("x", 60, 1, 0))
    assert not pool.lets(runs("y", 101, 0, 1))


def test_without_a_time_nothing_is_kept_and_all_pass() -> None:
    pool = Pool((2,), [runs("endless", inf, 6)])
    pool.kept.reserve(Reservation(asks("head", 8), waits_for(True)))
    assert pool.lets(runs("long", inf, 2))


def test_nothing_passes_a_barred_gang_on_its_nodes() -> None:
    pool = Pool((2, 2), [runs("endless", inf, 6, 0)])
    pool.kept.bar(Reservation(asks("aged", 8), waits_for(True, False)))
    assert not pool.lets(runs("short", 1, 1, 0))
    assert pool.lets(runs("elsewhere", inf, 0, 1))


def test_a_gang_that_was_admitted_before_counts_as_one_that_will_end() -> None:
    pool = Pool((6,))
    assert pool.lets(runs("first", 50, 4))
    pool.kept.reserve(Reservation(asks("head", 6), waits_for(True)))
    assert pool.lets(runs("short", 50, 1))
    assert not pool.lets(runs("long", 51, 1))


@pytest.mark.parametrize(("ends", "passes"), [(100, True), (101, False)])
def test_what_a_queue_may_hold_is_kept_like_room_on_nodes(ends: float, passes: bool) -> None:
    pool = Pool((200,), [runs("old", 100, 60)])
    pool.kept.reserve(
        Reservation(asks("head", 100), Contested(NOWHERE, np.ones(1, dtype=np.bool_)))
    )
    assert pool.lets(runs("x", ends, 40)) is passes


def test_what_is_kept_for_a_borrower_is_free_for_the_own_quota_of_another_queue() -> None:
    pool = Pool((2,), [runs("endless", inf, 6)])
    pool.kept.bar(Reservation(asks("aged", 8), waits_for(True), row=1, borrows=True))
    assert not pool.lets(runs("borrows", inf, 1))
    assert pool.lets(replace(runs("within", inf, 1), borrows=False))
