"""The moves that are found are the cheapest there are, by brute force on small clusters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduling.defragmentation.movable import Movable
from scheduling.defragmentation.moves import Moves, NoMoves, Running, cheapest_moves
from scheduling.defragmentation.subsets import cheapest_first
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.preemption import GangPart
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import GPU, columns, gang, group, node, shape


@dataclass(frozen=True)
class Runs:
    """A gang of pods with so many GPUs each, the nodes they are on, and what a move loses."""

    name: str
    each: int
    on: tuple[int, ...]
    lost: int


@dataclass(frozen=True)
class Small:
    """Nodes of some GPUs, gangs that run, and one that waits for pods of so many GPUs."""

    nodes: tuple[int, ...]
    runs: tuple[Runs, ...]
    wants: tuple[int, ...]

    @property
    def free(self) -> list[int]:
        free = list(self.nodes)
        for each in self.runs:
            for at in each.on:
                free[at] -= each.each
        return free

    def snapshot(self) -> NodeSnapshot:
        return columns(*(node(f"n{at}", gpu=gpus) for at, gpus in enumerate(self.nodes)))


def asks(name: str, pods: Sequence[int]) -> PendingGang:
    groups = (group(f"of-{each}", pods.count(each), shape(gpu=each)) for each in sorted({*pods}))
    return gang(name, *groups)


def running(small: Small) -> Running:
    snapshot = small.snapshot()
    room = FreeCapacity.of(snapshot)
    for each in small.runs:
        taken = [(at, each.each * each.on.count(at)) for at in sorted({*each.on})]
        for at, gpus in taken:
            more = room.free[:, [at]] * 0
            more[snapshot.row[GPU], 0] = -gpus
            more[snapshot.row["pods"], 0] = -each.on.count(at)
            room = room.changed_by(np.array([at], dtype=np.intp), more)
    return Running([movable(each) for each in small.runs], room, QuotaTree(()))


def movable(runs: Runs) -> Movable:
    room = tuple((f"n{at}", ((GPU, runs.each), ("pods", 1))) for at in runs.on)
    part = GangPart(GangKey("team", runs.name), "", "a", 0, 0.0, room)
    return Movable((part,), asks(runs.name, [runs.each] * len(runs.on)), runs.lost)


# ---- brute force


def packs(free: list[int], pods: Sequence[int]) -> bool:
    if not pods:
        return True
    for at, left in enumerate(free):
        if left >= pods[0]:
            free[at] -= pods[0]
            if packs(free, pods[1:]):
                free[at] += pods[0]
                return True
            free[at] += pods[0]
    return False


def enough(small: Small, chosen: Sequence[Runs]) -> bool:
    free = small.free
    for each in chosen:
        for at in each.on:
            free[at] += each.each
    pods = [*small.wants, *(each.each for each in chosen for _ in each.on)]
    return packs(free, sorted(pods, reverse=True))


def least(small: Small) -> tuple[int, int] | None:
    subsets = (
        chosen
        for count in range(len(small.runs) + 1)
        for chosen in combinations(small.runs, count)
        if enough(small, chosen)
    )
    return min(((sum(e.lost for e in one), len(one)) for one in subsets), default=None)


@st.composite
def smalls(draw: st.DrawFn) -> Small:
    nodes = tuple(draw(st.lists(st.integers(2, 8), min_size=2, max_size=4)))
    free, runs = list(nodes), []
    for number in range(draw(st.integers(0, 5))):
        each, on = draw(st.integers(1, 4)), []
        for _ in range(draw(st.integers(1, 3))):
            places = [at for at, left in enumerate(free) if left >= each]
            if places:
                at = draw(st.sampled_from(places))
                free[at] -= each
                on.append(at)
        if on:
            runs.append(Runs(f"g{number}", each, tuple(on), draw(st.integers(0, 9))))
    wants = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    return Small(nodes, tuple(runs), tuple(wants))


@given(smalls())
def test_the_moves_are_the_cheapest_that_there_are(small: Small) -> None:
    found, expected = cheapest_moves(asks("waits", small.wants), running(small)), least(small)
    if isinstance(found, NoMoves):
        assert found.is_certain
        assert expected is None
        return
    assert found.is_cheapest
    assert (found.lost, len(found.moves)) == expected
    assert_feasible(small, found)


def assert_feasible(small: Small, found: Moves) -> None:
    """All pods have their node, and no node has more than it can hold."""
    free = small.free
    by_name = {each.name: each for each in small.runs}
    for move in found.moves:
        runs = by_name[move.gang.key.name]
        for at in runs.on:
            free[at] += runs.each
        assert sorted(e for e, _ in spread(move.to)) == [runs.each] * len(runs.on)
    assert sorted(each for each, _ in spread(found.start)) == sorted(small.wants)
    for placement in (found.start, *(move.to for move in found.moves)):
        for each, at in spread(placement):
            free[at] -= each
    assert min(free) >= 0


def spread(placement: Placement) -> Iterator[tuple[int, int]]:
    for assignment in placement.assignments:
        each = dict(assignment.requests)[GPU]
        for name, pods in assignment.nodes:
            yield from [(each, int(name[1:]))] * pods


# ---- by hand

TWO_HALVES = Small((4, 4), (Runs("one", 2, (0,), 7), Runs("two", 2, (1,), 3)), (4,))


def test_the_gang_that_loses_least_makes_way() -> None:
    found = cheapest_moves(asks("waits", (4,)), running(TWO_HALVES))
    assert isinstance(found, Moves)
    (move,) = found.moves
    assert (move.gang.key.name, list(spread(move.to)), found.lost) == ("two", [(2, 0)], 3)
    assert list(spread(found.start)) == [(4, 1)]


def test_out_of_steps_nothing_is_certain() -> None:
    found = cheapest_moves(asks("waits", (4,)), running(TWO_HALVES), steps=10)
    assert isinstance(found, NoMoves)
    assert not found.is_certain


def test_what_is_found_before_the_steps_are_used_up_is_enough() -> None:
    small = Small((4,) * 4, tuple(Runs(f"g{at}", 2, (at,), at) for at in range(4)), (4, 4))
    whole = cheapest_moves(asks("waits", small.wants), running(small))
    assert isinstance(whole, Moves)
    for steps in range(0, whole.steps, 20_000):
        found = cheapest_moves(asks("waits", small.wants), running(small), steps)
        if isinstance(found, Moves):
            assert_feasible(small, found)


def test_subsets_come_by_their_cost() -> None:
    costs = [(0, 1), (2, 1), (3, 1), (3, 1), (9, 1)]
    found = list(cheapest_first(costs))
    totals = [(sum(costs[at][0] for at in each), len(each)) for each in found]
    assert totals == sorted(totals)
    assert len({*found}) == len(found) == 2 ** len(costs) - 1


def test_of_many_gangs_those_are_moved_that_are_in_the_way_on_the_cheapest_nodes() -> None:
    halves = [Runs(f"g{at}", 2, (at,), 100 - at) for at in range(60)]
    small = Small((4,) * 60, tuple(halves), (4,))
    found = cheapest_moves(asks("waits", small.wants), running(small))
    assert isinstance(found, Moves)
    assert_feasible(small, found)
    assert [move.gang.key.name for move in found.moves] == ["g59"]
    assert not found.is_cheapest


def test_many_gangs_that_none_of_helps_are_told_of() -> None:
    full = [Runs(f"g{at}", 4, (at,), 1) for at in range(60)]
    found = cheapest_moves(asks("waits", (4,)), running(Small((4,) * 60, tuple(full), (4,))))
    assert isinstance(found, NoMoves)
    assert not found.is_certain
