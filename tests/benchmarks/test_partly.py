"""Gangs that hold room and do not run yet are counted."""

import pytest

from benchmarks.partly import PartlyBound, partly_bound
from benchmarks.podwatch import Seen


def pods(**bound: tuple[float, ...]) -> list[Seen]:
    """Pods of gangs, by the times at which each was bound."""
    return [Seen(gang, 0.0, bound=at) for gang, times in bound.items() for at in times]


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ({"a": (1.0, 2.0), "b": (2.0, 4.0)}, PartlyBound(1, 3.0, 2.0)),
        ({"a": (1.0, 3.0), "b": (2.0, 4.0)}, PartlyBound(2, 4.0, 3.0)),
        ({"a": (1.0, 9.0), "b": (2.0, 3.0), "c": (4.0, 5.0)}, PartlyBound(2, 10.0, 3.0)),
    ],
)
def test_gangs_that_overlap_count_together(
    bound: dict[str, tuple[float, ...]], expected: PartlyBound
) -> None:
    assert partly_bound(pods(**bound)) == expected
