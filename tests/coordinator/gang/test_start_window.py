"""Few gangs are started at one time, in the order of the queue, and no other is held up."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.gang.start_window import LONGEST_PAUSE, SLACK, UNDER_WAY, Window
from coordinator.messages.actions import ReleasePod
from kube.api.errors import ApiError, Forbidden, ServerError
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.builders import Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.client import Outcome
from tests.coordinator.world import World, is_gated, name_of

GANGS = 2 * UNDER_WAY + 3


def key(number: int) -> GangKey:
    return GangKey("team", f"{number:03}")


def asks(window: Window, number: int, now: float = 0.0, priority: int = 0) -> bool:
    return window.admits(key(number), (0, -priority, 0.0, str(key(number))), now)


def full_window() -> Window:
    """A window with all of its places taken at 0 s."""
    window = Window()
    assert all(asks(window, number) for number in range(UNDER_WAY))
    return window


def test_a_gang_that_comes_when_all_places_are_taken_waits_for_the_next() -> None:
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


def test_a_gang_that_comes_while_others_are_called_does_not_pass_the_line() -> None:
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


def test_a_bind_that_comes_after_its_gang_was_given_up_tells_how_long_to_wait() -> None:
    """Else a scheduler that falls behind all at once would never be waited for."""
    window = full_window()
    for late in window.overdue(3.0):
        window.give_up(late)
    assert asks(window, 100, now=3.0)
    assert key(100) in window.overdue(3.0 + SLACK)
    window.bound(key(0), 3.0)
    assert key(100) not in window.overdue(3.0 + 3.0 + SLACK - 0.01)
    assert key(100) in window.overdue(3.0 + 3.0 + SLACK)


def test_gangs_that_are_never_bound_are_waited_for_less_and_less() -> None:
    """What a volume took that was made is no measure for one that is not."""
    window = full_window()
    window.bound(key(0), LONGEST_PAUSE)
    window.leave(key(0))
    window.give_up(key(1))
    window.give_up(key(2))
    window.step(key(3), 20.0)
    assert key(3) in window.overdue(20.0 + LONGEST_PAUSE / 4 + SLACK)
    assert key(3) not in window.overdue(20.0 + LONGEST_PAUSE / 4 + SLACK - 0.01)


@given(gaps=st.lists(st.one_of(st.none(), st.floats(0.0, 50.0)), min_size=1, max_size=60))
def test_no_gang_waits_for_ever(gaps: list[float | None]) -> None:
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
            window.leave(late)
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
    """As with a volume that is made for a minute; the gang before them is released, and no more."""
    world = crowd()
    world.grudges.add("n1")
    world.settle(seconds=SLACK - 0.1)
    assert len(under_way(world)) == UNDER_WAY
    world.settle(seconds=0.2)
    assert len(under_way(world)) == 2 * UNDER_WAY
    world.grudges.clear()
    world.settle(seconds=2 * SLACK)
    assert world.bound() == {"n1": 2 * GANGS}


@pytest.mark.parametrize(
    "error", [Forbidden(403, "Forbidden", "policy says no"), ServerError(500, "Timeout", "webhook")]
)
def test_a_gang_whose_release_fails_takes_no_place(error: ApiError) -> None:
    world = crowd()
    for number in range(UNDER_WAY):
        for pod in world.pods(f"{number:03}"):
            world.api.refusals[name_of(pod)] = error
    world.settle()
    assert world.bound() == {"n1": 2 * (GANGS - UNDER_WAY)}


def test_a_place_is_free_though_the_answer_to_a_release_comes_after_its_bind() -> None:
    world = crowd()
    world.leader.hear_all()
    world.leader.cycle()
    world.leader.act_all_but(ReleasePod)
    world.leader.hear_all()
    while sent := [each for each in world.leader.todo if isinstance(each, ReleasePod)]:
        world.leader.todo.clear()
        ended = [end for each in sent for end in world.leader.carried_out(each, Outcome.DONE)]
        world.schedule()
        world.leader.hear("pods")
        world.leader.handle(ended)
        world.leader.hear_all()
    assert world.bound() == {"n1": 2 * GANGS}


def test_a_gang_whose_minimum_is_bound_keeps_no_place_for_its_surplus() -> None:
    world = World()
    spare = {names.MIN_REPLICAS: "workers=0"}
    bodies = (ray_cluster(f"{n:03}", group("workers", 1), annotations=spare) for n in range(GANGS))
    world.create(*bodies)
    world.settle(seconds=3)
    world.create(node("n1", cpu=1000, pods=1000))
    for at in (0.0, 0.6):
        world.api.now += at
        for _ in range(5):
            world._work(world.leader)
            for pod in heads(world):
                world._schedule_one(pod)
    assert len(heads(world)) >= 2 * UNDER_WAY


def heads(world: World) -> list[Json]:
    """The head pods that are released."""
    return [pod for pod in world.pods() if "headgroup" in name_of(pod) and not is_gated(pod)]


def test_gangs_are_released_in_the_order_in_which_they_were_admitted() -> None:
    """One that was admitted on the word of another may need that one's pods on their node."""
    world = crowd()
    world.grudges.add("n1")
    world.settle()
    urgent = template(priority=100)
    world.create(ray_cluster("late", group("workers", 1, priority=100), head=urgent))
    world.settle()
    assert "placement" in world.status("late")
    world.grudges.clear()
    world.leader.log.clear()
    world.settle(seconds=5)
    released = [pod for pod, _ in world.leader.releases() if "headgroup" in pod]
    assert released[-1].startswith("late")


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
