"""What was refused rests ever longer, and is well again once it is as it should be."""

from datetime import UTC, datetime, timedelta

from certs.refusals import FIRST, LONGEST, TRIES, Refusals

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_pause_doubles_up_to_a_minute() -> None:
    refusals, now, pauses = Refusals(), NOW, []
    for _ in range(6):
        refusals.refused("a", "no right", now)
        end = now
        while "a" in refusals.resting(end):
            end += timedelta(seconds=1)
        pauses.append((end - now).total_seconds())
        now = end
    assert pauses == [5, 10, 20, 40, 60, 60]


def test_one_rests_alone_and_says_why() -> None:
    refusals = Refusals()
    refusals.refused("a", "no right", NOW)
    assert refusals.resting(NOW) == refusals.standing == {"a": "no right"}
    assert refusals.resting(NOW + FIRST) == {}
    assert refusals.standing == {"a": "no right"}
    refusals.well("a")
    assert refusals.standing == {}
    refusals.refused("a", "again", NOW)
    assert refusals.resting(NOW + FIRST) == {}


def test_a_clock_that_is_put_back_makes_no_pause_longer() -> None:
    refusals = Refusals()
    refusals.refused("a", "no right", NOW + 400 * LONGEST)
    assert refusals.resting(NOW) == {}


def test_races_are_a_refusal_only_where_they_are_many() -> None:
    refusals = Refusals()
    for _ in range(TRIES - 1):
        refusals.raced("a", "conflict", NOW)
    refusals.well("a")
    for _ in range(TRIES - 1):
        refusals.raced("a", "conflict", NOW)
    assert refusals.standing == {}
    refusals.raced("a", "conflict", NOW)
    assert refusals.standing == {"a": "conflict"}
