"""Whatever a user does to a held gang, and whenever: it runs whole, or nothing of it is left."""

from collections.abc import Callable

import msgspec
import pytest

from coordinator.gang.held_start.learned_pods import LEARNED_FOR
from coordinator.messages.actions import (
    ReleasePod,
    ResumeRayCluster,
    SuspendRayCluster,
    WriteGangStatus,
)
from tests.coordinator.builders import gang_of, node
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import opt
from tests.coordinator.held import cluster_of, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import phase_of, quota, with_injected
from tests.coordinator.world import World

CPUS = 4


def go_on(world: World, *, until: Callable[[], bool], but: tuple[type, ...] = ()) -> None:
    """Have the leader and KubeRay work, without these actions, until something has happened."""
    leader = world.leader
    for _ in range(100):
        if until():
            return
        world.kuberay()
        world.api.now += 1.0
        leader.hear_all()
        leader.tick()
        leader.cycle()
        leader.act_all_but(*but)
    raise AssertionError("it does not happen")


def new() -> World:
    """No leader has looked at it."""
    world = World(node("n1", cpu=CPUS), replicas=2)
    world.create(held_gang("a", 3))
    return world


def waiting() -> World:
    """Gang b has the room."""
    world = World(node("n1", cpu=CPUS), replicas=2)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert phase_of(world) == "Waiting"
    return world


def placed() -> World:
    """It has its placement, and the resumption is not sent yet."""
    world = new()
    go_on(world, until=lambda: is_asked(world, ResumeRayCluster), but=(ResumeRayCluster,))
    assert "placement" in world.status("a")
    return world


def resuming() -> World:
    """The resumption is on its way, and arrives when the user has done the deed."""
    world = placed()
    world.leader.act(outcome=Outcome.HELD)
    return world


def resumed() -> World:
    """No pod exists yet."""
    world = placed()
    world.leader.act()
    return world


def coming() -> World:
    """Two of four pods have come."""
    world = resumed()
    world.kuberay()
    world.leader.hear("rayclusters")
    world.leader.hear("pods", 2)
    world.leader.act_all()
    return world


def gated() -> World:
    """All pods exist, and the releases are not sent yet."""
    world = resumed()
    go_on(world, until=lambda: is_asked(world, ReleasePod), but=(ReleasePod,))
    assert world.gated("a") == 4
    return world


def partly_released() -> World:
    """The head is released."""
    world = gated()
    at = next(i for i, each in enumerate(world.leader.todo) if isinstance(each, ReleasePod))
    world.leader.act(at)
    return world


def running() -> World:
    """All of it runs."""
    world = new()
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    return world


def suspending() -> World:
    """It is to be suspended again, for its pods came too large, and that is not sent yet."""
    world = new()
    made = world._make_pod
    with_injected(world, 1)
    go_on(world, until=lambda: is_asked(world, SuspendRayCluster), but=(SuspendRayCluster,))
    assert phase_of(world) == "Suspending"
    world._make_pod = made  # type: ignore[method-assign]
    return world


def suspended_again() -> World:
    """The same, and it is suspended; its pods are not gone yet."""
    world = suspending()
    world.leader.act_all_but(WriteGangStatus)
    assert is_suspended(world.api, "a")
    return world


def is_asked(world: World, kind: type) -> bool:
    return any(isinstance(each, kind) for each in world.leader.todo)


PHASES = (
    new,
    waiting,
    placed,
    resuming,
    resumed,
    coming,
    gated,
    partly_released,
    running,
    suspending,
    suspended_again,
)
CASES = [
    pytest.param(phase, led_anew, marks=pytest.mark.long if (number + led_anew) % 2 else ())
    for number, phase in enumerate(PHASES)
    for led_anew in (False, True)
]
"""Each phase with and without a change of the leader, of which one is for `make test-long`."""
Phase = Callable[[], World]


def settle(world: World, change_leader: bool) -> None:
    """Let what is on its way arrive, and all patience pass; then there is room."""
    if world.leader.client.held:
        world.leader.client.let_go()
    if change_leader:
        world.leader.restart()
        world.elect(1)
    world.settle(seconds=60)
    if any(each["metadata"]["name"] == "b" for each in world.api.all("rayclusters")):
        world.delete("rayclusters", "b")
    world.settle(seconds=1200 + LEARNED_FOR)


@pytest.mark.parametrize(("phase", "change_leader"), CASES)
def test_one_that_is_deleted_keeps_nothing(phase: Phase, change_leader: bool) -> None:
    world = phase()
    world.delete("rayclusters", "a")
    settle(world, change_leader)
    assert not world.pods("a")
    assert not list(world.api.all("gangs"))
    world.create(gang_of("c", 3))
    world.settle(seconds=30)
    assert world.bound("c") == {"n1": 4}


@pytest.mark.parametrize(("phase", "change_leader"), CASES)
def test_one_that_is_edited_runs_as_it_says_then(phase: Phase, change_leader: bool) -> None:
    world = phase()
    groups = msgspec.to_builtins(cluster_of(world.api, "a")["spec"]["workerGroupSpecs"])
    groups[0]["replicas"] = 1
    world.edit("a", workerGroupSpecs=groups)
    settle(world, change_leader)
    assert world.bound("a") == {"n1": 2}
    assert (world.status("a")["phase"], is_suspended(world.api, "a")) == ("Running", False)


@pytest.mark.parametrize(("phase", "change_leader"), CASES)
def test_one_that_is_resumed_by_hand_runs_whole(phase: Phase, change_leader: bool) -> None:
    world = phase()
    world.edit("a", suspend=False)
    settle(world, change_leader)
    assert world.bound("a") == {"n1": 4}
    assert (world.status("a")["phase"], is_suspended(world.api, "a")) == ("Running", False)


@pytest.mark.parametrize(("phase", "change_leader"), CASES)
def test_one_that_is_suspended_by_hand_has_no_pods_or_runs_whole(
    phase: Phase, change_leader: bool
) -> None:
    """Where Muster holds it that changes no field; once its pods are to come it is the user's."""
    world = phase()
    world.edit("a", suspend=True)
    settle(world, change_leader)
    theirs = is_suspended(world.api, "a")
    assert len(world.pods("a")) == (0 if theirs else 4)
    assert world.bound("a").total() == (0 if theirs else 4)
    said = ("Suspended", "") if theirs else ("Running", "Resumed")
    assert (world.status("a")["reason"], phase_of(world)) == said
    if phase in (gated, partly_released, running):
        assert theirs
    world.edit("a", suspend=False)
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize(("phase", "change_leader"), CASES)
def test_one_that_is_opted_out_never_sleeps(phase: Phase, change_leader: bool) -> None:
    world = phase()
    opt(world, "false")
    settle(world, change_leader)
    assert not is_suspended(world.api, "a")
    assert (len(world.pods("a")), world.gated("a")) == (4, 0)
    assert not list(world.api.all("gangs"))


@pytest.mark.parametrize("phase", [placed, resuming, resumed, coming, gated, partly_released])
def test_a_node_that_is_lost_before_the_release_has_it_placed_elsewhere(phase: Phase) -> None:
    world = phase()
    world.delete("nodes", "n1")
    world.create(node("n2", cpu=CPUS))
    settle(world, change_leader=False)
    assert world.bound("a") == {"n2": 4}


@pytest.mark.parametrize("phase", [placed, resuming, resumed])
def test_a_quota_that_is_lost_before_the_pods_come_has_it_wait_and_nothing_is_left(
    phase: Phase,
) -> None:
    """It was promised a quota that is lowered now: KubeRay cannot create what is beyond it."""
    world = phase()
    world.create(quota(2))
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    said = {"message": 'pods "a-workers" is forbidden: exceeded quota: few'}
    with world.kuberay_refuses({**failed, "reason": "FailedCreateWorkerPod", **said}):
        settle(world, change_leader=False)
        assert (is_suspended(world.api, "a"), world.pods("a")) == (True, [])
        status = world.status("a")
        assert status["reason"] == "PodsRefused"
        assert "ResourceQuota few: the gang needs 4 of pods; 2 of 2 are left" in status["message"]
        assert "placement" not in status
    raised = next(world.api.all("resourcequotas"))
    world.api.change(raised, lambda obj: obj.update(quota(4) | {"metadata": obj["metadata"]}))
    world.settle(seconds=1200)
    assert world.bound("a") == {"n1": 4}
