"""Amounts, ages and bars, as tables show them."""

import pytest

from cli.show.words import age, amount, bar, clock, counted, lasting

NOON = "2026-11-22T12:00:00Z"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0s"), (59, "59s"), (61, "1m1s"), (3600, "1h"), (3660, "1h1m"), (90_061, "1d1h")],
)
def test_a_duration_has_two_units_at_most(seconds: int, said: str) -> None:
    assert lasting(seconds) == said


def test_a_time_that_is_absent_or_unreadable_is_a_dash() -> None:
    assert age(NOON, 1795348800.0 + 90) == "1m30s"
    assert (age("", 0.0), age("yesterday", 0.0), clock("")) == ("-", "-", "-")
    assert clock(NOON) == "2026-11-22 12:00:00Z"


def test_one_is_not_many() -> None:
    assert (counted(1, "gang"), counted(0, "gang")) == ("1 gang", "0 gangs")


def test_amounts_are_in_usual_units() -> None:
    assert amount("memory", "1073741824") == "1Gi"
    assert amount("cpu", "2500m") == "2500m"
    assert amount("nvidia.com/gpu", None) == "-"
    assert amount("nvidia.com/gpu", "many") == "many"


@pytest.mark.parametrize(
    ("used", "reserved", "whole", "drawn"),
    [
        (0, 0, 8, "[........]"),
        (8, 0, 8, "[########]"),
        (4, 2, 8, "[####==..]"),
        (0, 8, 8, "[========]"),
        (1, 0, 1000, "[#.......]"),
        (999, 0, 1000, "[#######.]"),
        (1, 1, 1000, "[#=......]"),
        (12, 0, 8, "[########]"),
        (0, 0, 0, "[        ]"),
    ],
)
def test_a_bar_is_neither_full_nor_empty_unless_the_node_is(
    used: int, reserved: int, whole: int, drawn: str
) -> None:
    assert bar(used, reserved, whole, width=8) == drawn
