"""Are few gangs started at one time, in the order of the queue, and is none held up by others?"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.window import LONGEST_PAUSE, SLACK, UNDER_WAY, Window
from kube import names
from kube.errors import Forbidden
from scheduling.model import GangKey
from tests.coordinator.builders import Json, gang_of, node
from tests.coordinator.world import World, is_gated, name_of

GANGS = 2 * UNDER_WAY + 3


def key(number: int) -> GangKey:
    return GangKey("team", f"{number:03}")


def asks(window: Window, number: int, now: float = 0.0, priority: int = 0) -> bool:
    return window.admits(key(number), (-priority, 0.0, str(key(number))), now)


def full_window() -> Window:
    """A window with all of its places taken at 0 s."""
    window = Window()
    assert all(asks(window, number) for number in range(UNDER_WAY))
    return window


def test_who_comes_when_all_places_are_taken_waits_for_the_next() -> None:
    window = full_window()
    assert not asks(window, 100)
    assert window.call(0.5) == []
    window.leave(key(3))
    assert window.call(0.5) == [key(100)]
    assert asks(window, 100)


def test_the_line_is_the_queue_whoever_asked_first() -> None:
    window = full_window()
    for number, priority in ((102, 0), (101, 0), (103, 5)):
        assert not asks(window, number, priority=priority)
    for number in range(3):
        window.leave(key(number))
    assert window.call(0.5) == [key(103), key(101), key(102)]


def test_who_comes_while_others_are_called_does_not_pass_the_line() -> None:
    window = full_window()
    asks(window, 100)
    window.leave(key(0))
    assert not asks(window, 101)
    assert window.call(0.5) == [key(100)]


def test_a_gang_whose_priority_changed_stands_in_line_once() -> None:
    window = full_window()
    asks(window, 100)
    asks(window, 101)
    asks(window, 101, priority=5)
    for number in range(3):
        window.leave(key(number))
    assert window.call(0.5) == [key(101), key(100)]


def test_a_gang_that_makes_no_step_gives_its_place_away_after_a_second() -> None:
    window = full_window()
    window.step(key(1), 0.5)
    assert window.next_end == SLACK
    assert window.overdue(SLACK - 0.01) == []
    assert key(1) not in window.overdue(SLACK)
    assert len(window.overdue(SLACK)) == UNDER_WAY - 1


@pytest.mark.parametrize(("took", "pause"), [(3.0, 3.0), (1000.0, LONGEST_PAUSE)])
def test_a_slow_scheduler_is_waited_for_longer(took: float, pause: float) -> None:
    """The pause that the last gang had at most is that of kube-scheduler, and not forever."""
    window = full_window()
    window.bound(key(0), took)
    window.bound(key(0), took + 0.1)
    window.leave(key(0))
    window.step(key(1), took)
    assert key(1) not in window.overdue(took + pause + SLACK - 0.01)
    assert key(1) in window.overdue(took + pause + SLACK)


def test_how_long_a_gang_took_that_was_given_up_says_nothing_of_the_scheduler() -> None:
    window = full_window()
    window.give_up(key(0))
    window.bound(key(0), 8.0)
    window.leave(key(0))
    window.step(key(1), 8.0)
    assert key(1) in window.overdue(8.0 + SLACK)


@given(gaps=st.lists(st.one_of(st.none(), st.floats(0.0, 50.0)), min_size=1, max_size=60))
def test_nobody_waits_for_ever(gaps: list[float | None]) -> None:
    """Each gang is bound so many seconds after it was let in, or never (None)."""
    window, now = Window(), 0.0
    waiting = {number for number in range(len(gaps)) if not asks(window, number)}
    inside = dict.fromkeys(set(range(len(gaps))) - waiting, 0.0)
    while inside:
        ends = {n: since + gap for n, since in inside.items() if (gap := gaps[n]) is not None}
        end = window.next_end
        assert end is not None
        assert end <= now + LONGEST_PAUSE + SLACK
        now = min([end, *ends.values()])
        for number in [n for n, at in ends.items() if at <= now]:
            window.bound(key(number), now)
            window.leave(key(number))
            del inside[number]
        for late in window.overdue(now):
            window.give_up(late)
            del inside[int(late.name)]
        called = {int(each.name) for each in window.call(now)}
        assert len(called) == min(len(waiting), UNDER_WAY - len(inside))
        inside |= dict.fromkeys(called, now)
        waiting -= called
    assert not waiting


# ---- in the coordinator


def crowd() -> World:
    """Gangs of a head and a worker that have waited for a node; it comes now."""
    world = World()
    world.create(*(gang_of(f"{number:03}", 1) for number in range(GANGS)))
    world.settle(seconds=3)
    world.create(node("n1", cpu=1000, pods=1000))
    return world


def under_way(world: World) -> set[str]:
    """The gangs that are released in part, and not bound whole."""
    pods = world.pods()
    released = {_gang(pod) for pod in pods if not is_gated(pod)}
    return released & {_gang(pod) for pod in pods if "nodeName" not in pod["spec"]}


def _gang(pod: Json) -> str:
    return str(pod["metadata"]["labels"][names.RAY_CLUSTER])


def rounds(world: World) -> Iterator[None]:
    """Everybody works, step by step, at one and the same moment."""
    for _ in range(50):
        world._work(world.leader)
        yield
        world.controllers()
        yield


def test_few_gangs_are_started_at_one_time_and_all_are_in_the_end() -> None:
    world = crowd()
    most = max(len(under_way(world)) for _ in rounds(world))
    assert most == UNDER_WAY == 8
    assert world.bound() == {"n1": 2 * GANGS}
    assert not under_way(world)


def test_the_last_bind_of_a_gang_lets_the_next_in_at_once() -> None:
    """No pod becomes ready, and no time passes."""
    world = crowd()
    for _ in range(50):
        world._work(world.leader)
        world.schedule()
    assert world.bound() == {"n1": 2 * GANGS}


def test_the_placements_of_the_next_are_written_meanwhile() -> None:
    world = crowd()
    for _ in range(3):
        world._work(world.leader)
    placed = [each for each in world.api.all("gangs") if "placement" in each["status"]]
    assert len(placed) == GANGS
    assert under_way(world) == {f"{number:03}" for number in range(UNDER_WAY)}


def test_gangs_that_are_never_bound_hold_up_the_others_for_a_second() -> None:
    """As with a volume that is made for a minute; who came before them is released, and no more."""
    world = crowd()
    world.grudges.add("n1")
    world.settle(seconds=SLACK - 0.1)
    assert len(under_way(world)) == UNDER_WAY
    world.settle(seconds=0.2)
    assert len(under_way(world)) == 2 * UNDER_WAY
    world.grudges.clear()
    world.settle(seconds=2 * SLACK)
    assert world.bound() == {"n1": 2 * GANGS}


def test_a_gang_whose_release_is_refused_takes_no_place() -> None:
    world = crowd()
    for number in range(UNDER_WAY):
        for pod in world.pods(f"{number:03}"):
            world.api.refusals[name_of(pod)] = Forbidden(403, "Forbidden", "policy says no")
    world.settle()
    assert world.bound() == {"n1": 2 * (GANGS - UNDER_WAY)}


def test_a_gang_that_is_deleted_gives_its_place_away() -> None:
    world = crowd()
    world.grudges.add("n1")
    world.settle()
    for name in under_way(world):
        world.delete("rayclusters", name)
    world.leader.hear("rayclusters")
    world.grudges.clear()
    world.settle()
    assert world.bound() == {"n1": 2 * (GANGS - UNDER_WAY)}


def test_a_gang_that_runs_gets_its_replacement_though_all_places_are_taken() -> None:
    world = World(node("n0", cpu=2))
    world.create(gang_of("runs", 1))
    world.settle(seconds=2)
    world.create(*(gang_of(f"{number:03}", 1) for number in range(GANGS)))
    world.settle(seconds=3)
    world.grudges.add("n1")
    world.create(node("n1", cpu=1000, pods=1000))
    world.settle()
    assert len(under_way(world)) == UNDER_WAY
    [_, worker] = world.pods("runs")
    world.delete("pods", name_of(worker))
    world.settle()
    assert world.bound("runs") == {"n0": 2}
