"""A refused pod is remembered, and is woken when one of the freed nodes would take it."""

from __future__ import annotations

import pytest

from extender import unscheduled_pods as module
from extender.ledger import Ledger
from extender.memory.in_flight_room import NONE_IN_FLIGHT, InFlight
from extender.unscheduled_pods import UnscheduledPods
from tests.extender.worlds import (
    as_gang,
    as_watched_pod,
    gang,
    member,
    pinned,
    pod,
)

NODES = {"a", "b"}


def fits(unscheduled: UnscheduledPods, known: Ledger, in_flight: InFlight = NONE_IN_FLIGHT) -> bool:
    return unscheduled.any_fits(NODES, known.snapshot(), in_flight)


def test_while_all_is_reserved_no_pod_is_woken(known: Ledger, unscheduled: UnscheduledPods) -> None:
    unscheduled.note(as_watched_pod(pod("p", gpu=1)))
    assert not fits(unscheduled, known)


def test_the_end_of_a_reservation_wakes(known: Ledger, unscheduled: UnscheduledPods) -> None:
    unscheduled.note(as_watched_pod(pod("p", gpu=1)))
    known.put_gang(as_gang(gang(slots={"a": 1})))
    assert fits(unscheduled, known)
    unscheduled.forget("uid-p")
    assert not fits(unscheduled, known)


def test_room_that_is_too_small_for_all_wakes_no_pod(
    known: Ledger, unscheduled: UnscheduledPods
) -> None:
    unscheduled.note(as_watched_pod(pod("p", gpu=9)))
    known.put_gang(as_gang(gang(slots={"a": 1})))
    assert not fits(unscheduled, known)


def test_a_member_that_came_before_its_gang_is_woken(
    known: Ledger, unscheduled: UnscheduledPods
) -> None:
    known.put_gang(as_gang(gang("late")))
    unscheduled.note(as_watched_pod(member(pinned(pod("w", gpu=4), "a"), "late")))
    known.put_gang(as_gang(gang(slots={"b": 1})))
    known.freed.clear()
    assert not fits(unscheduled, known)
    known.put_gang(as_gang(gang("late", slots={"a": 1}, gpu=4)))
    assert known.freed == {"a"}
    assert fits(unscheduled, known)


def test_what_an_earlier_process_refused_is_woken_once(known: Ledger) -> None:
    unscheduled = UnscheduledPods()
    assert fits(unscheduled, known)
    unscheduled.woken()
    assert not fits(unscheduled, known)


def test_of_too_many_the_oldest_are_woken_by_any_room(known: Ledger) -> None:
    """One may be gone before it is noted, so that no event reports its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LIMIT", 2)
        unscheduled = UnscheduledPods()
    unscheduled.woken()
    for name in ("o", "p", "q"):
        unscheduled.note(as_watched_pod(pod(name, gpu=9)))
    assert len(unscheduled) == 2
    known.put_gang(as_gang(gang(slots={"a": 1})))
    assert fits(unscheduled, known)
    unscheduled.woken()
    assert not fits(unscheduled, known)


def test_refused_pods_take_no_more_than_so_much(known: Ledger) -> None:
    unscheduled = UnscheduledPods()
    unscheduled.woken()
    for number in range(40):
        labels = {f"{number}-{at}": "x" * 60 for at in range(5000)}
        made = pod(f"p{number}", gpu=9)
        unscheduled.note(
            as_watched_pod({**made, "metadata": {**made["metadata"], "labels": labels}})
        )
    assert 0 < len(unscheduled) < 40
    assert fits(unscheduled, known)
