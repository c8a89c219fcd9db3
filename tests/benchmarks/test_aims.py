"""The cases that wait for room print their aim, their floor and a ratio."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from benchmarks import freed
from benchmarks.backlog import Backlog, rows_of_room, rows_of_start
from benchmarks.latency import Wake, wake_rows
from benchmarks.measure import Outcome, Row
from benchmarks.partly import PartlyBound
from benchmarks.report import outcome_lines

Rows = Callable[[Sequence[Backlog], Sequence[Backlog]], Iterator[Row]]


def backlog(bound: float, *, most: int = 8, first: float = 1.0) -> Backlog:
    cpu = {"kube-apiserver": bound, "driver": 99.0}
    return Backlog(1.0, 0.5, bound, bound + 1, cpu, PartlyBound(most, 4.0, first), 30.0)


def test_the_next_gang_after_a_delete_has_an_aim_a_floor_and_a_ratio() -> None:
    stock = [Wake(0.1, 0.0, seconds) for seconds in (0.12, 0.14, 0.5)]
    first, *_ = wake_rows(stock, [Wake(0.1, 0.1, seconds) for seconds in (0.19, 0.2, 0.9)])
    assert first.met is True
    assert "p50" in first.name
    assert first.ratios == pytest.approx((0.2 / 0.14,))
    late, *_ = wake_rows(stock, [Wake(0.1, 0.1, 0.21)])
    assert late.met is False


def test_a_gang_of_a_hundred_is_held_to_its_bare_patches() -> None:
    assert freed.row([0.5, 0.5, 0.5], [0.55, 0.54, 0.9]).met is True
    late = freed.row([0.5, 0.5, 0.5], [0.56, 0.56, 0.5])
    assert late.met is False
    lines = [line.strip() for line in outcome_lines("freed", "how soon?", Outcome([late]))]
    assert any(line.startswith("floor") for line in lines)
    assert any(line.startswith("ratio") for line in lines)
    assert "aim     ≤ 1.1 times the floor: not met" in lines


@pytest.mark.parametrize("rows", [rows_of_room, rows_of_start])
def test_a_backlog_is_held_to_stock_whatever_lets_it_go(rows: Rows) -> None:
    (bound, *_), (late, *_) = rows([backlog(10)], [backlog(11)]), rows([backlog(10)], [backlog(12)])
    assert (bound.met, late.met) == (True, False)
    assert bound.floor_is == "stock"
    assert "stock" in "".join(outcome_lines("backlog", "how long?", Outcome([bound])))


def test_a_backlog_is_held_to_its_first_gang_and_to_gangs_partly_bound() -> None:
    good = rows_of_room([backlog(10)], [backlog(11)])
    assert [row.name for row in good if row.met] == [
        "room begins to be freed to last gang bound",
        "to first gang bound whole",
        "gangs partly bound at one time",
    ]
    bad = rows_of_room([backlog(10)], [backlog(12, most=9, first=1.1)])
    assert [row.met for row in bad if row.aim] == [False] * 3
