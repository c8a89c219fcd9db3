"""When items are created, and deleted again."""

import copy
from typing import Any

import pytest

from kube.objects import names
from tests.wrapper.journeys.worlds import running
from tests.wrapper.world import World, codeflare, config_map, job, mcad, with_wrapper


def test_nothing_is_created_until_the_gang_has_its_place() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.gang("Waiting", placed=False, reason="InsufficientResources", message="0 of 1 fit")
    world.settle(60)
    assert world.api.created == []
    assert world.phase == "Suspended"
    assert (world.status["reason"], world.status["message"]) == (
        "InsufficientResources",
        "0 of 1 fit",
    )
    world.place()
    world.settle(2)
    assert world.api.created == [("configmaps", "settings"), ("jobs", "work")]
    assert world.api.phases == ["Suspended", "Resuming", "Running"]


def test_one_that_starts_at_once_has_no_status_written_before() -> None:
    world = World()
    world.api.put("appwrappers", codeflare(job()))
    world.settle(0.5)
    world.place()
    world.settle(1)
    assert world.api.phases == ["Resuming", "Running"]


def test_one_that_has_nothing_to_tell_says_so_after_a_moment() -> None:
    world = World()
    world.api.put("appwrappers", codeflare(job()))
    world.settle(0.9)
    assert world.api.phases == []
    world.settle(0.2)
    assert world.api.phases == ["Suspended"]


def test_why_it_waits_is_told_at_once_the_first_time_and_later_with_the_others() -> None:
    world = with_wrapper(mcad(job()))
    world.settle(1)
    assert (world.phase, world.status.get("reason", "")) == ("Suspended", "")
    world.gang("Waiting", placed=False, reason="InsufficientResources", message="0 of 1 fit")
    world.settle(1)
    assert world.status["message"] == "0 of 1 fit"
    assert (world.status["state"], world.status["queuejobstate"]) == ("Pending", "Backoff")
    world.gang("Waiting", placed=False, reason="InsufficientResources", message="0 of 1 fit now")
    world.settle(10)
    assert world.status["message"] == "0 of 1 fit"
    world.settle(30)
    assert world.status["message"] == "0 of 1 fit now"


@pytest.mark.parametrize("said", [{"placed": True}, {"placed": False, "reason": "NotRequired"}])
def test_what_an_earlier_spec_was_promised_starts_no_later_one(said: dict[str, Any]) -> None:
    world = with_wrapper(codeflare(job("small")))
    world.gang("Waiting", **said)
    meta = {**world.api.objects["appwrappers", "aw"]["metadata"], "generation": 2}
    more = codeflare(config_map(), job("large", parallelism=1000, completions=1000))
    world.api.change("appwrappers", "aw", spec=more["spec"], metadata=meta)
    world.settle(60)
    assert (world.phase, world.api.created) == ("Suspended", [])
    world.place()
    world.settle(5)
    assert world.phase == "Running"


def test_what_is_created_is_labelled_and_owned() -> None:
    world = running(codeflare(config_map(), job()))
    uid = world.api.objects["appwrappers", "aw"]["metadata"]["uid"]
    for plural, name in world.api.created:
        meta = world.api.objects[plural, name]["metadata"]
        assert meta["ownerReferences"][0]["uid"] == uid
        assert meta["labels"][names.APP_WRAPPER_UID] == uid


def test_one_without_pods_needs_no_place() -> None:
    world = with_wrapper(codeflare(config_map()))
    world.gang("Waiting", placed=False, reason="NotRequired")
    world.settle(2)
    assert (world.phase, world.items) == ("Running", ["settings"])


@pytest.mark.parametrize("uid", ["another", ""])
def test_a_gang_of_an_earlier_uid_starts_nothing(uid: str) -> None:
    world = with_wrapper(codeflare(job()))
    world.place()
    gang = world.api.objects["gangs", "appwrapper.aw"]
    world.api.news.clear()
    world.api.put("gangs", {**gang, "spec": {"rayClusterUid": uid}})
    world.settle(60)
    assert world.api.created == []


def test_a_placement_that_was_given_back_since_the_watch_told_of_it_starts_nothing() -> None:
    world = with_wrapper(codeflare(job()))
    world.place()
    stale = world.api.news.copy()
    world.gang("Waiting", placed=False)
    world.api.news = stale
    world.settle(60)
    assert world.api.created == []
    assert world.phase == "Suspended"


def test_the_gang_that_gives_its_place_back_has_all_items_deleted_first() -> None:
    world = running(codeflare(config_map(), job()))
    world.stop()
    world.settle(5)
    assert world.phase == "Suspended"
    assert world.items == []
    assert world.api.deleted == [("jobs", "work"), ("configmaps", "settings")]
    assert world.api.phases[-2:] == ["Suspending", "Suspended"]
    assert world.status["reason"] == "Preempted"
    world.place()
    world.settle(5)
    assert world.phase == "Running"
    assert world.api.created[2:] == world.api.created[:2]


def test_it_is_not_suspended_while_a_pod_of_it_is_left() -> None:
    world = running(codeflare(job()))
    meta = world.api.objects["pods", "work-0"]["metadata"]
    stays = {"name": "stays", "labels": meta["labels"]}
    world.api.put("pods", {"metadata": stays, "status": {"phase": "Running"}})
    world.stop()
    world.settle(60)
    assert (world.phase, world.items) == ("Suspending", [])
    world.api.remove("pods", "stays")
    world.settle(5)
    assert world.phase == "Suspended"


def test_a_user_suspends_and_resumes_it() -> None:
    world = running(codeflare(job()))
    before = copy.deepcopy(world.api.objects["appwrappers", "aw"])
    spec = {**before["spec"], "suspend": True}
    meta = {**before["metadata"], "generation": 2}
    world.api.change("appwrappers", "aw", spec=spec, metadata=meta)
    world.settle(5)
    assert (world.phase, world.items) == ("Suspended", [])
    world.place_each_time()
    world.settle(60)
    assert world.phase == "Suspended"
    meta = {**world.api.objects["appwrappers", "aw"]["metadata"], "generation": 3}
    world.api.change("appwrappers", "aw", spec=before["spec"], metadata=meta)
    world.settle(5)
    assert world.phase == "Running"
