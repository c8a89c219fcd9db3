"""Held gangs that are stopped after they started: evicted, then suspended before they are gone.

A suspension alone would ask no PodDisruptionBudget, and end the head with the workers."""

import pytest

from coordinator.gang.nominations import Guard
from coordinator.messages.actions import EvictPod, NominatePod, SuspendRayCluster
from coordinator.reconcile.held_start.resuspension import UNFIT_PATIENCE
from tests.coordinator.api import BUDGET
from tests.coordinator.builders import node
from tests.coordinator.client import Outcome
from tests.coordinator.held import held, held_gang, is_suspended
from tests.coordinator.journeys.held_start.test_by_hand import go_on, is_asked
from tests.coordinator.journeys.held_start.worlds import (
    IN_TEAM,
    LOWER,
    phase_of,
    urgent,
    with_injected,
)
from tests.coordinator.journeys.preemption.worlds import evicted, head_of, workers_of
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.journeys.test_late_starts import READY, RULES, Unready
from tests.coordinator.stopping import condition, ending, go_until
from tests.coordinator.world import World, is_gated, key, name_of
from tests.examples import every_other


def running(replicas: int = 1) -> World:
    """The held gang low runs and has all of the room; an urgent one may stop it."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=replicas)
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert world.bound("low") == {"n1": 4}
    return world


def test_it_is_suspended_while_its_pods_end_and_their_room_is_theirs_until_they_are_gone() -> None:
    world = running()
    kubelets = world.kubelets
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(urgent("p", 3))
    world.settle(seconds=UNFIT_PATIENCE / 2)
    assert is_suspended(world.api, "low")
    assert (world.bound("low"), world.bound("p").total()) == ({"n1": 4}, 0)
    assert world.gated("low") == 0
    status = world.status("low")
    assert (status["phase"], phase_of(world, "low")) == ("Queued", "Waiting")
    assert "suspended again; 4 pods (" in status["message"]
    assert ", ...) left to be deleted" in status["message"]
    assert condition(world, "low", "Evicted")["message"].startswith("stopped for RayCluster team/p")

    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=10)
    assert (world.bound("p"), world.pods("low")) == ({"n1": 4}, [])
    assert "failures" not in world.status("low")["held"]


def test_its_pods_are_evicted_first_the_head_last() -> None:
    world = running()
    head, workers = head_of(world, "low"), workers_of(world, "low")
    world.create(urgent("p", 3))
    world.settle(seconds=UNFIT_PATIENCE / 2)
    assert evicted(world) == [*workers, head]
    kinds = (EvictPod, SuspendRayCluster)
    stops = [type(each) for each in world.leader.log if isinstance(each, kinds)]
    assert stops == [*[EvictPod] * 4, SuspendRayCluster]


def test_a_budget_that_forbids_the_end_of_one_pod_has_it_not_suspended() -> None:
    """The dry runs were accepted; the budget came after them, when the workers were evicted."""
    world = running()
    head = head_of(world, "low")
    world.create(urgent("p", 3))
    go_until(world, lambda: evicted(world))
    world.api.budgets[head] = BUDGET
    world.settle(seconds=60)
    assert not is_suspended(world.api, "low")
    assert head_of(world, "low") == head
    assert world.bound("low") == {"n1": 1}
    assert "an eviction is refused" in world.status("low")["message"]

    world.api.budgets.clear()
    world.settle(seconds=60)
    assert (is_suspended(world.api, "low"), world.bound("p")) == (True, {"n1": 4})


def test_a_budget_that_forbids_it_from_the_start_has_nothing_stopped() -> None:
    world = running()
    world.api.budgets[head_of(world, "low")] = BUDGET
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    assert (world.bound("low"), phase_of(world, "low")) == ({"n1": 4}, "Resumed")
    assert not evicted(world)


def test_one_that_is_late_is_suspended_again_at_once_and_starts_again() -> None:
    made = queue("team", cpu=4, timeouts=RULES)
    world = Unready(node("n1", cpu=100), made, slow="a")
    world.create(held(gang_in("team", "a", 3)))
    world.settle(seconds=READY + UNFIT_PATIENCE / 2)
    assert (is_suspended(world.api, "a"), world.pods("a")) == (True, [])
    assert world.status("a")["reason"] == "ReadyTimeout"
    world.slow.clear()
    world.settle(seconds=READY)
    assert world.status("a")["phase"] == "Running"


@pytest.mark.parametrize("outcome", [Outcome.UNSENT, Outcome.DONE, Outcome.HELD])
def test_another_leader_goes_on_with_its_suspension(outcome: Outcome) -> None:
    """The first one dies with it; where it is held up it arrives when the gang runs again."""
    world = running(replicas=2)
    first = world.leader
    world.create(urgent("p", 3))
    go_until(world, lambda: any(isinstance(each, SuspendRayCluster) for each in first.todo))
    assert (phase_of(world, "low"), ending(world, "low")) == ("Suspending", [])
    first.act_all_but(SuspendRayCluster)
    first.act(outcome=outcome)
    first.restart()
    world.elect(1)
    world.settle(seconds=UNFIT_PATIENCE / 2)
    assert (is_suspended(world.api, "low"), world.bound("p")) == (True, {"n1": 4})
    world.delete("rayclusters", "p")
    world.settle(seconds=30)
    assert world.bound("low") == {"n1": 4}
    if outcome is Outcome.HELD:
        assert first.client.let_go() is not None  # refused
    world.settle(seconds=30)
    assert world.bound("low") == {"n1": 4}


@pytest.mark.parametrize("steps", every_other(range(0, 40, 3)))
def test_a_leader_that_dies_at_any_step_leaves_no_half_of_it(steps: int) -> None:
    world = running(replicas=2)
    first = world.leader
    world.create(urgent("p", 3))
    for _ in range(steps):
        world.controllers()
        first.hear_all()
        first.tick()
        first.cycle()
        if first.todo:
            first.act()
    first.restart()
    world.elect(1)
    world.settle(seconds=60)
    assert (is_suspended(world.api, "low"), world.pods("low")) == (True, [])
    assert world.bound("p") == {"n1": 4}
    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.bound("low") == {"n1": 4}


def test_no_pod_is_nominated_that_does_not_exist() -> None:
    """Room is made for a held gang; kube-scheduler would keep that room for pods that exist."""
    team = queue("team", preemption=LOWER)
    world = World(node("n1", cpu=4), team, guard=Guard.NOMINATION)
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    kubelets = world.kubelets
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(held(urgent("p", 3)))
    world.settle(seconds=10)
    view = world.leader.state.known.views[key("p")]
    assert view.queueing.planned is not None
    assert not [each for each in world.leader.log if isinstance(each, NominatePod)]
    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 4}


def test_nominations_are_taken_back_before_it_is_suspended_again() -> None:
    """The suspension may be refused for long, and kube-scheduler keeps room meanwhile."""
    world = World(node("n1", cpu=6), guard=Guard.NOMINATION)
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    go_on(world, until=lambda: is_asked(world, SuspendRayCluster), but=(SuspendRayCluster,))
    pod = next(pod for pod in world.pods("a") if is_gated(pod))
    world.api.change(pod, lambda obj: obj["status"].update(nominatedNodeName="n1"), "status")
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.act_all_but(SuspendRayCluster)
    taken_back = [each for each in leader.log if isinstance(each, NominatePod)]
    assert [(each.pod.metadata.name, each.node) for each in taken_back] == [(name_of(pod), "")]
