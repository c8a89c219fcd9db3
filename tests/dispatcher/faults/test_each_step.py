"""At each step of the protocol each fault: a gang is never on two members, half, or lost.

Each case stops the world once the request of its step was carried out, and before that is heard
of; then something breaks. Where a program is killed, the request may also come after its successor
has begun.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.waiting import wait_until
from tests.dispatcher.faults.breakages import ALL, KILLS, Breakage
from tests.dispatcher.faults.stand import Stand
from tests.dispatcher.faults.steps import MOVING, RETURNING, STARTING, Step
from tests.dispatcher.faults.trap import Late, Trap, Unanswered
from tests.dispatcher.site import LONG

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(900)]

HEALED = 60.0
"""Seconds from the end of a fault until all that fits runs."""

_PATIENCE = 3 * HEALED
"""Seconds until a case is given up: what runs late is told from what never runs."""


@dataclass(frozen=True)
class Case:
    """A fault at a step."""

    step: Step
    breakage: Breakage
    is_late: bool

    def __str__(self) -> str:
        late = "-late" if self.is_late else ""
        return f"{self.step.name}-{self.breakage.__name__}{late}".replace("_", "-")


def _cases(steps: tuple[Step, ...]) -> Iterator[Any]:
    for step in steps:
        told = [(each, False) for each in ALL] + [(each, True) for each in KILLS]
        for breakage, is_late in told:
            case = Case(step, breakage, is_late)
            yield pytest.param(case, id=str(case))


@pytest.mark.parametrize("case", [*_cases(STARTING)])
def test_it_starts_once(stand: Stand, case: Case, request: pytest.FixtureRequest) -> None:
    if case.step.needs_new_term:
        stand.renew_term()
    name, trap = stand.new_name(), _trap(stand, case)
    stand.site.submit(name)
    took = _break(stand, case, trap, name, "")
    request.node.user_properties.append(("seconds", took))


@pytest.mark.parametrize("case", [*_cases(MOVING)])
def test_it_moves_once(stand: Stand, case: Case, request: pytest.FixtureRequest) -> None:
    name = stand.new_name()
    stand.site.submit(name)
    where = wait_until(lambda: stand.runs_on(name), "it to run", LONG)
    trap = _trap(stand, case)
    stand.site.drain(where)
    took = _break(stand, case, trap, name, where)
    request.node.user_properties.append(("seconds", took))


@pytest.mark.parametrize("case", [*_cases(RETURNING)])
def test_it_returns_once(stand: Stand, case: Case, request: pytest.FixtureRequest) -> None:
    name = stand.new_name()
    stand.site.submit(name)
    where = wait_until(lambda: stand.runs_on(name), "it to run", LONG)
    trap = _trap(stand, case)
    stand.site.members[where].delete("RayCluster", name)
    took = _break(stand, case, trap, name, "")
    request.node.user_properties.append(("seconds", took))


def _trap(stand: Stand, case: Case) -> Trap:
    return stand.trap(Late if case.is_late else Unanswered, case.step)


def _break(stand: Stand, case: Case, trap: Trap, name: str, left: str) -> float:
    """Have the fault happen at the step; returns after how many seconds the gang runs."""
    try:
        wait_until(lambda: trap.is_set_off, f"step {case.step.name}", LONG)
        member = trap.where or stand.site.dispatch(name).get("cluster") or "east"
        terms = stand.terms()
        with case.breakage(stand, member):
            if not case.is_late:
                trap.open()
        if case.is_late:
            wait_until(lambda: stand.terms() != terms, "a successor to lead", LONG)
    finally:
        trap.open()
    return _healed(stand, name, left)


def _healed(stand: Stand, name: str, left: str) -> float:
    began = time.monotonic()

    def runs() -> bool:
        where = stand.runs_on(name)
        return bool(where) and where != left

    wait_until(runs, f"{name} to run", _PATIENCE, seen=lambda: stand.site.dispatch(name))
    took = time.monotonic() - began
    assert stand.witness.findings == []
    assert took < HEALED
    return took
