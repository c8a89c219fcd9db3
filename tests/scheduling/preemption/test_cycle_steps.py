"""What looking for victims costs, and how it is bounded."""

from dataclasses import replace
from typing import Any

import pytest

from scheduling.cycle import SOON, Settings
from scheduling.model.queue import (
    Queue,
)
from scheduling.preemption.candidates import candidates
from scheduling.preemption.search import QUESTION, Search
from scheduling.preemption.victims import LISTING
from tests.scheduling.preemption.cluster import Cluster, Spec, part
from tests.scheduling.preemption.company import LOWER, taken


def count_questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with each question whether a gang might fit."""
    asked: list[str] = []
    fits = Search.might_fit

    def counted(search: Search, gone: set[int]) -> bool:
        asked.append("again")
        return fits(search, gone)

    monkeypatch.setattr(Search, "might_fit", counted)
    return asked


def test_it_is_not_asked_again_while_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_questions(monkeypatch)
    parts = [part("low", {"n1": 4}), part("equal", {"n1": 4}, priority=1)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 8, priority=1)], parts
    )
    cluster.cycle()
    before = len(asked)
    assert before
    cluster.cycle()
    assert len(asked) == before
    cluster.parts = [parts[0], replace(parts[1], priority=0)]
    assert [each.preemptor.name for each in cluster.cycle()] == ["high"]


def test_equal_gangs_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_questions(monkeypatch)
    parts = [part("low", {"n1": 4}), part("equal", {"n1": 4}, priority=1)]
    gangs = [Spec(f"g{at}", "a", 8, priority=1) for at in range(50)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs, parts)
    cluster.cycle()
    assert len(asked) == 1


def test_without_steps_nothing_is_taken_and_the_next_cycle_comes_soon() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 8, priority=1)],
        [part("low", {"n1": 8})],
        settings=Settings(cycle_search_steps=100),
    )
    assert taken(cluster) == {}
    assert cluster.memory is not None
    assert cluster.memory.asks_again_in == SOON


def test_a_gang_that_needs_more_victims_than_questions_can_be_asked_takes_the_first() -> None:
    """Sparing asks twice for each victim that is needed; the steps of a cycle allow 200."""
    small = [part(f"s{at:03}", {f"n{at // 8}": 1}, admitted=at) for at in range(256)]
    queue, nodes = Queue("a", within_queue=LOWER), {f"n{at}": 8 for at in range(32)}
    cluster = Cluster([queue], nodes, [Spec("high", "a", 200, priority=1)], small)
    assert taken(cluster) == {"high": [f"s{at:03}" for at in range(56, 256)]}


def test_where_the_steps_run_out_more_is_taken_than_must_be_and_nothing_beyond_the_last() -> None:
    """A pod of `high` fits only where `s1` and where `s5` is; the last that is needed is `s5`."""
    small = [part(f"s{at}", {f"n{at}": 1}, admitted=9 - at) for at in range(8)]
    nodes = {f"n{at}": 2 if at in (1, 5) else 1 for at in range(8)}
    gangs = [Spec("high", "a", 2, priority=1, each=2)]
    queue = Queue("a", within_queue=LOWER)
    every, few = Settings(), Settings(search_steps=7 * QUESTION)
    assert taken(Cluster([queue], nodes, gangs, small, settings=every)) == {"high": ["s1", "s5"]}
    found = taken(Cluster([queue], nodes, gangs, small, settings=few))["high"]
    assert {"s1", "s5"} < {*found} <= {f"s{at}" for at in range(6)}


def many_that_find_nothing(last: Spec) -> Cluster:
    """Twenty gangs that would have to look at 100 parts each, and one for which something is."""
    low = [part(f"r{at}", {"n1": 1}, "b", kept="it must stay") for at in range(100)]
    queues = [Queue("b", within_queue=LOWER), Queue("c", within_queue=LOWER)]
    gangs = [Spec(f"g{at:02}", "b", 2, priority=50 + at) for at in range(20)]
    parts = [*low, part("low", {"n2": 8}, "c")]
    steps = Settings(cycle_search_steps=4 * 2 * 101 * LISTING)
    return Cluster(queues, {"n1": 100, "n2": 8}, [*gangs, last], parts, settings=steps)


def test_looking_at_parts_costs_steps_and_ends_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(*of: Any) -> Any:
        asked.append("again")
        return candidates(*of)

    monkeypatch.setattr("scheduling.preemption.victims.candidates", counted)
    many_that_find_nothing(Spec("last", "c", 8, priority=1)).cycle()
    assert 0 < len(asked) <= 8


def test_gangs_that_find_nothing_keep_no_other_from_its_turn() -> None:
    """What runs changes before each cycle, so that all that was sought in vain is sought again."""
    cluster = many_that_find_nothing(Spec("last", "c", 8, priority=1))
    for cycle in range(10):
        cluster.parts = [replace(each, admitted=cycle) for each in cluster.parts]
        if cluster.cycle():
            break
        assert cluster.memory is not None
        assert cluster.memory.asks_again_in == SOON
    assert cluster.says("last").startswith("Preempting")


def test_where_the_steps_are_enough_all_are_asked_in_every_cycle() -> None:
    cluster = many_that_find_nothing(Spec("last", "b", 2, priority=1))
    cluster.settings = Settings()
    cluster.cycle()
    assert cluster.memory is not None
    assert not cluster.memory.had_turn
