"""A condition holds in the worlds that it was made for and in no others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from charts.conditions import condition
from charts.worlds import World

NAMES = ("a", "b", "c")
WORDS = {name: f".Values.{name}" for name in NAMES}
EVERY = [frozenset(n for at, n in enumerate(NAMES) if number >> at & 1) for number in range(8)]

Worlds = frozenset[World]


def holds(text: str, world: World) -> bool:
    """Judge a condition as the templates do: functions stand before what they are of."""
    words = re.findall(r"[()]|[^\s()]+", f"({text})")

    def read(at: int) -> tuple[bool, int]:
        if words[at] != "(":
            return words[at].removeprefix(".Values.") in world, at + 1
        name = words[at + 1] if words[at + 1] in ("and", "or", "not") else ""
        at += 2 if name else 1
        values = []
        while words[at] != ")":
            value, at = read(at)
            values.append(value)
        results = {"and": all(values), "or": any(values), "not": not values[0]}
        return results.get(name, values[0]), at + 1

    return read(0)[0]


@given(st.sets(st.sampled_from(EVERY), min_size=2).flatmap(
    lambda universe: st.tuples(
        st.just(frozenset(universe)),
        st.sets(st.sampled_from(sorted(universe, key=sorted)), min_size=1).map(frozenset),
    )
))  # fmt: skip
def test_it_holds_where_it_should(drawn: tuple[Worlds, Worlds]) -> None:
    universe, subset = drawn
    said = condition(subset, universe, WORDS)
    assert {world for world in universe if not said or holds(said, world)} == subset


def worlds(*texts: str) -> Worlds:
    return frozenset(frozenset(text) for text in texts)


@pytest.mark.parametrize(
    ("subset", "said"),
    [
        (worlds("", "a", "b", "ab"), ""),
        (worlds("a", "ab"), ".Values.a"),
        (worlds("", "b"), "not .Values.a"),
        (worlds("ab"), "and .Values.a .Values.b"),
        (worlds("b"), "and .Values.b (not .Values.a)"),
        (worlds("a", "b", "ab"), "not (and (not .Values.a) (not .Values.b))"),
    ],
)
def test_it_is_short(subset: Worlds, said: str) -> None:
    assert condition(subset, worlds("", "a", "b", "ab"), WORDS) == said


def test_switches_that_exclude_each_other_need_no_word() -> None:
    assert condition(worlds("b"), worlds("", "a", "b"), WORDS) == ".Values.b"


def test_an_expression_of_its_own_loses_its_brackets() -> None:
    words = {"a": '(eq .Values.kind "A")'}
    assert condition(worlds("a"), worlds("", "a"), words) == 'eq .Values.kind "A"'
    assert condition(worlds(""), worlds("", "a"), words) == 'not (eq .Values.kind "A")'
