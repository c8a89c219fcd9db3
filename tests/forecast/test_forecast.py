"""A forecast says what the coordinator will decide, and says where nothing can be said."""

import pytest

from forecast.asking import forecast
from forecast.expected import ExpectedReport, Sure
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.app_wrappers import app_wrapper, job
from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster, template
from tests.coordinator.world import World
from tests.forecast.pictures import HOUR, lasting, pictured, world_of


def estimates(world: World) -> dict[str, ExpectedReport]:
    return {each.name: each for each in forecast(pictured(world)).gangs}


def test_a_gang_starts_when_the_one_before_it_ends() -> None:
    world = world_of(node("a", cpu=4), gangs=[lasting("runs", 3, 2), lasting("next", 3, 1)])
    found = estimates(world)["next"]
    assert found.sure is Sure.FORWARD
    assert found.in_seconds is not None
    assert abs(found.in_seconds - (2 * HOUR - 120)) < 2
    assert found.why == "after RayCluster team/runs ends (declared 2h, runs for 2m)"
    assert found.earliest < found.at < found.latest


def test_gangs_that_wait_start_one_after_another() -> None:
    gangs = [lasting("runs", 3, 2), lasting("b", 3, 1), lasting("c", 3, 0)]
    found = estimates(world_of(node("a", cpu=4), gangs=[*gangs, lasting("d", 3, 1)]))
    assert found["c"].why == "after RayCluster team/b ends (waits too, declared 1h)"
    first, second = found["b"].in_seconds, found["c"].in_seconds
    assert first is not None
    assert second == first + HOUR
    assert found["d"].sure is Sure.UNKNOWN
    assert found["d"].why.startswith("nothing tells when RayCluster team/c ends: ")


def test_gangs_without_pods_are_forecast_too() -> None:
    held = lasting("held", 3, 1, annotations={names.CREATE_PODS: names.CREATE_WHEN_ADMITTED})
    wrapped = app_wrapper("wrapped", job("work", 3, cpu=1))
    world = world_of(node("a", cpu=4), gangs=[lasting("runs", 3, 2), held, wrapped])
    found = estimates(world)
    assert found["held"].why.startswith("after RayCluster team/runs ends")
    assert found["appwrapper.wrapped"].why.startswith("after RayCluster team/held ends")


def test_a_forecast_that_runs_out_of_time_says_so() -> None:
    gangs = [lasting("runs", 3, 2), lasting("b", 3, 1), lasting("c", 3, 1)]
    picture = pictured(world_of(node("a", cpu=4), gangs=gangs), starts=1)
    found = {each.name: each for each in forecast(picture).gangs}
    assert found["b"].sure is Sure.FORWARD
    assert found["c"].sure is Sure.RATE
    assert found["c"].why.startswith("by the rate of its queue alone: 1 starts in ")
    assert found["c"].at > found["b"].at


def of_priority(name: str, workers: int) -> Json:
    """A gang of priority 10 that says that it runs for an hour."""
    said = {names.EXPECTED_DURATION: "3600s"}
    group_of_it, head = group("workers", workers, priority=10), template(priority=10)
    return ray_cluster(name, group_of_it, head=head, annotations=said)


def test_a_gang_that_is_stopped_for_another_in_a_forecast_makes_way() -> None:
    """No gang of the same priority is stopped, so the room is enough once that one ends."""
    stops = queue(preemption={"withinQueue": "LowerPriority"})
    gangs = [of_priority("same", 1), lasting("low", 3, 9), of_priority("high", 5)]
    course = pictured(world_of(node("a", cpu=6), stops, gangs=gangs)).course()
    low, high = GangKey(TEAM, "low"), GangKey(TEAM, "high")
    assert course.starts[high].after == (GangKey(TEAM, "same"),)
    assert course.began < course.stops[low] <= course.starts[high].at


@pytest.mark.parametrize("said", ["0s", "-1h", "2 parsecs", "soon"])
def test_a_duration_that_means_nothing_is_named(said: str) -> None:
    bad = lasting("bad", 3, 0, annotations={names.EXPECTED_DURATION: said})
    found = estimates(world_of(node("a", cpu=4), gangs=[lasting("runs", 3, 2), bad]))["bad"]
    assert found.sure is Sure.UNKNOWN
    assert f'{names.EXPECTED_DURATION}: "{said}"' in found.why


def test_a_duration_of_a_year_is_run_forward_to() -> None:
    gangs = [lasting("runs", 3, 365 * 24), lasting("next", 3, 1)]
    found = estimates(world_of(node("a", cpu=4), gangs=gangs))["next"]
    assert found.sure is Sure.FORWARD
    assert found.in_seconds is not None
    assert found.in_seconds > 364 * 24 * HOUR


# ---- learned durations


def taught(hours: list[float], *gangs: Json) -> World:
    """A world in which gangs of 3 workers ran for so long, one after another; then others come."""
    world = World(node("a", cpu=4), queue())
    for at, each in enumerate(hours):
        world.create(lasting(f"was-{at}", 3, 0))
        world.settle(seconds=20)
        world.api.now += each * HOUR - 20
        world.delete("rayclusters", f"was-{at}")
        world.settle(seconds=20)
    for gang in gangs:
        world.create(gang)
        world.settle(seconds=60)
    return world


def queue(**spec: object) -> Json:
    rules = {"namespaceSelector": {}, "quota": {"cpu": 100}, **spec}
    return {"kind": "GangQueue", "metadata": {"name": "q"}, "spec": rules}


def test_what_ended_before_tells_how_long_gangs_run_that_say_nothing() -> None:
    world = taught([1, 2, 2, 4, 4], lasting("runs", 3, 0), lasting("next", 3, 1))
    found = estimates(world)["next"]
    assert found.sure is Sure.FORWARD
    assert found.in_seconds is not None
    assert abs(found.in_seconds - 2 * HOUR) < HOUR / 5
    assert found.earliest < found.at < found.latest
    assert found.why == (
        "after RayCluster team/runs ends (learned from 5 that ended of namespace team: 2h5m, "
        "runs for 2m)"
    )


def test_a_gang_that_runs_on_is_taken_for_one_of_those_that_ran_longer() -> None:
    world = taught([1, 2, 2, 2, 9], lasting("runs", 3, 0), lasting("next", 3, 1))
    world.api.now += 3 * HOUR
    found = estimates(world)["next"]
    assert found.in_seconds is not None
    assert abs(found.in_seconds - 6 * HOUR) < HOUR
    world.api.now += 9 * HOUR
    found = estimates(world)["next"]
    assert found.in_seconds is not None
    assert abs(found.in_seconds - 12 * HOUR) < HOUR / 4
    assert found.why.endswith("runs for 12h2m: taken to end at twice its age)")


def test_what_a_gang_says_comes_before_what_was_learned() -> None:
    world = taught([1] * 5, lasting("runs", 3, 6), lasting("next", 3, 1))
    assert estimates(world)["next"].why.startswith("after RayCluster team/runs ends (declared 6h")


def test_too_few_that_ended_tell_nothing() -> None:
    world = taught([1] * 4, lasting("runs", 3, 0), lasting("next", 3, 1))
    found = estimates(world)["next"]
    assert found.sure is Sure.UNKNOWN
    assert found.why.endswith("of which fewer than 5 have ended")


def test_what_ends_in_a_forecast_teaches_nothing() -> None:
    """A gang behind 4 that ended, and one that says when it ends: nothing tells of the last."""
    world = taught([1] * 4, lasting("runs", 3, 2), lasting("b", 3, 0), lasting("c", 3, 0))
    assert estimates(world)["c"].sure is Sure.UNKNOWN
