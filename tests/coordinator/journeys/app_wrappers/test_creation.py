"""AppWrappers whose pods come otherwise than foreseen, or whose program fails."""

from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import (
    app_wrapper,
    become,
    config_map,
    had_objects,
    job,
    nodes_of,
    phase,
    pods_of,
    wrapper_of,
)
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    node,
)
from tests.coordinator.journeys.app_wrappers.worlds import gang_status, held_phase, until
from tests.coordinator.world import World

# ---- pods that come otherwise, late, or end


def with_injected(world: World, extra: int) -> None:
    """Have a foreign webhook add a container to every pod of a Job."""
    reviewed = world._reviewed

    def review(cluster: Json, pod: Json) -> Json:
        side_car = {"name": "proxy", "resources": {"requests": {"cpu": str(extra)}}}
        containers = [*pod["spec"]["containers"], side_car]
        return reviewed(cluster, {**pod, "spec": {**pod["spec"], "containers": containers}})

    world._reviewed = review  # type: ignore[method-assign]


def test_pods_that_come_larger_and_fit_are_decided_again() -> None:
    world = World(node("n1", cpu=8))
    with_injected(world, 1)
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4


def test_pods_that_come_larger_and_do_not_fit_are_deleted_with_all_else_and_it_learns() -> None:
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(app_wrapper("a", config_map("settings"), job("work", 4)))
    world.settle(seconds=60)
    assert phase(world.api, "a") == "Suspended"
    assert not pods_of(world.api, "a")
    assert Key("configmaps", TEAM, "settings") not in world.api.objects
    status = gang_status(world)
    assert (status["reason"], held_phase(world)) == ("NeverFits", "Waiting")
    assert "came with 2 cpu instead of 1" in status["message"]
    count = wrapper_of(world.api, "a")["status"]["transitionCount"]
    world.settle(seconds=600)
    assert wrapper_of(world.api, "a")["status"]["transitionCount"] == count

    world.create(node("n2", cpu=6))
    world.settle(seconds=60)
    assert len(nodes_of(world.api, "a")) == 4


def test_what_is_to_be_deleted_stays_so_while_the_program_is_down() -> None:
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(app_wrapper("a", job("work", 4)))
    until(world, "Running")
    world.wrapper = False
    world.settle(seconds=60)
    assert (held_phase(world), phase(world.api, "a")) == ("Suspending", "Running")
    assert "placement" not in gang_status(world)
    assert gang_status(world)["message"].startswith("the AppWrapper is being suspended")


def test_room_is_given_back_where_the_program_creates_nothing() -> None:
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=30)
    assert gang_status(world)["placement"]
    world.settle(seconds=280)
    assert "placement" not in gang_status(world)
    world.create(gang_of("b", 3))
    world.settle(seconds=15)
    assert world.bound("b") == {"n1": 4}


def test_a_creation_that_fails_is_told_and_tried_again_later() -> None:
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=5)
    for now in ("Resuming", "Resetting"):
        said = "components[0] (Job work): forbidden" if now == "Resetting" else ""
        become(world.api, wrapper_of(world.api, "a"), now, message=said)
        world.settle(seconds=1)
    assert held_phase(world) == "Suspending"
    assert "placement" not in gang_status(world)
    become(world.api, wrapper_of(world.api, "a"), "Suspended")
    world.settle(seconds=5)
    status = gang_status(world)
    assert status["reason"] == "PodsRefused"
    assert "Job work" in status["message"]
    world.wrapper = True
    world.settle(seconds=20)
    assert not had_objects(world.api, "a")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "a")) == 4


def test_a_creation_that_failed_unseen_waits_as_well() -> None:
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=5)
    become(world.api, wrapper_of(world.api, "a"), "Resuming")
    world.settle(seconds=1)
    assert held_phase(world) == "Resumed"
    for now in ("Resetting", "Suspended"):
        become(world.api, wrapper_of(world.api, "a"), now)
    world.leader.watch.queues["appwrappers"].popleft()
    world.settle(seconds=1)
    status = gang_status(world)
    assert (status["reason"], "placement" in status) == ("PodsRefused", False)
