"""AppWrappers whose pods succeed, and those that are over."""

import pytest

from tests.coordinator.app_wrappers import (
    app_wrapper,
    become,
    job,
    nodes_of,
    phase,
    succeed,
    wrapper_of,
)
from tests.coordinator.builders import (
    gang_of,
    node,
)
from tests.coordinator.journeys.app_wrappers.worlds import gang_status, held_phase, running
from tests.coordinator.world import World


def test_pods_that_succeeded_hold_nothing_and_ask_for_nothing() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    world.create(gang_of("b", 1))
    world.settle(seconds=30)
    assert world.status("b")["reason"] == "InsufficientResources"
    succeed(world.api, "a", 2)
    world.settle(seconds=10)
    assert world.bound("b") == {"n1": 2}
    assert "kept" not in str(gang_status(world)["podSets"])
    succeed(world.api, "a", 2)
    world.settle(seconds=10)
    world.create(gang_of("c", 1))
    world.settle(seconds=10)
    assert world.bound("c") == {"n1": 2}


def test_pods_of_a_kind_that_is_not_known_have_room_until_they_may_exist() -> None:
    world = World(node("n1", cpu=4))
    wrapper = app_wrapper("a")
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    sizes = [{"replicas": 3, "requests": {"cpu": "1"}}]
    item = {"generictemplate": {**kind}, "custompodresources": sizes}
    wrapper["spec"] = {"resources": {"GenericItems": [item]}}
    world.wrapper = False
    world.create(wrapper)
    world.settle(seconds=30)
    assert gang_status(world)["placement"]
    world.wrapper = True
    world.settle(seconds=400)
    assert phase(world.api, "a") == "Running"
    assert "placement" not in gang_status(world)


def test_the_next_pods_of_a_job_take_the_slots_of_those_that_succeeded() -> None:
    world = running(app_wrapper("a", job("work", 4, completions=6)))
    world.create(gang_of("b", 1))
    succeed(world.api, "a", 2)
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "a")) == 6
    assert world.status("b")["reason"] == "InsufficientResources"


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_one_that_is_over_asks_for_nothing(end: str) -> None:
    world = running(app_wrapper("a", job("work", 4)))
    succeed(world.api, "a")
    become(world.api, wrapper_of(world.api, "a"), end)
    world.settle(seconds=10)
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Finished", "AppWrapperEnded")
    assert "placement" not in status
    assert f"the AppWrapper is {end}" in status["message"]
    assert held_phase(world) == ""


def test_one_that_is_over_counts_nowhere_and_a_new_leader_mends_what_an_older_release_wrote() -> (
    None
):
    world = running(app_wrapper("a", job("work", 4)))
    succeed(world.api, "a")
    become(world.api, wrapper_of(world.api, "a"), "Succeeded")
    world.settle(seconds=10)
    old = {"phase": "Gathering", "reason": "Suspended"}
    world.api.change(world.gang("appwrapper.a"), lambda obj: obj["status"].update(old))
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=10)
    assert gang_status(world)["phase"] == "Finished"
    counts = world.leader.state.known.term.counts
    assert (dict(counts.gangs), dict(counts.without_room)) == ({}, {})


def test_one_that_is_over_is_not_misconfigured() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    succeed(world.api, "a")
    become(world.api, wrapper_of(world.api, "a"), "Succeeded")
    labels = {"muster.dev/queue": "none-such"}
    world.api.change(wrapper_of(world.api, "a"), lambda obj: obj["metadata"].update(labels=labels))
    world.settle(seconds=10)
    assert gang_status(world)["reason"] == "AppWrapperEnded"
