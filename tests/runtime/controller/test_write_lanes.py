"""Waiting writes leave gang by gang, and none waits for ever."""

import pytest

from runtime.controller.write_lanes import COURTESY, KEPT, Lanes, Writes


def add(lanes: Lanes[str, str], gang: str, what: str, now: float = 0.0) -> None:
    """Add any write of a gang."""
    lanes.add(gang, f"{gang}{what}", now)


def left(lanes: Lanes[str, str]) -> list[str]:
    """All that waits, in the order in which it leaves."""
    return [lanes.pop(0.0) for _ in range(len(lanes))]


def test_the_follow_up_of_a_gang_that_was_begun_passes_what_others_begin() -> None:
    """The placements of three gangs wait; the first is written, and its releases come."""
    lanes = Lanes[str, str]()
    for gang in "abc":
        add(lanes, gang, "-placement", 0.0)
    lanes.pop(0.0)
    for pod in ("-head", "-worker"):
        add(lanes, "a", pod, 0.1)
    assert left(lanes) == ["a-head", "a-worker", "b-placement", "c-placement"]


def test_gangs_go_in_the_order_in_which_they_began_whatever_their_names() -> None:
    lanes = Lanes[str, str]()
    for gang in "cab":
        add(lanes, gang, "1", 0.0)
    add(lanes, "c", "2", 0.0)
    assert left(lanes) == ["c1", "c2", "a1", "b1"]


def test_gangs_have_places_of_their_own_however_early_it_is() -> None:
    """0.1 - KEPT + KEPT is more than 0.1."""
    lanes = Lanes[str, str]()
    for gang in "ba":
        add(lanes, gang, "1", 0.1)
    assert left(lanes) == ["b1", "a1"]


@pytest.mark.parametrize(("later", "expected"), [(KEPT - 0.1, ["a2", "b1"]), (KEPT, ["b1", "a2"])])
def test_a_place_is_lost_after_a_while(later: float, expected: list[str]) -> None:
    """Else a gang whose pods are deleted again and again would hold up all others."""
    lanes = Lanes[str, str]()
    add(lanes, "a", "1", 0.0)
    lanes.pop(0.0)
    add(lanes, "b", "1", 0.0)
    add(lanes, "a", "2", later)
    assert left(lanes) == expected


def test_a_lane_that_never_empties_loses_its_place_too() -> None:
    lanes = Lanes[str, str]()
    for gang in "ab":
        add(lanes, gang, "0", 0.0)
    served = []
    for second in range(2 * int(KEPT)):
        add(lanes, "a", "more", float(second))
        add(lanes, "a", "more", float(second))
        served.append(lanes.pop(float(second)))
    assert "b0" in served


def test_places_that_are_over_take_no_memory() -> None:
    lanes = Lanes[str, str]()
    for number in range(1000):
        add(lanes, str(number), "1", number * KEPT)
        lanes.pop(number * KEPT)
    assert len(lanes._places) == 1


def test_after_a_clear_nothing_waits() -> None:
    lanes = Lanes[str, str]()
    add(lanes, "a", "1", 0.0)
    lanes.clear()
    assert not lanes
    with pytest.raises(IndexError):
        lanes.pop(0.0)


def order(writes: Writes[str, str], now: float) -> list[str]:
    """All that waits, in the order in which it leaves at this moment."""
    return [writes.pop(now) for _ in range(len(writes))]


def test_what_only_informs_lets_others_pass_and_what_repeats_comes_last() -> None:
    writes = Writes[str, str]()
    for text in ("old", "new"):
        writes.repeat("what", text)
    writes.inform("informs", 0.0)
    for what in "ab":
        writes.add(what, what, 0.0)
    assert order(writes, 0.0) == ["a", "b", "informs", "new"]


def test_what_only_informs_and_is_overdue_takes_every_other_turn() -> None:
    writes = Writes[str, str]()
    for what in "ab":
        writes.add(what, what, 0.0)
        writes.inform(f"informs {what}", 0.0)
    assert order(writes, COURTESY) == ["informs a", "a", "informs b", "b"]
