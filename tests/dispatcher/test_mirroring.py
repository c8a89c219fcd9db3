"""The status of a copy comes up soon, and not more often than about once a second."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dispatcher.messages import Act, Action, MirrorStatus, TimePassed
from tests.dispatcher.world import World


class SlowManager(World):
    """A manager whose API server takes a tenth of a second to write a status."""

    late: tuple[Action, ...] = ()

    def carry_out(self, action: Action) -> None:
        if isinstance(action, Act) and isinstance(action.deed, MirrorStatus):
            self.late = (*self.late, action)
        else:
            super().carry_out(action)

    def pass_a_tenth(self) -> None:
        late, self.late = self.late, ()
        self.now += 0.1
        for action in late:
            super().carry_out(action)
        self.tell(TimePassed())


def running() -> SlowManager:
    world = SlowManager(east=1)
    world.submit("train")
    world.settle(3.0)
    return world


def report(world: SlowManager, tenths: int, state: Callable[[int], str]) -> None:
    """Have a copy report a state each tenth of a second."""
    for tenth in range(tenths):
        world.pass_a_tenth()
        world.report("east", "train", state=state(tenth))


def test_one_that_changes_all_the_time_is_written_about_once_a_second() -> None:
    world = running()
    report(world, 100, str)
    assert 8 <= len(world.written(MirrorStatus)) <= 11


@pytest.mark.parametrize("busy_for", [1, 7, 25])
def test_one_that_changes_no_more_is_written_after_a_third_of_a_second(busy_for: int) -> None:
    world = running()
    report(world, busy_for, str)
    for _ in range(5):
        world.pass_a_tenth()
    assert world.statuses["train"]["state"] == str(busy_for - 1)


def test_one_that_changes_seldom_is_written_each_time() -> None:
    world = running()
    report(world, 60, lambda tenth: str(tenth // 6))
    assert len(world.written(MirrorStatus)) == 10
