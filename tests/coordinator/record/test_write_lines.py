"""However many gangs wait, their statuses cost the API server a bounded number of writes."""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from coordinator.record.write_lines import (
    EXACT,
    NUMBERS_RATE,
    REASONS_BURST,
    REASONS_RATE,
    WriteLine,
    WriteLines,
    told_position,
)
from scheduling.model.gang import GangKey
from tests.coordinator.world import key


def keys(count: int) -> list[GangKey]:
    return [key(f"g{at:05}") for at in range(count)]


def drain(line: WriteLine, moments: Iterable[float]) -> list[int]:
    """How many gangs are called at each moment; each of them is written."""
    counts = []
    for now in moments:
        called = line.call(now)
        assert all(line.admits(each) for each in called)
        counts.append(len(called))
    return counts


def test_no_more_than_the_rate_are_called_and_all_in_the_end() -> None:
    line = WriteLine(rate=10.0, burst=10.0)
    for each in keys(100):
        line.plan(each, 0.0, later=True)
    counts = drain(line, [at / 5 for at in range(60)])
    assert sum(counts) == 100
    assert counts[0] == 10
    assert max(sum(counts[at : at + 5]) for at in range(1, 55)) <= 11, "one more by rounding"


def test_nothing_is_called_before_it_is_due() -> None:
    line = WriteLine(rate=10.0, burst=10.0)
    line.plan(key("a"), 5.0, later=False)
    assert (line.call(4.9), line.next_at) == ([], 5.0)
    assert line.call(5.0) == [key("a")]
    assert line.next_at is None


def test_those_that_may_go_later_let_others_pass_and_else_the_first_goes_first() -> None:
    line = WriteLine(rate=1.0, burst=1.0)
    line.plan(key("number"), 0.0, later=True)
    line.plan(key("second"), 2.0, later=False)
    line.plan(key("first"), 1.0, later=False)
    called = [each.name for now in (3.0, 4.0, 5.0) for each in line.call(now)]
    assert called == ["first", "second", "number"]


def test_a_gang_with_nothing_to_write_costs_nothing() -> None:
    line = WriteLine(rate=1.0, burst=1.0)
    line.plan(key("a"), 0.0, later=True)
    line.plan(key("b"), 0.5, later=True)
    assert line.call(1.0) == [key("a")]
    line.drop(key("a"))
    assert line.call(1.0) == [key("b")]


def test_the_last_plan_of_a_gang_counts() -> None:
    line = WriteLine(rate=10.0, burst=10.0)
    line.plan(key("a"), 1.0, later=True)
    line.plan(key("a"), 3.0, later=False)
    assert line.call(2.0) == []
    assert line.call(3.0) == [key("a")]


def test_plans_that_change_do_not_pile_up() -> None:
    line = WriteLine(rate=10.0, burst=10.0)
    for at in range(1000):
        line.plan(key("a"), float(at), later=False)
    assert len(line._due) + len(line._ready) < 200


def test_what_names_another_reason_does_not_wait_behind_numbers() -> None:
    lines = WriteLines()
    number = {"phase": "Queued", "reason": "QuotaExceeded", "message": "1"}
    other = {**number, "reason": "QueueBlocked"}
    assert lines.line_of(number, {**number, "message": "2"}, waits=True) is lines.numbers
    assert lines.line_of(other, number, waits=True) is lines.reasons
    assert lines.line_of(number, {"phase": "Gathering"}, waits=True) is None
    assert lines.line_of({**number, "placement": {}}, number, waits=True) is None
    assert lines.line_of(number, number, waits=False) is None
    assert (lines.numbers.rate, lines.reasons.rate, lines.reasons.burst) == (
        NUMBERS_RATE,
        REASONS_RATE,
        REASONS_BURST,
    )


def test_positions_are_exact_while_few_wait() -> None:
    assert [told_position(at, EXACT) for at in range(EXACT)] == list(range(EXACT))


@pytest.mark.parametrize("position", [5, 12, 77, 999, 12_345, 20_000])
def test_positions_are_within_a_third_where_many_wait(position: int) -> None:
    told = told_position(position, 20_000)
    assert max(told / position, position / told) < 4 / 3


def test_the_first_positions_are_always_exact_and_the_order_stays() -> None:
    told = [told_position(at, 20_000) for at in range(20_001)]
    assert told[:5] == [0, 1, 2, 3, 4]
    assert told == sorted(told)


def test_one_gang_that_leaves_moves_what_a_few_are_told() -> None:
    told = [told_position(at, 20_000) for at in range(1, 20_001)]
    assert sum(before != after for before, after in pairwise(told)) <= 25
