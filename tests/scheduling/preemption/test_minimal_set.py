"""A minimal set is enough, spares nothing that can be spared, and asks few questions."""

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.preemption.minimal_set import first_enough, minimal_set, spared

sizes = st.lists(st.integers(0, 6), max_size=8)
"""What each candidate would give back."""


def gives(amounts: Sequence[int], chosen: Sequence[int]) -> int:
    return sum(amounts[at] for at in chosen)


@given(sizes, st.integers(0, 20))
def test_it_is_enough_and_minimal_where_there_is_one(amounts: list[int], wanted: int) -> None:
    found = minimal_set(range(len(amounts)), lambda chosen: gives(amounts, chosen) >= wanted)
    if sum(amounts) < wanted:
        assert found is None
        return
    assert found is not None
    assert gives(amounts, found) >= wanted
    assert all(gives(amounts, [e for e in found if e != one]) < wanted for one in found)
    assert found == sorted(found)


@given(sizes, st.integers(1, 20))
def test_the_last_candidate_is_taken_only_where_those_before_it_are_not_enough(
    amounts: list[int], wanted: int
) -> None:
    found = minimal_set(range(len(amounts)), lambda chosen: gives(amounts, chosen) >= wanted)
    if found:
        assert gives(amounts, range(max(found))) < wanted


@given(sizes, st.integers(1, 20), st.integers(0, 20))
def test_without_answers_it_spares_less_and_is_enough_all_the_same(
    amounts: list[int], wanted: int, answers: int
) -> None:
    def enough(chosen: Sequence[int]) -> bool:
        return gives(amounts, chosen) >= wanted

    left = answers

    def enough_or_no_answer(chosen: Sequence[int]) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and enough(chosen)

    first = first_enough(range(len(amounts)), enough)
    if first is not None:
        found = spared(first, enough_or_no_answer)
        assert enough(found)
        assert set(spared(first, enough)) <= set(found) <= set(first)


@given(st.sets(st.frozensets(st.integers(0, 6), min_size=1, max_size=3), min_size=1, max_size=4))
def test_it_is_one_of_the_minimal_sets_that_exhaustive_search_finds(
    ways: set[frozenset[int]],
) -> None:
    def enough(chosen: Sequence[int]) -> bool:
        return any(way <= set(chosen) for way in ways)

    every = [set(some) for size in range(8) for some in combinations(range(7), size)]
    minimal = [
        s for s in every if enough(sorted(s)) and not any(enough(sorted(s - {e})) for e in s)
    ]
    assert set(minimal_set(range(7), enough) or ()) in minimal


def test_one_of_a_thousand_is_found_with_few_questions() -> None:
    asked = 0

    def enough(chosen: Sequence[int]) -> bool:
        nonlocal asked
        asked += 1
        return 700 in chosen

    assert minimal_set(range(1000), enough) == [700]
    assert asked <= 24
