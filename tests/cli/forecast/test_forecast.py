"""A forecast says what the coordinator will decide, and says where nothing can be said."""

from cli.forecast.asking import forecast
from cli.report.forecast.expected import ExpectedReport, Sure
from kube.objects import names
from tests.cli.forecast.pictures import HOUR, lasting, pictured, world_of
from tests.coordinator.app_wrappers import app_wrapper, job
from tests.coordinator.builders import node
from tests.coordinator.world import World


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
