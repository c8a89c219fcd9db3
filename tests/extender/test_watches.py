"""The ledger is used only while every watch is synced and none is silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from extender.memory.in_flight import InFlightPods
from extender.unscheduled_pods import UnscheduledPods
from extender.watches import Watches


@dataclass
class Told:
    """A reflector as far as it says how much it knows."""

    told_until: float | None = 100.0
    last_contact: float | None = 200.0
    synced: bool = True


def trusted(*reflectors: Told, now: float) -> bool:
    client: Any = None  # no call is made
    in_flight_pods = InFlightPods(settle=0.0, keep=30.0, limit=1)
    watches: Any = Watches(
        client, in_flight_pods, UnscheduledPods(), silence=90.0, clock=lambda: now
    )
    watches.reflectors = reflectors
    return bool(watches.trusted())


@pytest.mark.parametrize(("now", "answer"), [(190.0, True), (190.1, False)])
def test_the_one_furthest_behind_decides(now: float, answer: bool) -> None:
    """Also where it is heard again, but has not told yet what was missed."""
    assert trusted(Told(150.0), Told(), now=now) is answer


@pytest.mark.parametrize("missing", [Told(synced=False), Told(told_until=None)])
def test_one_that_never_told_everything_is_enough(missing: Told) -> None:
    assert not trusted(Told(), missing, now=100.0)
