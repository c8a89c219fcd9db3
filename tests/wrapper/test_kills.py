"""A leader that is killed at any request is followed by one that goes on; nothing is done twice."""

from collections.abc import Callable

import pytest

from tests.wrapper.fake_api import unanswered
from tests.wrapper.world import World, codeflare, config_map, job, mcad, with_wrapper

Journey = Callable[[World], None]
MOST_REQUESTS = 60


def starts(world: World) -> None:
    world.place()
    world.settle(10)
    assert world.phase == "Running"
    assert sorted(world.items) == ["settings", "work"]


def starts_and_stops(world: World) -> None:
    starts(world)
    world.gang("Resumed", placed=True)
    world.stop()
    world.settle(40)
    assert (world.phase, world.items) == ("Suspended", [])


def cannot_be_created(world: World) -> None:
    world.api.refuse["jobs"] = unanswered()
    world.place()
    world.settle(150)
    assert world.api.phases.count("Resetting") == 1
    assert world.items == []


def completes(world: World) -> None:
    starts(world)
    world.pods_become("Succeeded")
    world.job_says("work", "Complete")
    world.settle(70)
    assert world.phase == "Succeeded"


JOURNEYS: tuple[Journey, ...] = (starts, starts_and_stops, cannot_be_created, completes)


@pytest.mark.parametrize(
    "late",
    [pytest.param(False, marks=pytest.mark.long, id="before"), pytest.param(True, id="after")],
)
@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda each: each.__name__)
def test_a_leader_may_be_killed_at_every_request(journey: Journey, late: bool) -> None:
    """The API server of the tests refuses what is created or deleted without being announced."""
    deaths = 0
    for at in range(1, MOST_REQUESTS):
        world = with_wrapper(codeflare(config_map(), job()))
        world.api.die_at, world.api.dies_late = world.api.requests + at, late
        undisturbed = world.api.phases.copy()
        journey(world)
        deaths += world.deaths
        once = {key: world.api.created.count(key) for key in world.api.created}
        assert set(once.values()) <= {1}, (at, once)
        assert world.api.phases[: len(undisturbed)] == undisturbed
        if not world.deaths:
            break
    else:
        raise AssertionError("the journey has more requests than were tried")
    assert deaths > 5


def test_a_leader_that_is_killed_in_each_step_of_a_requeuing_counts_it_once() -> None:
    terms = {"minAvailable": 1, "requeuing": {"timeInSeconds": 10, "growthType": "none"}}
    for at in range(1, MOST_REQUESTS):
        world = with_wrapper(mcad(config_map(), job(), schedulingSpec=terms))
        world.place()
        world.settle(5)
        world.api.die_at = world.api.requests + at
        world.settle(10)
        world.gang("Waiting", placed=False)
        world.settle(60)
        assert world.status["numberOfRequeueings"] == 1
        assert (world.phase, world.items) == ("Suspended", [])
        if not world.deaths:
            break
    assert at > 5
