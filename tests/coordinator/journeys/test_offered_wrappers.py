"""GangOffers for AppWrappers: what is accepted starts in its room, and its end goes up."""

from typing import Any

import pytest

from kube.objects import names
from tests.coordinator.app_wrappers import (
    app_wrapper,
    become,
    had_objects,
    job,
    nodes_of,
    phase,
    wrapper_of,
)
from tests.coordinator.builders import Json, gang_of, node
from tests.coordinator.journeys.app_wrappers.worlds import HIGH, IN_QUEUE, LOWER, labelled
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.journeys.test_lost_manager import renew
from tests.coordinator.offers import accept, answer, created_for, lease, member, offer
from tests.coordinator.world import World

USUAL = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    for key in ("not-ready", "unreachable")
]
"""Tolerations that a real API server would add."""


def wrapper(pods: int = 4, **spec: Any) -> Json:
    return app_wrapper("a", job("work", pods, tolerations=USUAL), **spec)


def wrappers(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.api.all("appwrappers")]


def started(made: Json, replicas: int = 1) -> World:
    """A member on which an offer was accepted, and nothing was created yet."""
    world = member(offer("a-1", made), replicas=replicas)
    assert answer(world)["phase"] == "Offered", answer(world)
    accept(world)
    world.settle(seconds=1)
    assert answer(world)["phase"] == "Started"
    return world


def runs(replicas: int = 1) -> World:
    """A member on which the AppWrapper runs that was created for an offer."""
    world = started(wrapper(), replicas)
    world.create(created_for(world, wrapper()))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    return world


def ends(world: World, how: str) -> None:
    """Have the pods end, and the program `wrapper` write that."""
    for pod in list(world.api.all("pods")):
        world.api.change(pod, lambda obj: obj["status"].update(phase="Succeeded"))
    become(world.api, wrapper_of(world.api, "a"), how)
    world.settle(seconds=10)


def said(world: World) -> tuple[str, str]:
    return answer(world)["phase"], answer(world).get("reason", "")


def test_an_accepted_appwrapper_takes_the_room_over() -> None:
    world = started(wrapper())
    assert not had_objects(world.api, "a")
    world.create(gang_of("b", 3))  # which would fit but for the offer
    world.settle(seconds=1)
    world.create(created_for(world, wrapper()))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert not any(pod["spec"].get("nodeName") for pod in world.pods("b"))
    assert answer(world)["objectUid"] == wrapper_of(world.api, "a")["metadata"]["uid"]
    assert said(world) == ("Started", "")


def test_of_mcads_generation_too() -> None:
    items = [{"generictemplate": job("work", 4)}]
    made = app_wrapper("a")
    made["spec"] = {"resources": {"GenericItems": items}}
    world = started(made)
    world.create(created_for(world, made))
    world.settle(seconds=30)
    assert phase(world.api, "a") == "Running"


def test_the_room_of_one_group_is_not_that_of_the_other() -> None:
    made = wrapper() | {"apiVersion": names.MCAD_V1BETA1}
    world = started(made)
    world.create(created_for(world, wrapper()))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    assert said(world)[0] == "Started"


@pytest.mark.parametrize(("how", "reason"), [("Succeeded", "JobComplete"), ("Failed", "JobFailed")])
def test_its_end_closes_the_offer_and_it_stays_until_it_is_withdrawn(how: str, reason: str) -> None:
    world = runs()
    ends(world, how)
    assert said(world) == ("Closed", reason)
    world.settle(seconds=100)
    assert wrappers(world) == ["a"]
    world.delete("gangoffers", "a-1")
    world.settle(seconds=10)
    assert not wrappers(world)
    assert not list(world.api.all("gangoffers"))


def test_one_that_is_over_is_not_closed_while_a_pod_of_it_runs() -> None:
    world = runs()
    become(world.api, wrapper_of(world.api, "a"), "Failed")
    world.settle(seconds=60)
    assert said(world) == ("Started", "JobFailed")
    world.delete("jobs", "work")  # by `wrapper`, and its pods by the garbage collector
    world.settle(seconds=10)
    assert said(world) == ("Closed", "JobFailed")


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_that_is_deleted_by_hand_is_not_sent_again(replicas: int) -> None:
    world = runs(replicas)
    if replicas > 1:
        world.leader.resign()
    world.delete("appwrappers", "a")
    if replicas > 1:
        world.elect(1)
    world.settle(seconds=100)
    assert said(world) == ("Closed", "JobGone")


def test_a_withdrawn_one_goes_with_its_pods_before_its_offer_goes() -> None:
    world = runs()
    world.delete("gangoffers", "a-1")
    world.settle(seconds=30)
    assert not wrappers(world)
    assert not list(world.api.all("gangoffers"))
    assert not world.pods()


def test_a_start_in_vain_is_repeated_on_the_member() -> None:
    world = runs()
    become(world.api, wrapper_of(world.api, "a"), "Resetting")
    world.settle(seconds=60)
    assert phase(world.api, "a") == "Running"
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert said(world) == ("Started", "")


def test_one_that_is_preempted_after_its_start_is_closed_and_not_started_again() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), HIGH)
    made = labelled(wrapper(), **IN_QUEUE)
    world.create(offer("a-1", made))
    world.settle(seconds=5)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, made))
    world.settle(seconds=30)
    urgent = gang_in("team", "b", 3)
    for each in (urgent["spec"]["headGroupSpec"], *urgent["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {"priorityClassName": "high", "priority": 7}
    world.create(urgent)
    world.settle(seconds=60)
    assert said(world) == ("Closed", "Stopped")
    assert "team/b" in answer(world)["message"]
    assert not wrappers(world)
    assert [pod["spec"].get("nodeName") for pod in world.pods("b")] == ["n1"] * 4


def test_a_name_that_an_appwrapper_has_is_taken() -> None:
    world = member(wrapper(1), cpu=8)
    world.create(offer("a-1", wrapper()))
    world.settle(seconds=5)
    assert said(world) == ("Closed", "NameTaken")
    assert wrappers(world) == ["a"]


def test_what_is_wrong_in_it_or_cannot_be_seen_is_not_offered() -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Train", "metadata": {"name": "t"}}
    declared = [{"generictemplate": unknown, "custompodresources": [{"replicas": 1}]}]
    for spec, message in (
        ({"components": 7}, "spec.template.spec.components"),
        ({"resources": {"GenericItems": declared}}, "of others none knows when they ended"),
    ):
        made = wrapper() | {"spec": spec}
        world = member(offer("a-1", made))
        assert answer(world)["phase"] == "Asked"
        assert message in answer(world)["message"]


def test_one_whose_manager_is_lost_ends_with_its_pods() -> None:
    world = member(lease(1), offer("a-1", wrapper(), lostAfterSeconds=300))
    renew(world)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, wrapper()))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    world.settle(seconds=240)
    assert said(world) == ("Closed", "ManagerLost")
    assert not wrappers(world)
    assert not list(world.api.all("pods"))
