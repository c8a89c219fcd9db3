"""A gang where a quota has room is held to one without a quota."""

import statistics

from benchmarks.measure import Outcome
from benchmarks.quota_room import rows
from benchmarks.report import outcome_lines


def test_a_gang_with_a_quota_is_held_to_one_without() -> None:
    gang, other = rows([0.2, 0.2, 0.3], [0.25, 0.28, 0.9], [0.1, 0.1], [0.15, 0.15])
    assert (gang.met, other.met) == (True, None)
    assert (gang.ours_are, gang.floor_is) == ("with a quota", "without")
    assert gang.ratios == (statistics.median(gang.ours) / 0.2,)
    late, _ = rows([0.2, 0.2, 0.3], [0.31, 0.32, 0.2], [0.1], [0.1])
    assert late.met is False
    said = "".join(outcome_lines("quota-room", "how much later?", Outcome([late])))
    assert "≤ floor + 0.1 s: not met" in said
