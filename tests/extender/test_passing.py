"""How long does a pod count that was passed, and when may this replica be sure to know of all?"""

from __future__ import annotations

import pytest

from extender.filter import Passed
from extender.passing import Passing
from tests.extender.test_filter import ask, remembered
from tests.extender.worlds import gang, ledger, node, pod


@pytest.fixture
def passed() -> Passed:
    known = ledger(node("a"), gang(seats={"a": 1}, gpu=4))
    return remembered(ask(known, pod("first", gpu=4), ["a"]))


@pytest.fixture
def passing() -> Passing:
    return Passing(settle=5.0, keep=30.0, limit=2)


@pytest.fixture
def asked(passing: Passing) -> Passing:
    """One whose doubt of the start is over at 105."""
    assert not passing.recall(100.0).complete
    return passing


def test_it_counts_until_it_is_seen(passing: Passing, passed: Passed) -> None:
    passing.answered("uid-first", passed, 110.0)
    assert passing.recall(111.0).passed == (passed,)
    passing.settled("uid-first")
    assert passing.recall(112.0).passed == ()


def test_it_counts_no_longer_than_to_its_deadline(passing: Passing, passed: Passed) -> None:
    passing.answered("uid-first", passed, 110.0)
    assert passing.known(139.9).passed == (passed,)
    assert not passing.take_ended()
    assert passing.known(140.0).passed == ()
    assert passing.take_ended()
    assert not passing.take_ended()


def test_a_new_answer_replaces_the_old_one(passing: Passing, passed: Passed) -> None:
    passing.answered("uid-first", passed, 110.0)
    passing.answered("uid-first", None, 111.0)
    assert len(passing) == 0


def test_a_new_process_does_not_know_what_an_earlier_one_passed(passing: Passing) -> None:
    """However long after its start it is asked: until then the earlier one may have been."""
    assert passing.known(1000.0).complete
    assert not passing.recall(1000.0).complete
    assert not passing.recall(1004.9).complete
    assert passing.recall(1005.0).complete


def test_who_was_not_asked_may_not_be_the_only_one(asked: Passing) -> None:
    assert asked.recall(105.0).complete
    assert asked.recall(110.0).complete  # as long after the end of doubt
    assert not asked.recall(115.1).complete
    assert not asked.recall(118.0).complete
    assert asked.recall(120.1).complete


def test_looking_is_not_being_asked(asked: Passing) -> None:
    assert asked.recall(105.0).complete
    assert asked.known(109.0).complete
    assert not asked.recall(110.5).complete


def test_the_end_of_doubt_is_told_once(asked: Passing) -> None:
    asked.recall(101.0)
    asked.known(104.0)
    assert not asked.take_ended()
    asked.known(105.0)
    assert asked.take_ended()
    asked.recall(106.0)
    assert not asked.take_ended()
    assert not asked.recall(112.0).complete  # in doubt again; nobody looks before it is over
    asked.known(118.0)
    assert asked.take_ended()


def test_who_was_refused_in_doubt_is_not_doubted_again(passing: Passing) -> None:
    assert not passing.recall(100.0).complete
    assert passing.recall(106.0).complete  # tried again after the end of doubt, nothing in between


def test_beyond_the_limit_nothing_is_forgotten_but_no_more_is_given(
    passing: Passing, passed: Passed
) -> None:
    for i in range(3):
        passing.answered(f"uid-{i}", passed, 110.0)
    recall = passing.known(111.0)
    assert (len(recall.passed), recall.complete) == (3, False)
