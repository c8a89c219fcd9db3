"""AppWrappers by priority, and stopped for others, by a drain, or by their users."""

import pytest

from coordinator.messages.actions import EvictPod
from coordinator.reconcile.held_start.resuspension import UNFIT_PATIENCE
from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import (
    app_wrapper,
    bare_pod,
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
from tests.coordinator.journeys.app_wrappers.worlds import (
    gang_status,
    held_phase,
    in_queue,
    running,
    suspend,
)
from tests.coordinator.journeys.queues.worlds import change, queue
from tests.coordinator.stopping import condition
from tests.coordinator.world import World


def test_all_objects_go_when_its_queue_is_drained_and_come_back_when_that_goes_on() -> None:
    world = running(in_queue(app_wrapper("a", job("work", 4))))
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == []
    assert gang_status(world)["reason"] == "QueueStopped"
    change(world, "team", stop="None")
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4


# ---- priority


def of_mcad(name: str, **spec: object) -> Json:
    """An AppWrapper of MCAD's generation with a Job that needs all of the room."""
    wrapper = app_wrapper(name)
    items = [{"generictemplate": job(f"work-{name}", 4)}]
    return {**wrapper, "spec": {"resources": {"GenericItems": items}, **spec}}


@pytest.mark.parametrize(("adding", "first"), [((), "a"), ([TEAM], "c"), (["*"], "c")])
def test_a_priority_counts_where_the_operator_allows_it(adding: list[str], first: str) -> None:
    world = World(node("n1", cpu=4), adding=adding)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(of_mcad("a", priority=1))
    world.settle(seconds=5)
    world.create(of_mcad("c", priority=2))
    world.settle(seconds=5)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, first)) == 4


def test_a_priority_that_grows_overtakes() -> None:
    world = World(node("n1", cpu=4), adding=[TEAM])
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(of_mcad("a", priority=5), of_mcad("c", priorityslope=0.1))
    world.settle(seconds=10)
    assert (gang_status(world)["position"], gang_status(world, "c")["position"]) == (1, 2)
    world.settle(seconds=60)
    assert (gang_status(world)["position"], gang_status(world, "c")["position"]) == (2, 1)
    assert world.gang("appwrapper.c")["spec"]["priority"] == 6


# ---- stopping


def test_one_of_higher_priority_stops_it_whole_and_it_comes_back() -> None:
    world = running(in_queue(app_wrapper("a", config_map("settings"), job("work", 4))))
    world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    world.settle(seconds=UNFIT_PATIENCE * 4)
    assert len(nodes_of(world.api, "p")) == 3
    assert (pods_of(world.api, "a"), phase(world.api, "a")) == ([], "Suspended")
    assert Key("configmaps", TEAM, "settings") not in world.api.objects
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]
    evicted = condition(world, "appwrapper.a", "Evicted")
    assert evicted["message"].startswith("stopped for AppWrapper team/p")

    world.delete("appwrappers", "p")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert held_phase(world) == "Resumed"


def test_its_room_is_its_own_until_its_pods_are_gone() -> None:
    world = running(in_queue(app_wrapper("a", job("work", 4))))
    kubelets = world.kubelets
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    world.settle(seconds=60)
    assert phase(world.api, "a") == "Suspending"
    assert not had_objects(world.api, "p")
    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "p")) == 3


def test_a_released_pod_keeps_its_room_until_it_is_gone_also_where_a_person_stops_it() -> None:
    world = World(node("n1", cpu=4))
    schedule, kubelets = world.schedule, world.kubelets
    world.schedule = lambda: None  # type: ignore[method-assign]
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=10)
    assert len(world.leader.releases()) == 4
    world.wrapper = False
    become(world.api, wrapper_of(world.api, "a"), "Suspending")
    world.create(gang_of("b", 1))
    world.settle(seconds=10)
    assert world.status("b")["reason"] == "InsufficientResources"
    world.wrapper, world.schedule, world.kubelets = True, schedule, kubelets  # type: ignore[method-assign]
    suspend(world, True)
    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 2}


def test_what_was_begun_is_finished_also_where_the_other_is_gone() -> None:
    world = running(in_queue(app_wrapper("a", job("work", 4))))
    world.wrapper = False
    world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    world.settle(seconds=10)
    assert (held_phase(world), phase(world.api, "a")) == ("Suspending", "Running")
    world.delete("appwrappers", "p")
    world.settle(seconds=10)
    assert held_phase(world) == "Suspending"
    world.wrapper = True
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert wrapper_of(world.api, "a")["status"]["transitionCount"] == 6
    assert condition(world, "appwrapper.a", "Evicted")["status"] == "False"


def test_a_person_suspends_and_resumes_it() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    suspend(world, True)
    world.settle(seconds=30)
    assert (phase(world.api, "a"), held_phase(world)) == ("Suspended", "Waiting")
    status = gang_status(world)
    assert (status["reason"], "placement" in status) == ("Suspended", False)
    assert "spec.suspend is true" in status["message"]
    world.create(gang_of("b", 1))
    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 2}
    world.delete("rayclusters", "b")
    suspend(world, False)
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4


def test_one_that_is_created_suspended_waits_for_its_user() -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", job("work", 1), suspend=True))
    world.settle(seconds=30)
    assert gang_status(world)["reason"] == "Suspended"
    assert not had_objects(world.api, "a")


def test_one_of_which_a_pod_is_lost_before_it_ran_is_stopped_whole() -> None:
    """A bare pod is not made again by anything but the start of all of it."""
    world = World(node("n1", cpu=4))
    kubelets = world.kubelets
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(app_wrapper("a", bare_pod("one"), bare_pod("two")))
    world.settle(seconds=10)
    assert len(nodes_of(world.api, "a")) == 2
    world.api.remove(Key("pods", TEAM, "two"))
    world.settle(seconds=290)
    assert phase(world.api, "a") == "Running"
    world.settle(seconds=15)
    assert phase(world.api, "a") == "Suspending"
    assert condition(world, "appwrapper.a", "Evicted")["reason"] == "ReadyTimeout"
    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=60)
    assert len(nodes_of(world.api, "a")) == 2
    assert gang_status(world)["phase"] == "Running"


class Unready(World):
    """No pod gets ready."""

    def _condition(self, pod: Json, kind: str, status: str, reason: str, message: str) -> None:
        super()._condition(pod, kind, "False" if kind == "Ready" else status, reason, message)


def test_one_that_is_late_is_stopped_counted_and_given_up() -> None:
    rules = {"readySeconds": 100, "retries": 1, "backoffSeconds": 60}
    world = Unready(node("n1", cpu=4), queue("team", timeouts=rules))
    world.create(in_queue(app_wrapper("a", job("work", 4))))
    world.settle(seconds=150)
    world.settle(seconds=300)
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Failed", "RetriesExhausted")
    assert not pods_of(world.api, "a")
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]
