"""Suspensions and their records: late, lost, of earlier releases, of other leaders."""

from typing import Any

import pytest

from coordinator.messages.actions import (
    SuspendRayCluster,
    WriteGangStatus,
)
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import opt
from tests.coordinator.held import cluster_of, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import (
    IN_TEAM,
    LOWER,
    crowded,
    phase_of,
    sent,
    set_suspend,
    urgent,
    with_injected,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.replica import Replica
from tests.coordinator.stopping import condition
from tests.coordinator.world import World


def test_a_new_leader_does_not_judge_an_older_raycluster_by_a_newer_phase() -> None:
    """Its watch of RayClusters is behind: it looks as if others had suspended a resumed one."""
    world = World(node("n1", cpu=4), replicas=2)
    world.create(held_gang("a", 3))
    world.replicas[1].hear_all()
    world._work(world.replicas[0])
    world._work(world.replicas[0])
    world._work(world.replicas[0])
    assert phase_of(world) == "Resumed"
    world.replicas[0].restart()
    follower = world.elect(1, hear="gangs")
    follower.act_all()
    follower.cycle()
    follower.act_all()
    assert phase_of(world) == "Resumed"
    assert "placement" in world.status("a")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_one_that_others_resumed_and_suspended_is_theirs_also_for_a_new_leader() -> None:
    """Muster's note stays on the RayCluster where others resume it."""
    world = crowded(held_gang("a", 3), replicas=2)
    set_suspend(world, False)
    world.settle(seconds=30)
    set_suspend(world, True)
    world.settle(seconds=30)
    assert cluster_of(world.api, "a")["metadata"]["annotations"][names.HELD] == "true"
    world.elect(1)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert is_suspended(world.api, "a")
    assert world.status("a")["reason"] == "Suspended"


def about_to_suspend() -> tuple[World, Replica]:
    """A gang whose pods came too large: its leader, the first of two, has its suspension to do."""
    world = World(node("n1", cpu=6), replicas=2)
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    first = world.replicas[0]
    for _ in range(60):
        if any(isinstance(each, SuspendRayCluster) for each in first.todo):
            return world, first
        world.api.now += 1.0
        world.controllers()
        first.hear_all()
        first.tick()
        first.cycle()
        first.act_all_but(SuspendRayCluster)
    raise AssertionError("its suspension was not asked for within a minute")


def test_a_suspension_that_arrives_late_does_not_end_a_gang_that_runs() -> None:
    world, first = about_to_suspend()
    first.act(outcome=Outcome.HELD)
    first.restart()
    world.elect(1)
    world.settle(seconds=30)
    assert phase_of(world) == "Waiting"
    world.create(node("n2", cpu=6))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    assert first.client.let_go() is not None  # refused
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Running"


def lost_gang(world: World, name: str) -> None:
    """Lose the Gang of a RayCluster while the coordinator is away, as a restored backup does."""
    world.leader.restart()
    world.delete("gangs", name)
    world.elect(1)


@pytest.mark.parametrize("opted_out", [False, True])
def test_one_that_was_suspended_again_is_known_without_its_gang(opted_out: bool) -> None:
    """Also where Muster is removed: no RayCluster stays suspended by it."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=2)
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert names.HELD not in cluster_of(world.api, "low")["metadata"]["annotations"]
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    assert is_suspended(world.api, "low")
    lost_gang(world, "low")
    world.settle(seconds=30)
    assert phase_of(world, "low") == "Waiting"
    if opted_out:
        opt(world, "false", "low")
        world.settle(seconds=30)
        assert not is_suspended(world.api, "low")
    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.bound("low") == {"n1": 4}


def sleeps_unless_resumed(world: World) -> None:
    """Have KubeRay make no pods of what it has put to sleep before the field is an explicit false.

    A field that is removed does not wake it.
    """
    made, kuberay, asleep = world._make_pod, world.kuberay, set[str]()

    def make_pod(cluster: Json, *more: Any) -> None:
        if cluster["metadata"]["name"] not in asleep:
            made(cluster, *more)

    def put_to_sleep() -> None:
        for cluster in world.api.all("rayclusters"):
            said = cluster["spec"].get("suspend")
            if said is not None:
                (asleep.add if said else asleep.discard)(cluster["metadata"]["name"])
        kuberay()

    world._make_pod = make_pod  # type: ignore[method-assign, assignment]
    world.kuberay = put_to_sleep  # type: ignore[method-assign]


def replaced_by_copy(world: World, name: str = "a") -> None:
    """Have a client put its own copy, without the field, in place of a RayCluster."""
    world.api.change(cluster_of(world.api, name), lambda obj: obj["spec"].pop("suspend"))


@pytest.mark.parametrize("opted_out", [False, True])
def test_one_that_is_replaced_by_a_copy_without_the_field_does_not_sleep_for_ever(
    opted_out: bool,
) -> None:
    world = World(node("n1", cpu=4))
    sleeps_unless_resumed(world)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    replaced_by_copy(world)
    world.settle(seconds=30)
    if opted_out:
        opt(world, "false")
        world.settle(seconds=30)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize("was_resumed", [False, True])
def test_a_record_of_an_earlier_release_does_not_make_it_a_persons(was_resumed: bool) -> None:
    """That release led for a moment, or the Gangs' definition is of it: the field is not there."""
    world = crowded(held_gang("a", 3), replicas=2)
    if was_resumed:
        set_suspend(world, False)
        world.settle(seconds=30)
        set_suspend(world, True)
        world.settle(seconds=30)
    world.leader.restart()
    gang = world.api.get(Key("gangs", TEAM, "a"))
    world.api.change(gang, lambda obj: obj["status"].pop("held", None), "status")
    world.elect(1)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert is_suspended(world.api, "a") is was_resumed


def dropping_held(world: World) -> None:
    """Have the API server keep nothing that the Gangs' definition of an earlier release lacks."""
    update = world.api._update

    def pruned(at: Key, old: Json, asked: Json, subresource: str) -> Json:
        status = {key: said for key, said in asked.get("status", {}).items() if key != "held"}
        return update(at, old, {**asked, "status": status} if status else asked, subresource)

    world.api._update = pruned  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("replicas", [1, 2])
def test_where_its_phase_cannot_be_written_it_is_not_held(replicas: int) -> None:
    world = World(node("n1", cpu=4), replicas=replicas)
    dropping_held(world)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert (is_suspended(world.api, "a"), world.gated("a")) == (False, 4)
    told = condition(world, "a", "StartHeld")
    assert (told["status"], told["reason"]) == ("False", "NotHeld")
    assert "their definition (CRD) is of an earlier release" in told["message"]
    writes = sent(world, WriteGangStatus)
    world.settle(seconds=300)
    assert sent(world, WriteGangStatus) - writes <= 5
    if replicas > 1:
        world.leader.resign()
        world.elect(1)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_where_its_phase_is_lost_once_it_was_resumed_it_is_not_suspended_again() -> None:
    """The definition was replaced by that of an earlier release while it started."""
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert phase_of(world) == "Resumed"
    dropping_held(world)
    world.settle(seconds=60)
    assert (sent(world, SuspendRayCluster), world.gated("a")) == (0, 4)
    assert world.status("a")["reason"] == "NeverFits"


def test_a_suspension_that_was_only_decided_is_dropped_where_its_pods_run_by_now() -> None:
    """The coordinator was away, and the gates were taken off by hand."""
    world, first = about_to_suspend()
    assert phase_of(world) == "Suspending"
    first.restart()
    world.create(node("n2", cpu=6))
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["spec"].pop("schedulingGates"))
    world.controllers()
    assert sum(world.bound("a").values()) == 4
    ran = {pod["metadata"]["uid"] for pod in world.pods("a")}
    world.elect(1)
    world.settle(seconds=30)
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == ran


def test_a_resumption_that_changes_nothing_gives_its_room_to_others() -> None:
    """A policy of others keeps the field as it is; the API server says that all is well."""
    world = World(node("n1", cpu=4))
    update = world.api._update

    def kept(at: Key, old: Json, asked: Json, subresource: str) -> Json:
        if at.plural == "rayclusters" and at.name == "a":
            asked = {**asked, "spec": {**asked["spec"], "suspend": True}}
        return update(at, old, asked, subresource)

    world.api._update = kept  # type: ignore[method-assign, assignment]
    world.create(held_gang("a", 3))
    world.settle(seconds=60)
    world.create(gang_of("b", 3))
    world.settle(seconds=300)
    assert world.bound("b") == {"n1": 4}
    said = "it could not be resumed: the API server took it and changed nothing"
    assert said in world.status("a")["message"]
    world.delete("rayclusters", "b")
    world.api._update = update  # type: ignore[method-assign]
    world.settle(seconds=120)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize("others", [{}, {"example.com/owner": "me"}])
def test_the_note_of_a_suspension_leaves_other_annotations_alone(others: Json) -> None:
    """Of annotations of others it is only known that there are some."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    low = cluster_of(world.api, "low")
    world.api.change(low, lambda obj: obj["metadata"].update(annotations=others))
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    after = cluster_of(world.api, "low")
    assert after["spec"]["suspend"] is True
    assert after["metadata"]["annotations"] == {**others, names.HELD: "true"}
