"""How the end of surplus is told."""

import pytest

from coordinator.gang.eviction.endings import Ending
from scheduling.model.verdict import Reason


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        (("r1",), "1 surplus replica is preempted"),
        (("r1", "r2"), "2 surplus replicas are preempted"),
    ],
)
def test_surplus_that_ends_is_counted(replicas: tuple[str, ...], said: str) -> None:
    ending = Ending(Reason.PREEMPTED, "preempted", "2026-01-01T00:00:00Z", replicas=replicas)
    assert ending.in_words() == said
