"""Properties of forecasts on worlds that are made up: they hold for every one of them."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from cli.forecast.changes import Added, Changes
from cli.forecast.what_if import what_if
from forecast.asking import forecast
from forecast.expected import Sure
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, node
from tests.coordinator.replica import WALL
from tests.coordinator.world import World
from tests.examples import examples
from tests.forecast.pictures import HOUR, lasting, pictured

gangs = st.lists(
    st.tuples(st.integers(1, 7), st.sampled_from((0.05, 0.1, 0.2))), min_size=1, max_size=5
)
rules = st.sampled_from(("Strict", "BestEffort", "Backfill"))


def queue(when_blocked: str) -> Json:
    rules = {"namespaceSelector": {}, "quota": {"cpu": 1000}, "whenBlocked": when_blocked}
    return {"kind": "GangQueue", "metadata": {"name": "q"}, "spec": rules}


def world_of(when_blocked: str, found: list[tuple[int, float]], nodes: int = 2) -> World:
    world = World(*(node(f"n-{at}", cpu=4) for at in range(nodes)), queue(when_blocked))
    for at, (workers, hours) in enumerate(found):
        world.create(lasting(f"g-{at}", workers, hours))
        world.settle(seconds=2)
    return world


@given(rules, gangs)
@examples(8, otherwise=2)
def test_gangs_start_as_they_do_once_the_others_end(
    when_blocked: str, found: list[tuple[int, float]]
) -> None:
    """The judge is the whole cluster in memory, in which gangs are deleted at their ends."""
    world = world_of(when_blocked, found)
    report = forecast(pictured(world))
    came = starts(world, {f"g-{at}": hours for at, (_, hours) in enumerate(found)})
    for each in report.gangs:
        if each.at:
            told = datetime.fromisoformat(each.at).timestamp() - WALL
            assert abs(told - came[each.name]) < 5, f"{each} came at {came[each.name]}"
        else:
            assert each.name not in came, f"{each} came at {came[each.name]}"


def starts(world: World, hours: dict[str, float]) -> dict[str, float]:
    """Let the gangs run for as long as they say; returns when each of them had its placement."""
    came: dict[str, float] = {}
    for _ in range(2 * len(hours) + 2):
        there = {gang["metadata"]["name"] for gang in world.api.all("gangs")}
        for name in sorted(there - came.keys()):
            if "placement" in world.status(name):
                came[name] = admitted_at(world, name)
        ends = {name: at + hours[name] * HOUR for name, at in came.items() if name in there}
        if not ends:
            break
        name = min(ends, key=lambda each: (ends[each], each))
        # Just before: of one that outlives its duration the coordinator expects another end.
        world.settle(seconds=max(0.0, ends[name] - 0.5 - world.api.now))
        world.api.delete(Key("rayclusters", TEAM, name))
        world.settle()
    return came


def admitted_at(world: World, name: str) -> float:
    """When a gang had its place, by the clock of the world."""
    said = {each["type"]: each for each in world.status(name)["conditions"]}
    return datetime.fromisoformat(said["Admitted"]["lastTransitionTime"]).timestamp() - WALL


@given(rules, gangs)
@examples(6, otherwise=2)
def test_estimates_are_not_before_now_and_within_their_range(
    when_blocked: str, found: list[tuple[int, float]]
) -> None:
    world = world_of(when_blocked, found)
    report = forecast(pictured(world))
    for each in report.gangs:
        if each.at:
            assert report.taken <= each.at
        if each.sure is Sure.FORWARD:
            assert report.taken <= each.earliest <= each.at
            assert not each.latest or each.at <= each.latest


@given(rules, gangs)
@examples(6, otherwise=2)
def test_no_change_changes_nothing(when_blocked: str, found: list[tuple[int, float]]) -> None:
    assert what_if(pictured(world_of(when_blocked, found)), Changes()).effects == ()


@given(gangs, st.integers(1, 3))
@examples(8, otherwise=2)
def test_the_head_of_the_only_strict_queue_starts_no_later_with_more_nodes(
    found: list[tuple[int, float]], more: int
) -> None:
    picture = pictured(world_of("Strict", found))
    before = picture.course()
    head = next((each.key for each in before.waiting if each.position == 1), None)
    effects = what_if(picture, Changes(added=(Added(more, "n-0"),))).effects
    mine = [each for each in effects if head is not None and each.name == head.name]
    assert all(each.later_seconds is None or each.later_seconds <= 0 for each in mine)
    if head is not None and head in before.starts:
        assert all(each.after for each in mine)
