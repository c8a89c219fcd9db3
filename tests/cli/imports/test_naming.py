"""Names of queues are DNS names, each there once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.imports.naming import Names, is_valid, several, valid


@pytest.mark.parametrize(
    ("name", "becomes"),
    [("a.b-c", "a.b-c"), ("Gold_1", "gold-1"), ("-a-", "a"), ("a..b", "a.b"), ("é", "queue")],
)
def test_a_name_becomes_the_nearest_valid_one(name: str, becomes: str) -> None:
    assert valid(name) == becomes


@given(st.lists(st.text(max_size=300), max_size=8))
def test_all_names_are_valid_and_differ(wishes: list[str]) -> None:
    names = Names()
    given_names = [names.give(each) for each in [*wishes, *wishes]]
    assert len(set(given_names)) == len(given_names)
    assert all(is_valid(each) for each in given_names)


def test_long_names_stay_within_the_limit_when_they_are_numbered() -> None:
    names = Names()
    first, second = names.give("a" * 300), names.give("a" * 300)
    assert (len(first), len(second)) == (253, 253)
    assert second.endswith("-2")


def test_the_second_wish_goes_before_a_number() -> None:
    names = Names()
    assert [names.give("a", "t-a") for _ in range(3)] == ["a", "t-a", "t-a-2"]


def test_of_many_names_the_first_are_shown() -> None:
    assert several("gfedcba") == "a, b, c, d, e and 2 more"
