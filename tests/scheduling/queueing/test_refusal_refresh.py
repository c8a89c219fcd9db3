"""Gangs that no cycle decides are told at once why they wait, and in turn what numbers moved."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from scheduling.model.gang import GangKey
from scheduling.model.queue import Queue
from scheduling.queueing import refusal_refresh as module
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.refusal_refresh import (
    BEHIND,
    DECIDED,
    QUOTA,
    RefusalRefresh,
    UndecidedGangs,
)
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import GPU, gang, group, shape

TREE = QuotaTree([Queue("a", quota={GPU: 4}), Queue("b", quota={GPU: 4})])


def line_up(*names: str) -> WaitingGangs:
    """Gangs that wait in the queue that their name begins with."""
    waiting = WaitingGangs(TREE)
    for name in names:
        put(waiting, name)
    return waiting


def put(waiting: WaitingGangs, name: str) -> None:
    asked = gang(name, group("workers", 1, shape(gpu=1)))
    waiting.put(replace(asked, queue=name[0]))


def found(
    waiting: WaitingGangs, why: Iterable[int], used: tuple[int, int] = (4, 4)
) -> UndecidedGangs:
    held = np.array([[each] for each in used], dtype=np.int64)
    ends = np.zeros(len(TREE.names), dtype=np.intp)
    return UndecidedGangs(np.array(list(why), dtype=np.int8), ends, held, 4 - held)


def names(waiting: WaitingGangs, told: Iterable[int]) -> list[str]:
    gangs = [each.key.name for each in waiting]
    return [gangs[at] for at in told]


def test_a_gang_is_told_once_and_again_when_it_waits_for_the_other_reason() -> None:
    waiting = line_up("a1", "a2", "b1")
    due, told = RefusalRefresh.nothing(waiting).due(found(waiting, [QUOTA, DECIDED, QUOTA]))
    assert names(waiting, due) == ["a1", "b1"]
    due, told = told.due(found(waiting, [QUOTA, QUOTA, BEHIND]))
    assert names(waiting, due) == ["a2", "b1"]
    due, _ = told.due(found(waiting, [QUOTA, QUOTA, BEHIND]))
    assert names(waiting, due) == []


def test_numbers_that_move_are_told_to_the_queues_where_they_moved() -> None:
    waiting = line_up("a1", "b1", "b2")
    _, told = RefusalRefresh.nothing(waiting).due(found(waiting, [QUOTA] * 3))
    due, told = told.due(found(waiting, [QUOTA] * 3, used=(4, 3)))
    assert names(waiting, due) == ["b1", "b2"]
    put(waiting, "a0")
    due, _ = told.due(found(waiting, [QUOTA] * 4, used=(4, 3)))
    assert names(waiting, due) == ["a0", "a1"], "one came, and the place of the other moved"


def test_of_moved_numbers_so_many_are_told_in_each_cycle_and_all_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REFRESHED_PER_CYCLE", 2)
    waiting = line_up("a1", "a2", "a3", "a4", "a5")
    now = found(waiting, [QUOTA] * 5, used=(3, 4))
    _, told = RefusalRefresh.nothing(waiting).due(found(waiting, [QUOTA] * 5))
    turns = []
    for _ in range(4):
        due, told = told.due(now)
        turns.append((names(waiting, due), told.is_behind))
    assert turns == [(["a1", "a2"], True), (["a3", "a4"], True), (["a5"], False), ([], False)]


def test_the_renewal_goes_on_where_it_was_however_often_the_numbers_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REFRESHED_PER_CYCLE", 2)
    waiting = line_up("a1", "a2", "a3", "a4", "a5")
    _, told = RefusalRefresh.nothing(waiting).due(found(waiting, [QUOTA] * 5))
    turns = set[str]()
    for at in range(3):
        due, told = told.due(found(waiting, [QUOTA] * 5, used=(at % 2, 4)))
        turns |= set(names(waiting, due))
    assert turns == {"a1", "a2", "a3", "a4", "a5"}


def test_another_gang_in_the_row_of_one_that_left_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REFRESHED_PER_CYCLE", 0)
    waiting = line_up("a1")
    _, told = RefusalRefresh.nothing(waiting).due(found(waiting, [QUOTA]))
    waiting.drop(GangKey("team", "a1"))
    put(waiting, "a2")
    assert len(waiting.columns.rows) == 1
    due, _ = told.due(found(waiting, [QUOTA]))
    assert names(waiting, due) == ["a2"]
