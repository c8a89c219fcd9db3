"""Cycles that are told what the one before found, against cycles from scratch."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.columns import NodeTable
from scheduling.cycle import Memory, Settings, next_cycle, run_cycle
from scheduling.model import GangKey, Group, Node, PendingGang
from scheduling.verdict import Admitted, Decision
from tests.properties.strategies import RESOURCES, groups, nodes

FEW_STEPS = Settings(search_steps=3_000, cycle_search_steps=6_000)
"""Few enough for some searches to run out."""

CHANGES = st.tuples(
    st.sampled_from([f"n{at}" for at in range(4)]),
    st.dictionaries(st.sampled_from([*RESOURCES, "pods"]), st.integers(1, 4), min_size=1),
    st.sampled_from([+1, -1]),
)
GANGS = st.lists(groups(), min_size=1, max_size=4)


def gang(at: int, wanted: list[Group]) -> PendingGang:
    return PendingGang(GangKey("team", f"g{at}"), 0, float(at), tuple(wanted))


def told(decision: Decision) -> object:
    """What must be the same: the whole of a yes, the reason of a no."""
    verdict = decision.verdict
    return decision.key, verdict if isinstance(verdict, Admitted) else verdict.reason


@settings(max_examples=300, deadline=None)
@given(nodes(plain=True), GANGS, st.lists(CHANGES | nodes(plain=True) | GANGS, max_size=6))
def test_a_memory_changes_no_decision(
    on: list[Node], waiting: list[list[Group]], history: list[object]
) -> None:
    """Room comes and goes, nodes change, gangs are replaced; nobody is decided differently."""
    table, memory = NodeTable(), None
    for node in on:
        table.put_node(node)
    pending = [gang(at, wanted) for at, wanted in enumerate(waiting)]
    for change in [None, *history]:
        pending = _changed(table, pending, change)
        fresh = run_cycle(pending, table.snapshot(), FEW_STEPS)
        decisions, memory = next_cycle(pending, table.snapshot(), memory, FEW_STEPS)
        assert [told(each) for each in decisions] == [told(each) for each in fresh]


def _changed(table: NodeTable, pending: list[PendingGang], change: Any) -> list[PendingGang]:
    match change:
        case (str(name), dict(amounts), int(sign)):
            table.use(name, amounts.items(), sign)
        case [Node(), *_]:
            for node in change:
                table.put_node(node)
        case [[Group(), *_], *_]:
            return [gang(at, wanted) for at, wanted in enumerate(change)]
        case _:
            pass
    return pending


@settings(max_examples=200, deadline=None)
@given(nodes(plain=True), GANGS)
def test_where_nothing_changed_a_refusal_is_the_same_word_for_word(
    on: list[Node], waiting: list[list[Group]]
) -> None:
    """Equal gangs made anew are as good as the same."""
    table = NodeTable()
    for node in on:
        table.put_node(node)
    pending = [gang(at, wanted) for at, wanted in enumerate(waiting)]
    first, memory = next_cycle(pending, table.snapshot(), None)
    again = [replace(each) for each in pending]
    second, later = next_cycle(again, table.snapshot(), memory)
    assert first == second
    assert isinstance(later, Memory)
    assert later.kept == len(memory.refused)
