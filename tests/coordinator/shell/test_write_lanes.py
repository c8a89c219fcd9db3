"""Waiting writes leave gang by gang, and none waits for ever."""

import pytest

from coordinator.messages.actions import DeleteGang
from coordinator.shell.write_lanes import KEPT, Lanes
from scheduling.model.gang import GangKey


def write(gang: str, what: str) -> DeleteGang:
    """Any write of a gang, told from others by its uid."""
    return DeleteGang(GangKey("team", gang), what)


def left(lanes: Lanes) -> list[str]:
    """All that waits, in the order in which it leaves."""
    found = []
    while lanes:
        action = lanes.pop(0.0)
        assert isinstance(action, DeleteGang)
        found.append(f"{action.key.name}{action.uid}")
    return found


def test_the_follow_up_of_a_gang_that_was_begun_passes_what_others_begin() -> None:
    """The placements of three gangs wait; the first is written, and its releases come."""
    lanes = Lanes()
    for gang in "abc":
        lanes.add(write(gang, "-placement"), 0.0)
    lanes.pop(0.0)
    for pod in ("-head", "-worker"):
        lanes.add(write("a", pod), 0.1)
    assert left(lanes) == ["a-head", "a-worker", "b-placement", "c-placement"]


def test_gangs_go_in_the_order_in_which_they_began_whatever_their_names() -> None:
    lanes = Lanes()
    for gang in "cab":
        lanes.add(write(gang, "1"), 0.0)
    lanes.add(write("c", "2"), 0.0)
    assert left(lanes) == ["c1", "c2", "a1", "b1"]


def test_gangs_have_places_of_their_own_however_early_it_is() -> None:
    """0.1 - KEPT + KEPT is more than 0.1."""
    lanes = Lanes()
    for gang in "ba":
        lanes.add(write(gang, "1"), 0.1)
    assert left(lanes) == ["b1", "a1"]


@pytest.mark.parametrize(("later", "expected"), [(KEPT - 0.1, ["a2", "b1"]), (KEPT, ["b1", "a2"])])
def test_a_place_is_lost_after_a_while(later: float, expected: list[str]) -> None:
    """Else a gang whose pods are deleted again and again would hold up all others."""
    lanes = Lanes()
    lanes.add(write("a", "1"), 0.0)
    lanes.pop(0.0)
    lanes.add(write("b", "1"), 0.0)
    lanes.add(write("a", "2"), later)
    assert left(lanes) == expected


def test_a_lane_that_never_empties_loses_its_place_too() -> None:
    lanes = Lanes()
    for gang in "ab":
        lanes.add(write(gang, "0"), 0.0)
    served = []
    for second in range(2 * int(KEPT)):
        lanes.add(write("a", "more"), float(second))
        lanes.add(write("a", "more"), float(second))
        action = lanes.pop(float(second))
        assert isinstance(action, DeleteGang)
        served.append(action.key.name)
    assert "b" in served


def test_places_that_are_over_take_no_memory() -> None:
    lanes = Lanes()
    for number in range(1000):
        lanes.add(write(str(number), "1"), number * KEPT)
        lanes.pop(number * KEPT)
    assert len(lanes._places) == 1


def test_after_a_clear_nothing_waits() -> None:
    lanes = Lanes()
    lanes.add(write("a", "1"), 0.0)
    lanes.clear()
    assert not lanes
    with pytest.raises(IndexError):
        lanes.pop(0.0)
