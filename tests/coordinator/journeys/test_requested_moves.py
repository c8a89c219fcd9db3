"""What `status.moves` of a Gang asks for: gangs move so that it starts, in room that is kept."""

from cli.forecast.defrag import advise_request
from scheduling.model.gang import GangKey
from tests.cli.forecast.test_defrag import scattered, workers
from tests.coordinator.builders import TEAM, Json
from tests.coordinator.journeys.preemption.test_budgets import budget
from tests.coordinator.replica import WALL
from tests.coordinator.world import World
from tests.forecast.pictures import pictured


def asked(world: World, *, seconds: float = 600.0) -> Json:
    """Ask for the plan that `muster defrag large` finds; returns what is asked for."""
    _, request = advise_request(pictured(world), GangKey(TEAM, "large"))
    assert request is not None
    assert not request.refused
    moves = request.until(WALL + world.api.now + seconds)
    change(world, moves)
    return moves


def change(world: World, moves: Json | None) -> None:
    """Write `status.moves` of the gang that waits."""
    world.api.change(world.gang("large"), lambda obj: obj["status"].update(moves=moves), "status")


def planned(moves: Json) -> str:
    """The node to which the worker of a gang is to go."""
    sets = {each["name"]: each["assignments"] for each in moves["placement"]["podSets"]}
    (node,) = sets["workers"][0]["nodes"]
    return str(node)


def worker_of(world: World, name: str) -> str:
    """The node that the worker of a gang is on."""
    (pod,) = (each for each in world.pods(name) if "workers" in each["metadata"]["name"])
    return str(pod["spec"].get("nodeName", ""))


def phases(world: World) -> dict[str, str]:
    return {each["metadata"]["name"]: each["status"]["phase"] for each in world.api.all("gangs")}


def test_the_moved_gang_and_the_waiting_one_take_the_room_that_was_planned() -> None:
    world = scattered()
    moves = asked(world)
    world.settle(seconds=60)
    assert set(phases(world).values()) == {"Running"}
    assert worker_of(world, "large") == planned(moves)
    assert worker_of(world, "two") == planned(moves["gangs"][0])
    assert world.status("large")["moves"] == moves


def test_another_gang_that_would_fit_meanwhile_gets_none_of_the_room() -> None:
    world = scattered()
    moves = asked(world)
    world.create(workers("first", 4))
    world.settle(seconds=60)
    assert phases(world)["first"] == "Queued"
    assert worker_of(world, "large") == planned(moves)
    assert worker_of(world, "two") == planned(moves["gangs"][0])


def test_a_gang_of_which_a_budget_keeps_pods_is_not_moved_and_nothing_is_kept() -> None:
    world = scattered()
    world.create(budget("stays", 1, cluster="two", group="workers"))
    asked(world)
    world.settle(seconds=10)
    assert phases(world) == {"one": "Running", "two": "Running", "large": "Queued"}
    assert world.status("large")["reason"] == "InsufficientResources"
    world.create(workers("small", 4))
    world.settle(seconds=10)
    assert phases(world)["small"] == "Running"


def test_a_leader_that_comes_in_between_goes_on() -> None:
    world = scattered()
    moves = asked(world)
    world._work(world.leader)
    world._work(world.leader)
    world.elect(0)
    world.settle(seconds=60)
    assert set(phases(world).values()) == {"Running"}
    assert worker_of(world, "large") == planned(moves)


def test_room_is_kept_until_the_time_that_was_asked_for_and_no_longer() -> None:
    world = scattered()
    moves = asked(world, seconds=300)
    change(world, {**moves, "gangs": []})
    world.create(workers("small", 4), workers("other", 4))
    world.settle(seconds=290)
    assert sorted(phases(world).values()) == ["Queued", "Queued", "Running", "Running", "Running"]
    world.settle(seconds=20)
    assert phases(world) | {"large": "Queued"} == dict.fromkeys(phases(world), "Running") | {
        "large": "Queued"
    }


def test_moves_that_are_taken_back_before_anything_ended_leave_all_as_it_was() -> None:
    world = scattered()
    asked(world)
    change(world, None)
    world.settle(seconds=10)
    assert phases(world) == {"one": "Running", "two": "Running", "large": "Queued"}


def test_a_plan_of_another_shape_ends_nothing() -> None:
    world = scattered()
    moves = asked(world)
    moves["placement"]["podSets"] = moves["placement"]["podSets"][:1]
    change(world, moves)
    world.settle(seconds=10)
    assert phases(world) == {"one": "Running", "two": "Running", "large": "Queued"}
