"""Draws by a seed what is done to gangs and what breaks meanwhile. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.dispatcher.faults.breakages import (
    ALL,
    KILLS,
    Breakage,
    coordinator_killed,
    dispatcher_killed,
    manager_server_down,
    member_server_down,
    to_member_cut,
)
from tests.dispatcher.faults.steps import MOVING, STARTING, Step

SUBMIT, DELETE, DRAIN, STOP = "submit", "delete", "drain", "stop"
"""What people do: a gang more, one less, its member drained, its copy deleted there."""

FAULTS = 4
"""Of one run."""

PAIRS: tuple[tuple[Breakage, ...], ...] = (
    (dispatcher_killed, coordinator_killed),
    (dispatcher_killed, member_server_down),
    (dispatcher_killed, manager_server_down),
    (manager_server_down, coordinator_killed),
    (manager_server_down, member_server_down),
    (to_member_cut, coordinator_killed),
)
"""What breaks together: the second while the first is not healed."""

_STEPS_OF = {SUBMIT: STARTING, DELETE: (*MOVING[:5], *STARTING), DRAIN: MOVING, STOP: MOVING[2:]}
"""The steps that each may lead to; what a gang leaves, another one may take."""


@dataclass(frozen=True)
class Blow:
    """Something is done, and at a step that follows something breaks."""

    deed: str
    step: Step
    breakages: tuple[Breakage, ...]
    is_late: bool
    """Whether the request of the step comes only after it is healed."""
    choice: float
    """Which gang is meant, from 0 to 1."""

    def __str__(self) -> str:
        broken = "+".join(each.__name__ for each in self.breakages)
        return f"{self.deed}, at {self.step.name}{' (late)' * self.is_late}: {broken}"


def blows(seed: int) -> Iterator[Blow]:
    """Yield those of one run."""
    chance = random.Random(seed)
    for _ in range(FAULTS):
        deed = chance.choice((SUBMIT, SUBMIT, DELETE, DRAIN, STOP))
        broken = chance.choice(PAIRS) if chance.random() < 0.3 else (chance.choice(ALL),)
        is_late = broken[0] in KILLS and chance.random() < 0.5
        step = chance.choice(_STEPS_OF[deed])
        yield Blow(deed, step, broken, is_late, chance.random())
