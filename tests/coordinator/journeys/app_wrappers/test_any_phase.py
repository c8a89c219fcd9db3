"""AppWrappers deleted, suspended, edited or left by their leader in any phase."""

import pytest

from coordinator.messages.actions import DeletePod
from kube.objects import names
from tests.coordinator import app_wrappers as controllers
from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import (
    app_wrapper,
    config_map,
    job,
    nodes_of,
    phase,
    pods_of,
    wrapper_of,
)
from tests.coordinator.builders import (
    TEAM,
    gang_of,
    node,
)
from tests.coordinator.journeys.app_wrappers.worlds import (
    HIGH,
    LOWER,
    gang_status,
    in_queue,
    suspend,
    until,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.stopping import go_until
from tests.coordinator.world import World
from tests.examples import one_in

PHASES = ("", "Resuming", "Running", "Suspending", "Suspended")


def brought_to(name: str, replicas: int = 1) -> World:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), HIGH, replicas=replicas)
    world.create(in_queue(app_wrapper("a", job("work", 4))))
    if name in ("Suspending", "Suspended"):
        world.settle(seconds=30)
        world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    until(world, name)
    return world


@pytest.mark.parametrize("name", PHASES)
def test_deleted_in_any_phase_nothing_is_left_of_it(name: str) -> None:
    world = brought_to(name)
    world.delete("appwrappers", "a")
    world.settle(seconds=60)
    assert not pods_of(world.api, "a")
    assert Key("gangs", TEAM, "appwrapper.a") not in world.api.objects
    world.create(gang_of("b", 0))
    world.settle(seconds=10)
    assert world.bound("b") == {"n1": 1}


@pytest.mark.parametrize("change_leader", [False, True])
@pytest.mark.parametrize("name", PHASES)
def test_suspended_by_hand_in_any_phase_it_is_gone_and_comes_back(
    name: str, change_leader: bool
) -> None:
    world = brought_to(name, replicas=2)
    suspend(world, True)
    if change_leader:
        world.leader.restart()
        world.elect(1)
    world.settle(seconds=60)
    assert (pods_of(world.api, "a"), phase(world.api, "a")) in (([], "Suspended"), ([], ""))
    assert "placement" not in gang_status(world)
    if Key("appwrappers", TEAM, "p") in world.api.objects:
        world.delete("appwrappers", "p")
    suspend(world, False)
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4


@pytest.mark.parametrize(("now", "runs"), [(2, 2), (5, 0)])
@pytest.mark.parametrize("name", PHASES)
def test_edited_in_any_phase_it_runs_as_it_says_then_or_not_at_all(
    name: str, now: int, runs: int
) -> None:
    """The webhook lets no such edit pass while the items exist: this one it did not see."""
    world = brought_to(name)
    spec = app_wrapper("a", job("work", now))["spec"]
    world.api.change(wrapper_of(world.api, "a"), lambda obj: obj.update(spec=spec))
    world.settle(seconds=60)
    if Key("appwrappers", TEAM, "p") in world.api.objects:
        world.delete("appwrappers", "p")
    world.settle(seconds=600)
    assert nodes_of(world.api, "a") == ["n1"] * runs
    world.create(gang_of("b", 3 - runs))
    world.settle(seconds=10)
    assert world.bound("b") == {"n1": 4 - runs}


@pytest.mark.parametrize("name", ["Resuming", "Running"])
def test_a_node_that_is_lost_before_its_pods_run_has_it_placed_elsewhere(name: str) -> None:
    world = brought_to(name)
    world.delete("nodes", "n1")
    world.create(node("n2", cpu=4))
    world.settle(seconds=1200)
    assert nodes_of(world.api, "a") == ["n2"] * 4


def test_a_released_pod_that_loses_its_node_is_taken_from_its_job() -> None:
    """A Job counts each pod that is deleted as failed, and pauses: for 40 s after three at once."""
    world = World(node("n1", cpu=4))
    world.schedule = lambda: None  # type: ignore[method-assign]
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=5)
    world.delete("nodes", "n1")
    world.settle(seconds=5)
    deleted = [each for each in world.leader.log if isinstance(each, DeletePod)]
    assert [each.of_job for each in deleted] == [True] * 4


def test_where_the_pods_of_an_item_are_refused_all_of_it_is_deleted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a rule of admission that Muster does not know: the Job exists, and none of its pods."""
    monkeypatch.setattr(controllers, "make_pods", lambda *_: None)
    world = World(node("n1", cpu=4))
    world.create(app_wrapper("a", config_map("settings"), job("work", 4)))
    world.settle(seconds=30)
    world.create(gang_of("b", 3))
    world.settle(seconds=20)
    assert (phase(world.api, "a"), world.bound("b")) == ("Running", {})
    world.settle(seconds=20)
    assert world.bound("b") == {"n1": 4}
    assert phase(world.api, "a") == "Suspended"
    left = {Key("configmaps", TEAM, "settings"), Key("jobs", TEAM, "work")}
    assert not left & world.api.objects.keys()


@pytest.mark.parametrize("name", PHASES)
def test_another_of_its_name_starts_anew(name: str) -> None:
    world = brought_to(name)
    world.delete("appwrappers", "a")
    if "p" in {each["metadata"]["name"] for each in world.api.all("appwrappers")}:
        world.delete("appwrappers", "p")
    world.create(app_wrapper("a", job("again", 2)))
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 2
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    labels = [pod["metadata"]["labels"] for pod in pods_of(world.api, "a")]
    assert {each[names.APP_WRAPPER_UID] for each in labels} == {uid}


@pytest.mark.parametrize("step", one_in(4, range(40)))
def test_a_leader_that_dies_at_any_step_is_followed_by_one_that_goes_on(step: int) -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), HIGH, replicas=2)
    world.create(in_queue(app_wrapper("a", job("work", 4))))
    world.create(
        in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"), suspend=True))
    )
    taken = 0

    def steps_taken() -> bool:
        nonlocal taken
        world.wrap()
        world.schedule()
        world.kubelets()
        taken += 1
        if nodes_of(world.api, "a") and wrapper_of(world.api, "p")["spec"]["suspend"]:
            suspend(world, False, "p")
        return taken > step

    go_until(world, steps_taken)
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=60)
    suspend(world, False, "p")
    world.settle(seconds=60)
    assert len(nodes_of(world.api, "p")) == 3
    assert (pods_of(world.api, "a"), phase(world.api, "a")) == ([], "Suspended")
