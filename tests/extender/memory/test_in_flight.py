"""How long does a pod count that was passed, and when may this replica be sure to know of all?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.memory.in_flight import Passing
from extender.memory.in_flight_room import Passed, Recall
from extender.snapshot import Ledger
from scheduling.model.amounts import LIMIT
from tests.extender.test_filter import ask, remembered
from tests.extender.worlds import GPU, gang, ledger, node, pod

OTHER = "uid-other"


@pytest.fixture
def known() -> Ledger:
    return ledger(node("a"), gang(seats={"a": 1}, gpu=4))


@pytest.fixture
def passed(known: Ledger) -> Passed:
    return remembered(ask(known, pod("first", gpu=4), ["a"]))


def room_for_another(known: Ledger, recall: Recall) -> bool:
    """Whether a second pod would pass beside the first one and the gang."""
    return bool(ask(known, pod("second", gpu=4), ["a"], recall).passed)


@pytest.fixture
def passing() -> Passing:
    return Passing(settle=5.0, keep=30.0, limit=2)


@pytest.fixture
def asked(passing: Passing) -> Passing:
    """One whose doubt of the start is over at 105."""
    assert not passing.recall(OTHER, 100.0).complete
    return passing


def test_it_counts_until_it_is_seen(passing: Passing, known: Ledger, passed: Passed) -> None:
    passing.answered("uid-first", passed, 110.0)
    assert not room_for_another(known, passing.known(111.0))
    passing.settled("uid-first")
    assert room_for_another(known, passing.known(112.0))


def test_it_counts_for_others_until_it_is_asked_about_again(
    asked: Passing, known: Ledger, passed: Passed
) -> None:
    """For itself it never does, and who asks again has given the earlier attempt up."""
    asked.answered("uid-first", passed, 106.0)
    assert not room_for_another(known, asked.recall(OTHER, 107.0))
    assert room_for_another(known, asked.recall("uid-first", 108.0))
    assert len(asked) == 0


def test_it_counts_no_longer_than_to_its_deadline(
    passing: Passing, known: Ledger, passed: Passed
) -> None:
    passing.answered("uid-first", passed, 110.0)
    assert not room_for_another(known, passing.known(139.9))
    assert not passing.take_ended()
    assert room_for_another(known, passing.known(140.0))
    assert passing.take_ended()
    assert not passing.take_ended()


def test_a_new_answer_replaces_the_old_one(passing: Passing, passed: Passed) -> None:
    passing.answered("uid-first", passed, 110.0)
    passing.answered("uid-first", None, 111.0)
    assert len(passing) == 0


def test_a_new_process_does_not_know_what_an_earlier_one_passed(passing: Passing) -> None:
    """However long after its start it is asked: until then the earlier one may have been."""
    assert passing.known(1000.0).complete
    assert not passing.recall(OTHER, 1000.0).complete
    assert not passing.recall(OTHER, 1004.9).complete
    assert passing.recall(OTHER, 1005.0).complete


def test_who_was_not_asked_may_not_be_the_only_one(asked: Passing) -> None:
    assert asked.recall(OTHER, 105.0).complete
    assert asked.recall(OTHER, 110.0).complete  # as long after the end of doubt
    assert not asked.recall(OTHER, 115.1).complete
    assert not asked.recall(OTHER, 118.0).complete
    assert asked.recall(OTHER, 120.1).complete


def test_looking_is_not_being_asked(asked: Passing) -> None:
    assert asked.recall(OTHER, 105.0).complete
    assert asked.known(109.0).complete
    assert not asked.recall(OTHER, 110.5).complete


def test_the_end_of_doubt_is_told_once(asked: Passing) -> None:
    asked.recall(OTHER, 101.0)
    asked.known(104.0)
    assert not asked.take_ended()
    asked.known(105.0)
    assert asked.take_ended()
    asked.recall(OTHER, 106.0)
    assert not asked.take_ended()
    assert not asked.recall(OTHER, 112.0).complete  # in doubt again; nobody looks before it is over
    asked.known(118.0)
    assert asked.take_ended()


def test_who_was_refused_in_doubt_is_not_doubted_again(passing: Passing) -> None:
    assert not passing.recall(OTHER, 100.0).complete
    assert passing.recall(
        OTHER, 106.0
    ).complete  # tried again after the end of doubt, nothing in between


def test_beyond_the_limit_nothing_is_forgotten_but_no_more_is_given(
    passing: Passing, passed: Passed
) -> None:
    for i in range(3):
        passing.answered(f"uid-{i}", replace(passed, uid=f"uid-{i}"), 110.0)
    assert (len(passing), passing.known(111.0).complete) == (3, False)
    passing.settled("uid-1")
    assert (len(passing), passing.known(112.0).complete) == (2, False)
    passing.settled("uid-2")
    assert (len(passing), passing.known(112.0).complete) == (1, True)


def test_pods_that_ask_for_more_than_can_be_counted_leave_no_reserved_node(passed: Passed) -> None:
    passing = Passing(settle=5.0, keep=30.0, limit=2000)
    for i in range(1_100):
        huge = replace(passed, uid=f"uid-{i}", amounts=((GPU, 2**62),))
        passing.answered(f"uid-{i}", huge, 110.0)
    assert not passing.known(111.0).complete
    for i in range(1_000):
        passing.settled(f"uid-{i}")
    recall = passing.known(112.0)
    assert recall.complete
    taken = recall.underway.taken(GPU, passed.traits, passed.at)
    assert taken is not None
    assert taken.tolist() == [100 * LIMIT]
