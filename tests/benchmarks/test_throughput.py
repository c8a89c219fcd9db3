"""The figures of the extender's benchmarks are those that were measured."""

from __future__ import annotations

import json

import pytest

from benchmarks import relist
from benchmarks.does_nothing import DoesNothing
from benchmarks.extender import CALLS, NODES, RESERVED, extender, load, names_asked, question
from benchmarks.measure import Row, ratio_from
from benchmarks.throughput import FREE, NONE, NOTHING, OURS, PINNED, Run, pod, rate, rows
from extender.app import Extender
from extender.settings import Settings


def test_a_rate_is_of_what_came_between_the_first_and_the_last() -> None:
    assert rate([12.0, 10.0, 11.0]) == 1.0
    assert rate([5.0, 5.5]) == 2.0


def test_ratios_are_made_pair_by_pair() -> None:
    def runs(*rates: float) -> list[Run]:
        return [Run({PINNED: each, FREE: each / 2}, {}) for each in rates]

    found = {NONE: runs(200, 400, 200), NOTHING: runs(100, 200, 100), OURS: runs(90, 200, 98)}
    pinned, _, free, stock = rows(found)
    assert pinned.ratios == (0.9, 1.0, 0.98)
    assert free.ours == (45.0, 100.0, 49.0)
    assert stock.ratios == (0.45, 0.5, 0.49)
    assert pinned.met is True
    assert stock.met is None


@pytest.mark.parametrize(("ours", "met"), [((95.0, 10.0, 96.0), True), ((94.0, 94.0, 99.0), False)])
def test_at_least_a_share_of_the_floor_in_the_median(ours: tuple[float, ...], met: bool) -> None:
    row = ratio_from(Row("x", "pods/s", ours, (100.0, 100.0, 100.0)), 0.95)
    assert row.met is met


def test_half_of_the_pods_are_pinned_and_come_first() -> None:
    assert "priorityClassName" not in pod("a")["spec"]
    pinned = pod("a", "n")["spec"]
    assert pinned["priorityClassName"] == "first"
    assert "n" in json.dumps(pinned["affinity"])


# ---- calls


def test_names_are_spread_over_all_nodes_in_an_order_of_their_own() -> None:
    one, other = names_asked(500, 1), names_asked(500, 2)
    assert one != other
    assert sorted(one) == sorted(other)
    reserved = [name for name in one if int(name[9:14]) < RESERVED]
    assert len(reserved) == 500 * RESERVED // NODES


class Echo:
    """Answers filter with the names it was given, and notes the questions by caller."""

    def __init__(self) -> None:
        self.verbs: list[str] = []

    def __call__(self, verb: str, body: bytes) -> bytes:
        self.verbs.append(verb)
        return json.dumps({"NodeNames": json.loads(body)["NodeNames"][1:]}).encode()


def test_each_filter_is_followed_by_a_prioritize_and_few_do_not_count() -> None:
    echo, spent = Echo(), iter([1.0, 3.0])
    found = load(echo, 100, lambda: next(spent))
    assert len(found.filter) == len(found.prioritize) == CALLS[100]
    assert echo.verbs[:4] == ["filter", "prioritize"] * 2
    assert found.per_core == len(echo.verbs) / 2.0


def test_prioritize_is_asked_about_what_filter_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def ask(verb: str, body: bytes) -> bytes:
        asked.append(json.loads(body)["NodeNames"])
        return Echo()(verb, body)

    monkeypatch.setitem(CALLS, 100, 1)
    load(ask, 100, iter([0.0, 1.0]).__next__)
    assert asked[1] == asked[0][1:]


def test_what_does_nothing_passes_all_and_ours_keeps_the_reserved_back() -> None:
    body = question(names_asked(100, 1))
    passed = {
        kind: json.loads(b"".join(extender(kind, Settings()).filter(body)))["NodeNames"]
        for kind in (DoesNothing, Extender)
    }
    assert passed[DoesNothing] == names_asked(100, 1)
    assert len(passed[Extender]) == 80


def test_the_longest_call_and_the_memory_of_a_relist_are_told() -> None:
    run = relist.Run(
        [1.0] * 100, [*[2.0] * 98, 30.0, 40.0], lists=3, peak=150_000_000, passes=[1.0, 3.0]
    )
    p50, p99, longest, turn, whole, memory = relist.rows([run])
    assert (p50.ours, p50.floor) == ((2.0,), (1.0,))
    assert (p99.ours, p99.met) == ((30.0,), False)
    assert longest.ours == (40.0,)
    assert (turn.ours, whole.ours) == ((3.0,), (0.004,))
    assert memory.ours == (150.0,)
