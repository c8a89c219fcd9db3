"""A passed pod counts until it is settled, and a replica knows when others may have passed more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.memory.in_flight_room import InFlight, PassedPod
from scheduling.model.amounts import LIMIT
from tests.extender.test_filter import ask, remembered
from tests.extender.worlds import GPU, gang, ledger, node, pod

OTHER = "uid-other"


@pytest.fixture
def known() -> Ledger:
    return ledger(node("a"), gang(slots={"a": 1}, gpu=4))


@pytest.fixture
def passed(known: Ledger) -> PassedPod:
    return remembered(ask(known, pod("first", gpu=4), ["a"]))


def room_for_another(known: Ledger, in_flight: InFlight) -> bool:
    """Whether a second pod would pass beside the first one and the gang."""
    return bool(ask(known, pod("second", gpu=4), ["a"], in_flight).passed)


@pytest.fixture
def in_flight_pods() -> InFlightPods:
    return InFlightPods(settle=5.0, keep=30.0, limit=2)


@pytest.fixture
def asked(in_flight_pods: InFlightPods) -> InFlightPods:
    """One whose doubt of the start is over at 105."""
    assert not in_flight_pods.view_for(OTHER, 100.0).complete
    return in_flight_pods


def test_it_counts_until_it_is_seen(
    in_flight_pods: InFlightPods, known: Ledger, passed: PassedPod
) -> None:
    in_flight_pods.answered("uid-first", passed, 110.0)
    assert not room_for_another(known, in_flight_pods.view(111.0))
    in_flight_pods.settled("uid-first")
    assert room_for_another(known, in_flight_pods.view(112.0))


def test_it_counts_for_others_until_it_is_asked_about_again(
    asked: InFlightPods, known: Ledger, passed: PassedPod
) -> None:
    """A pod never counts against itself: asked about again, its earlier attempt has failed."""
    asked.answered("uid-first", passed, 106.0)
    assert not room_for_another(known, asked.view_for(OTHER, 107.0))
    assert room_for_another(known, asked.view_for("uid-first", 108.0))
    assert len(asked) == 0


def test_it_counts_no_longer_than_to_its_deadline(
    in_flight_pods: InFlightPods, known: Ledger, passed: PassedPod
) -> None:
    in_flight_pods.answered("uid-first", passed, 110.0)
    assert not room_for_another(known, in_flight_pods.view(139.9))
    assert not in_flight_pods.take_ended()
    assert room_for_another(known, in_flight_pods.view(140.0))
    assert in_flight_pods.take_ended()
    assert not in_flight_pods.take_ended()


def test_a_new_answer_replaces_the_old_one(in_flight_pods: InFlightPods, passed: PassedPod) -> None:
    in_flight_pods.answered("uid-first", passed, 110.0)
    in_flight_pods.answered("uid-first", None, 111.0)
    assert len(in_flight_pods) == 0


def test_a_new_process_does_not_know_what_an_earlier_one_passed(
    in_flight_pods: InFlightPods,
) -> None:
    """However long after its start it is asked: until then the earlier one may have been."""
    assert in_flight_pods.view(1000.0).complete
    assert not in_flight_pods.view_for(OTHER, 1000.0).complete
    assert not in_flight_pods.view_for(OTHER, 1004.9).complete
    assert in_flight_pods.view_for(OTHER, 1005.0).complete


def test_after_a_pause_a_replica_may_not_be_the_only_one_asked(asked: InFlightPods) -> None:
    assert asked.view_for(OTHER, 105.0).complete
    assert asked.view_for(OTHER, 110.0).complete  # as long after the end of doubt
    assert not asked.view_for(OTHER, 115.1).complete
    assert not asked.view_for(OTHER, 118.0).complete
    assert asked.view_for(OTHER, 120.1).complete


def test_looking_is_not_being_asked(asked: InFlightPods) -> None:
    assert asked.view_for(OTHER, 105.0).complete
    assert asked.view(109.0).complete
    assert not asked.view_for(OTHER, 110.5).complete


def test_the_end_of_doubt_is_told_once(asked: InFlightPods) -> None:
    asked.view_for(OTHER, 101.0)
    asked.view(104.0)
    assert not asked.take_ended()
    asked.view(105.0)
    assert asked.take_ended()
    asked.view_for(OTHER, 106.0)
    assert not asked.take_ended()
    assert not asked.view_for(
        OTHER, 112.0
    ).complete  # in doubt again; nobody looks before it is over
    asked.view(118.0)
    assert asked.take_ended()


def test_a_pod_refused_in_doubt_is_not_refused_by_the_same_doubt_again(
    in_flight_pods: InFlightPods,
) -> None:
    assert not in_flight_pods.view_for(OTHER, 100.0).complete
    assert in_flight_pods.view_for(
        OTHER, 106.0
    ).complete  # tried again after the end of doubt, nothing in between


def test_beyond_the_limit_nothing_is_forgotten_but_no_more_is_given(
    in_flight_pods: InFlightPods, passed: PassedPod
) -> None:
    for i in range(3):
        in_flight_pods.answered(f"uid-{i}", replace(passed, uid=f"uid-{i}"), 110.0)
    assert (len(in_flight_pods), in_flight_pods.view(111.0).complete) == (3, False)
    in_flight_pods.settled("uid-1")
    assert (len(in_flight_pods), in_flight_pods.view(112.0).complete) == (2, False)
    in_flight_pods.settled("uid-2")
    assert (len(in_flight_pods), in_flight_pods.view(112.0).complete) == (1, True)


def test_pods_that_ask_for_more_than_can_be_counted_leave_no_reserved_node(
    passed: PassedPod,
) -> None:
    in_flight_pods = InFlightPods(settle=5.0, keep=30.0, limit=2000)
    for i in range(1_100):
        huge = replace(passed, uid=f"uid-{i}", amounts=((GPU, 2**62),))
        in_flight_pods.answered(f"uid-{i}", huge, 110.0)
    assert not in_flight_pods.view(111.0).complete
    for i in range(1_000):
        in_flight_pods.settled(f"uid-{i}")
    in_flight = in_flight_pods.view(112.0)
    assert in_flight.complete
    taken = in_flight.room.taken(GPU, passed.traits, passed.at)
    assert taken is not None
    assert taken.tolist() == [100 * LIMIT]
