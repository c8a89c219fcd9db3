"""Bad specs, those of others, and what differs."""

import pytest

from tests.wrapper.fake_api import unanswered
from tests.wrapper.journeys.worlds import noticed
from tests.wrapper.world import codeflare, config_map, job, mcad, with_wrapper


def test_those_of_other_controllers_are_left_alone() -> None:
    world = with_wrapper(codeflare(job(), managedBy="kueue.x-k8s.io/multikueue"))
    world.place()
    world.settle(60)
    assert (world.status, world.api.created) == ({}, [])


def test_those_without_a_creator_are_left_alone() -> None:
    wrapper = codeflare(job())
    wrapper["metadata"]["annotations"] = {}
    world = with_wrapper(wrapper)
    world.place()
    world.settle(60)
    assert (world.status, world.api.created) == ({}, [])


def test_a_bad_spec_is_said_and_nothing_is_created() -> None:
    world = with_wrapper(codeflare({"apiVersion": "v1", "kind": "ConfigMap"}))
    world.place()
    world.settle(60)
    assert world.api.created == []
    assert world.status["reason"] == "Misconfigured"
    assert "template.metadata.name" in world.status["message"]


def test_one_that_is_too_large_is_said_and_nothing_is_created() -> None:
    """10 MB are more than an API server takes; what it does not refuse is refused here."""
    parts = [{**config_map(f"part-{n}"), "data": {"a": "x" * 1_000_000}} for n in range(10)]
    world = with_wrapper(codeflare(*parts, job()))
    world.place()
    world.settle(60)
    assert (world.status["reason"], world.api.created) == ("Misconfigured", [])
    assert "allowed: at most 1048576 bytes" in world.status["message"]


def test_an_item_that_was_edited_before_it_was_created_is_recorded_first() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = unanswered()
    world.place()
    world.settle(2)
    edited = codeflare(config_map(), config_map("more"))
    meta = {**world.api.objects["appwrappers", "aw"]["metadata"], "generation": 2}
    world.api.change("appwrappers", "aw", spec=edited["spec"], metadata=meta)
    world.settle(20)
    assert world.phase == "Running"
    assert {each["name"] for each in world.status["componentStatus"]} == {
        "settings",
        "more",
        "work",
    }


# --- what a user should know besides ----------------------------------------------------------


def declaring(cpu: str) -> dict[str, object]:
    """An AppWrapper of which the user says how large its pod is; it asks for one CPU."""
    wrapper = mcad(job())
    (entry,) = wrapper["spec"]["resources"]["GenericItems"]
    entry["custompodresources"] = [{"replicas": 1, "requests": {"cpu": cpu}}]
    return wrapper


def test_sizes_that_differ_are_told_beside_mcads_words_until_they_are_the_same() -> None:
    world = with_wrapper(declaring("3"))
    assert noticed(world)["status"] == "True"
    assert "declare 3000m of cpu for each pod of work" in noticed(world)["message"]
    assert world.status["conditions"][-1]["type"] == "Queueing"
    since = noticed(world)["lastTransitionTime"]
    world.place()
    world.settle(60)
    assert (world.phase, noticed(world)["lastTransitionTime"]) == ("Running", since)

    world.api.change("appwrappers", "aw", spec=declaring("1")["spec"])
    world.settle(60)
    assert (noticed(world)["status"], noticed(world)["reason"]) == ("False", "NothingNoticed")


def test_without_anything_to_be_noticed_nothing_is_said() -> None:
    assert noticed(with_wrapper(declaring("1"))) == {}


@pytest.mark.parametrize("phase", ["Paused", "Terminating"])
def test_a_phase_that_is_none_of_ours_is_left_alone_and_stops_no_other(phase: str) -> None:
    world = with_wrapper(codeflare(job()))
    world.api.change("appwrappers", "aw", status={**world.status, "phase": phase})
    world.settle(60)
    assert (world.phase, world.api.created) == (phase, [])
    world.api.put("appwrappers", codeflare(config_map(), name="other"))
    world.settle(5)
    world.place("other")
    world.settle(5)
    assert world.api.created == [("configmaps", "settings")]
