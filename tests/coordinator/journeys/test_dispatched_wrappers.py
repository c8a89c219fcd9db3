"""AppWrappers that other clusters run: each is a gang here, and nothing of it is created."""

from typing import Any

import msgspec
import pytest

from kube.objects import names
from kube.objects.clusters.dispatch import is_its_turn
from kube.objects.gang import GangStatus
from tests.coordinator.app_wrappers import app_wrapper, had_objects, job, wrapper_of
from tests.coordinator.builders import TEAM, Json, node
from tests.coordinator.dispatches import closed, dispatch, far, manager, runs, said, used
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World

GANG = "appwrapper.a"


def wrapper(name: str = "a", *, noted: bool = True, where: str = "far", **spec: Any) -> Json:
    made = app_wrapper(name, job("work", 2), **spec)
    made["metadata"]["labels"] |= {names.QUEUE: where}
    made["metadata"]["annotations"] |= {names.DISPATCHED: "true"} if noted else {}
    return made


def its_turn(world: World, name: str = GANG) -> bool:
    return is_its_turn(msgspec.convert(world.status(name), GangStatus))


@pytest.mark.parametrize(
    ("version", "gang"),
    [(names.CODEFLARE_V1BETA2, GANG), (names.MCAD_V1BETA1, "appwrapper-mcad.a")],
)
def test_it_is_a_gang_that_takes_quota_and_runs_where_the_dispatcher_says(
    version: str, gang: str
) -> None:
    world = manager(wrapper() | {"apiVersion": version})
    (owner,) = world.gang(gang)["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == (version, "AppWrapper", "a")
    assert said(world, gang)[0] == "QuotaReserved"
    assert its_turn(world, gang)
    assert used(world) == {"cpu": "2000m"}
    runs(world, gang)
    assert said(world, gang) == ("Running", "Running")
    assert not had_objects(world.api, "a")


def phase_of_copy(world: World, phase: str) -> None:
    """Have the dispatcher say how its copy is."""
    status = {"phase": phase, "transitionCount": 3}
    world.api.change(wrapper_of(world.api, "a"), lambda obj: obj.update(status=status))
    world.settle(seconds=5)


@pytest.mark.parametrize("end", ["JobComplete", "JobFailed", "JobGone"])
def test_one_that_ended_gives_its_quota_back_and_is_never_sent_again(end: str) -> None:
    world = manager(wrapper(), replicas=2)
    runs(world, GANG)
    phase_of_copy(world, "Succeeded")
    assert used(world) == {"cpu": "2000m"}  # a pod may be left
    dispatch(world, GANG, phase="Closed", end=end, message=f"east: {end}: it has ended")
    assert said(world, GANG) == ("Finished", "AppWrapperEnded")
    assert end in world.status(GANG)["message"]
    assert used(world) in ({}, {"cpu": "0m"})
    world.settle(seconds=100)
    world.elect(1)
    world.settle(seconds=100)
    assert not its_turn(world)
    assert said(world, GANG)[0] == "Finished"


def test_one_whose_status_says_that_it_ended_is_not_sent_though_its_gang_was_deleted() -> None:
    world = manager(wrapper())
    runs(world, GANG)
    phase_of_copy(world, "Failed")
    world.delete("gangs", GANG)
    world.settle(seconds=100)
    assert not its_turn(world)


def test_one_that_runs_keeps_its_quota_whatever_its_phase() -> None:
    world = manager(wrapper())
    runs(world, GANG)
    for phase in ("Resuming", "Running", "Resetting", "Suspended", "Running"):
        phase_of_copy(world, phase)
        assert used(world) == {"cpu": "2000m"}, phase
    assert not had_objects(world.api, "a")


def test_one_that_its_member_gave_back_waits_for_its_turn() -> None:
    world = manager(wrapper())
    runs(world, GANG)
    closed(world, GANG, "east: Stopped: preempted by another")
    assert its_turn(world)
    assert "it is back from cluster east" in world.status(GANG)["message"]


def test_one_that_is_suspended_while_it_waits_has_no_quota() -> None:
    world = manager(wrapper(suspend=True))
    assert said(world, GANG)[1] == "Suspended"
    assert used(world) in ({}, {"cpu": "0m"})


def test_its_priority_counts() -> None:
    world = World(far(2), adding=[TEAM])
    world.create(wrapper(), wrapper("b", priority=5))
    world.settle(seconds=5)
    assert its_turn(world, "appwrapper.b")
    assert not its_turn(world)


def test_in_another_queue_or_without_its_note_it_says_why_it_waits() -> None:
    world = manager(wrapper(noted=False))
    assert said(world, GANG)[1] == "Misconfigured"
    assert (
        "has clusters, and annotation muster.dev/dispatched was not set"
        in (world.status(GANG)["message"])
    )
    world = World(node("n1", cpu=4), queue("near"))
    world.create(wrapper(where="near"))
    world.settle(seconds=10)
    assert said(world, GANG)[1] == "Misconfigured"
    assert "annotation muster.dev/dispatched is true" in world.status(GANG)["message"]
    assert not had_objects(world.api, "a")


def test_what_cannot_be_foreseen_or_seen_says_why() -> None:
    claims = {"spec": {"serviceName": "s", "volumeClaimTemplates": [{}], "template": {}}}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, **claims}
    unknown = {"apiVersion": "example.com/v1", "kind": "Train", "metadata": {"name": "t"}}
    declared = [{"generictemplate": unknown, "custompodresources": [{"replicas": 1}]}]
    for spec, message in (
        ({"components": 7}, "spec.components"),
        ({"components": [{"template": stateful}]}, "StatefulSet"),
        ({"resources": {"GenericItems": declared}}, "of others none knows when they ended"),
    ):
        world = manager(wrapper() | {"spec": spec})
        assert message in world.status(GANG)["message"]
        assert not its_turn(world)
