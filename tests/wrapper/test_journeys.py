"""What becomes of an AppWrapper from its creation to its end, in simulated time."""

import copy
from typing import Any

import pytest

from appwrapper.spec.retries import PREFIX
from kube.objects import names
from tests.wrapper.fake_api import not_granted, over_quota, refused, unanswered
from tests.wrapper.world import World, codeflare, config_map, job, mcad, with_wrapper
from wrapper.lifecycle import MCAD_PAUSE
from wrapper.view import READS_A_SECOND


def running(wrapper: dict[str, object]) -> World:
    world = with_wrapper(wrapper)
    world.place()
    world.settle(2)
    assert world.phase == "Running"
    world.gang("Resumed", placed=True)
    world.pods_become("Running")
    world.settle(2)
    return world


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


def test_an_item_that_is_refused_takes_the_others_back_and_names_itself() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = refused("spec.template: Invalid value")
    world.place()
    world.settle(10)
    assert world.phase == "Failed"
    assert world.items == []
    assert world.status["reason"] == "ItemCreationFailure"
    said = "spec.components[1] (Job work): spec.template: Invalid value"
    assert world.status["message"] == said
    assert [told.message for told in world.told][-1] == said


def test_what_comes_after_an_item_that_is_refused_is_never_created() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["configmaps"] = refused("data: Invalid value")
    world.place()
    world.settle(1)
    assert (world.phase, world.api.created) == ("Failed", [])
    assert world.status["message"] == (
        "spec.components[0] (ConfigMap settings): data: Invalid value"
    )


def test_mcads_generation_says_it_in_its_words() -> None:
    world = with_wrapper(mcad(config_map(), job()))
    world.api.refuse["jobs"] = refused("no")
    world.place()
    world.settle(10)
    assert world.status["state"] == "Failed"
    assert world.status["conditions"][-1]["reason"] == "ItemCreationFailure."


def test_an_item_that_may_yet_be_created_is_tried_for_a_minute_then_all_is_queued_again() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = unanswered()
    world.place()
    world.settle(50)
    assert world.phase == "Resuming"
    assert "no answer in time" in world.status["message"]
    world.settle(15)
    assert (world.phase, world.items) == ("Resetting", [])
    assert world.status["resettingCount"] == 1
    world.gang("Waiting", placed=False)
    world.settle(100)
    assert world.phase == "Suspended"
    world.api.refuse.clear()
    world.place()
    world.settle(5)
    assert world.phase == "Running"


def test_what_a_quota_refuses_gives_its_place_back_at_once_and_spends_no_retry() -> None:
    wrapper = codeflare(config_map(), job())
    wrapper["metadata"]["annotations"][f"{PREFIX}admissionGracePeriodDuration"] = "24h"
    world = with_wrapper(wrapper)
    world.api.refuse["jobs"] = over_quota()
    world.place()
    world.settle(2)
    assert (world.phase, world.items) == ("Suspended", [])
    assert "exceeded quota: compute" in world.status["message"]
    world.settle(600)
    assert world.phase == "Suspended"  # that place was of the start in vain
    world.api.refuse.clear()
    world.place()
    world.settle(5)
    assert (world.phase, world.status.get("resettingCount", 0)) == ("Running", 0)


def test_after_the_last_retry_it_has_failed() -> None:
    world = with_wrapper(codeflare(job()))
    world.api.refuse["jobs"] = unanswered()
    world.place_each_time()
    world.settle(1000)
    assert world.phase == "Failed"
    assert world.api.phases.count("Resuming") == 4
    assert "given up after 4 starts" in world.status["message"]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("deny", "user alice, the creator, may not create jobs.batch in namespace ns"),
        ("unreviewed", "admission of AppWrappers is not installed"),
        ("taken", "Job work exists and does not belong to the AppWrapper"),
    ],
)
def test_nothing_is_created_that_the_creator_may_not(spoil: str, says: str) -> None:
    world = with_wrapper(codeflare(job()))
    if spoil == "deny":
        world.api.deny = {"jobs"}
    elif spoil == "unreviewed":
        world.api.reviewed = False
    else:
        world.api.put("jobs", job())
    world.place()
    world.settle(5)
    assert world.api.created == []
    assert says in world.status["message"]
    assert spoil != "taken" or world.items == ["work"]


def test_an_object_of_an_earlier_app_wrapper_of_the_name_is_waited_for() -> None:
    world = with_wrapper(codeflare(job()))
    owner = {"kind": "AppWrapper", "name": "aw", "uid": "earlier", "controller": True}
    earlier = {"name": "work", "ownerReferences": [owner]}
    world.api.put("jobs", {**job(), "metadata": earlier})
    world.place()
    world.settle(5)
    assert (world.phase, world.api.created) == ("Resuming", [])
    assert "still being deleted" in world.status["message"]
    world.api.remove("jobs", "work")
    world.settle(30)
    assert world.phase == "Running"


def test_it_succeeds_when_its_job_completes_and_keeps_its_items() -> None:
    world = running(codeflare(config_map(), job()))
    world.pods_become("Succeeded")
    world.job_says("work", "Complete")
    world.settle(3)
    assert world.phase == "Succeeded"
    assert world.items == ["settings", "work"]
    world.settle(7 * 24 * 3600 + 10)
    assert world.items == []


def test_mcad_completes_by_completionstatus_and_holds_while_pods_run() -> None:
    world = running(mcad(job(), completion="Complete"))
    world.job_says("work", "Complete")
    world.settle(60)
    assert world.status["state"] == "RunningHoldCompletion"
    world.pods_become("Succeeded")
    world.settle(3)
    assert world.status["state"] == "Completed"


def test_mcads_generation_without_completionstatus_runs_on() -> None:
    world = running(mcad(job()))
    world.job_says("work", "Complete")
    world.pods_become("Succeeded")
    world.settle(600)
    assert world.status["state"] == "Running"


def test_a_failed_job_is_started_again() -> None:
    world = running(codeflare(job()))
    world.job_says("work", "Failed")
    world.pods_become("Failed")
    world.settle(3)
    assert world.phase == "Resetting"
    assert world.status["reason"] == "ItemFailed"


def test_an_item_that_is_deleted_by_hand_is_not_created_again() -> None:
    world = running(codeflare(config_map(), job()))
    world.api.remove("configmaps", "settings")
    world.settle(60)
    assert (world.phase, world.items) == ("Failed", [])
    assert "ConfigMap settings was deleted while the AppWrapper ran" in world.status["message"]


def test_a_kind_that_muster_itself_may_not_create_is_not_tried_again() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = not_granted()
    world.place()
    world.settle(5)
    assert (world.phase, world.status["reason"]) == ("Failed", "ItemCreationFailure")
    assert f"label {names.WRAPPED_OBJECTS}" in world.status["message"]


def test_an_api_server_that_does_not_know_all_roles_yet_is_asked_again() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = not_granted(': RBAC: clusterrole "x" not found')
    world.place()
    world.settle(5)
    assert world.phase == "Resuming"
    world.api.refuse.clear()
    world.settle(10)
    assert world.phase == "Running"


def passing(*names: str) -> World:
    """A world in which Jobs run that are deleted once they have ended."""
    return running(codeflare(*(job(name, ttlSecondsAfterFinished=0) for name in names)))


def vanishes(world: World, name: str) -> None:
    """A Job is deleted, with its pods."""
    for pod in world.pods_of(name):
        world.api.remove("pods", pod["metadata"]["name"])
    world.api.remove("jobs", name)


def test_a_finished_job_that_went_by_itself_has_completed_where_all_its_pods_succeeded() -> None:
    world = passing("work")
    world.pods_become("Succeeded")
    world.settle(0)
    vanishes(world, "work")
    world.settle(60)
    assert world.phase == "Succeeded"


@pytest.mark.parametrize("phase", ["Running", "Failed", "Pending"])
def test_of_a_job_that_went_unread_it_is_said_that_its_outcome_is_not_known(phase: str) -> None:
    world = passing("work")
    world.pods_become(phase)
    vanishes(world, "work")
    world.settle(60)
    assert (world.phase, world.status["reason"]) == ("Failed", "ItemMissing")
    assert "its outcome is not known; it is not created again" in world.status["message"]


def test_a_pod_that_succeeds_because_it_is_deleted_completes_no_job() -> None:
    world = passing("work")
    pod = world.api.objects["pods", "work-0"]
    meta = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}
    world.api.change("pods", "work-0", metadata=meta, status={"phase": "Succeeded"})
    world.settle(0)
    vanishes(world, "work")
    world.settle(60)
    assert (world.phase, world.status["reason"]) == ("Failed", "ItemMissing")


def test_an_end_is_read_of_a_job_that_is_being_deleted_for_it() -> None:
    world = passing("work")
    world.job_says("work", "Failed")
    meta = {**world.api.objects["jobs", "work"]["metadata"]}
    world.api.objects["jobs", "work"]["metadata"] = meta | {"deletionTimestamp": "2026-01-01"}
    world._controllers = lambda: None  # type: ignore[method-assign]  # its pods take their time
    world.pods_become("Failed")
    world.settle(3)
    assert world.status["reason"] == "ItemFailed"


def test_how_a_job_ended_that_went_by_itself_is_known_to_the_next_leader() -> None:
    world = passing("first", "second")
    world.api.change("pods", "first-0", status={"phase": "Succeeded"})
    world.job_says("first", "Complete")
    world.settle(10)
    assert world.phase == "Running"
    vanishes(world, "first")
    world.lead()
    world.settle(600)
    assert world.phase == "Running"
    world.pods_become("Succeeded")
    world.job_says("second", "Complete")
    world.settle(60)
    assert world.phase == "Succeeded"


def test_how_a_job_ended_before_is_forgotten_at_the_next_start() -> None:
    world = passing("first", "second")
    world.api.change("pods", "first-0", status={"phase": "Succeeded"})
    world.job_says("first", "Complete")
    world.settle(10)
    world.stop()
    world.settle(60)
    assert world.phase == "Suspended"
    world.place()
    world.settle(5)
    assert world.phase == "Running"
    vanishes(world, "first")
    world.settle(60)
    assert (world.phase, world.status["reason"]) == ("Failed", "ItemMissing")


def test_the_dispatch_limit_ends_it() -> None:
    limit = {"dispatchDuration": {"limit": 10}}
    world = running(mcad(job(), schedulingSpec=limit))
    world.settle(15)
    assert (world.status["state"], world.items) == ("Failed", [])
    condition = [c for c in world.status["conditions"] if c["type"] == "PreemptCandidate"][-1]
    assert condition["reason"] == "DispatchDeadlineExceeded"


def test_too_few_pods_requeue_it_for_longer_each_time_and_end_it() -> None:
    requeuing = {"timeInSeconds": 10, "growthType": "exponential", "maxNumRequeuings": 2}
    terms = {"minAvailable": 1, "requeuing": requeuing}
    world = with_wrapper(mcad(job(), schedulingSpec=terms))
    world.place_each_time()
    world.settle(9)
    assert world.status["state"] == "Running"
    world.settle(500)
    assert world.status["state"] == "Deleted"
    assert world.status["numberOfRequeueings"] == 2
    assert world.items == []
    assert world.api.phases.count("Resuming") == 3


def test_a_start_that_is_slow_ends_well_once_the_time_for_it_has_grown() -> None:
    """As MCAD's own case has it: 200 s until its pods run, and 60, 60, 120 and 240 s for that."""
    terms = {"minAvailable": 1, "requeuing": {"timeInSeconds": 60, "growthType": "exponential"}}
    world = with_wrapper(mcad(job(), completion="Complete", schedulingSpec=terms))
    world.place_each_time()
    world.settle(60 + 60 + 120 + 3 * MCAD_PAUSE + 200)
    assert world.api.phases.count("Resuming") == 4
    world.gang("Resumed", placed=True)
    world.pods_become("Running")
    world.settle(600)
    world.job_says("work", "Complete")
    world.pods_become("Succeeded")
    world.settle(600)
    assert (world.status["state"], world.status["numberOfRequeueings"]) == ("Completed", 3)


def test_a_job_whose_pods_have_succeeded_is_not_queued_again_for_its_few_pods() -> None:
    terms = {"minAvailable": 1, "requeuing": {"timeInSeconds": 10}}
    world = running(mcad(job(), schedulingSpec=terms))
    world.job_says("work", "Complete")
    world.pods_become("Succeeded")
    world.settle(3600)
    assert (world.status["state"], world.items) == ("Running", ["work"])
    assert world.api.phases.count("Resuming") == 1


def test_one_of_two_that_completes_leaves_the_other_running() -> None:
    world = running(mcad(job("one"), job("two"), completion="Complete"))
    world.job_says("one", "Complete")
    world.settle(60)
    assert world.status["state"] == "Running"
    world.job_says("two", "Complete")
    world.settle(60)
    assert world.status["state"] == "RunningHoldCompletion"
    world.pods_become("Succeeded")
    world.settle(3)
    assert world.status["state"] == "Completed"


def test_one_app_wrapper_that_fails_again_and_again_holds_up_none() -> None:
    world = with_wrapper(codeflare(config_map("bad")))
    world.api.refuse["configmaps"] = unanswered()
    world.place()
    world.settle(20)
    world.api.put("appwrappers", codeflare(job("other"), name="good"))
    world.settle(1)
    world.place("good")
    world.settle(1)
    assert ("jobs", "other") in world.api.created


def test_waiting_app_wrappers_are_written_seldom() -> None:
    world = with_wrapper(codeflare(job()))
    before = world.api.statuses
    for position in range(300):
        world.gang("Waiting", placed=False, reason="InsufficientResources", message=f"{position}")
        world.settle(1)
    assert world.api.statuses - before <= 11
    world.settle(60)
    assert world.status["message"] == "299"


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


def noticed(world: World) -> dict[str, str]:
    found: list[dict[str, str]] = world.status["conditions"]
    return next((each for each in found if each["type"] == "muster.dev/HasNotices"), {})


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


def test_pods_that_come_one_after_another_are_told() -> None:
    pod = {"containers": [{"name": "c", "image": "i"}]}
    spec = {"replicas": 3, "template": {"spec": pod}}
    meta = {"name": "db"}
    db = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
    said = noticed(with_wrapper(codeflare(db)))["message"]
    assert said.endswith("1 of the 3 pods of db can start at once: the others wait for them")


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


def test_a_kind_that_is_not_served_for_a_while_is_not_taken_for_gone() -> None:
    """An API server that starts serves some groups later than others."""
    world = running(codeflare(config_map(), job()))
    world.api.unserved.add("jobs")
    world.lead()
    world.settle(600)
    assert world.phase == "Running"
    world.stop()
    world.settle(600)
    assert world.phase == "Suspending"
    assert ("jobs", "work") in world.api.objects
    world.api.unserved.clear()
    world.lead()  # reads the kinds anew, as each leader does after some seconds
    world.settle(600)
    assert world.phase == "Suspended"
    assert ("jobs", "work") not in world.api.objects


def test_an_item_of_no_namespace_that_is_written_down_keeps_no_other_from_going() -> None:
    world = running(codeflare(job()))
    strange = {"name": "n1", "kind": "Node", "apiVersion": "v1"}
    noted = [*world.status["componentStatus"], strange]
    world.api.change("appwrappers", "aw", status={**world.status, "componentStatus": noted})
    world.stop()
    world.settle(600)
    assert (world.phase, world.items) == ("Suspended", [])


def test_items_are_read_seldom_until_a_pod_has_ended_and_then_soon() -> None:
    world = with_wrapper(codeflare(job()))
    world.place()
    world.settle(1)
    assert world.phase == "Running"
    world.gang("Resumed", placed=True)
    world.pods_become("Running")
    world.settle(14)
    assert world.api.reads_of("jobs") <= 1
    world.pods_become("Succeeded")
    world.settle(1)
    world.job_says("work", "Complete")
    world.settle(0.5)
    assert world.phase == "Succeeded"


def test_pods_that_end_again_and_again_have_no_more_than_some_items_read_a_second() -> None:
    world = running(codeflare(*(job(f"work-{number}") for number in range(50))))
    before = world.api.reads_of("jobs")
    for second in range(60):
        phase = "Failed" if second % 2 else "Running"
        world.api.change("pods", "work-0-0", status={"phase": phase})
        world.settle(1)
    assert world.api.reads_of("jobs") - before <= READS_A_SECOND * 60 + 50


def test_a_new_leader_reads_at_once_where_a_pod_has_ended() -> None:
    world = with_wrapper(codeflare(job()))
    world.place()
    world.settle(1)
    world.pods_become("Succeeded")
    world.job_says("work", "Complete")
    world.lead()
    world.settle(0.1)
    assert world.phase == "Succeeded"


def test_what_a_deletion_hangs_on_is_told_and_taken_back() -> None:
    world = running(codeflare(config_map(), job()))
    controllers = world._controllers

    def finalize_nothing() -> None:
        held = world.api.objects.pop(("configmaps", "settings"))
        controllers()
        world.api.objects["configmaps", "settings"] = held

    world._controllers = finalize_nothing  # type: ignore[method-assign]
    world.stop(message="for another")
    world.settle(20)
    assert (world.phase, world.status["message"]) == ("Suspending", "for another")
    world.settle(100)
    assert world.status["message"] == "for another; left to be deleted: ConfigMap settings"
    world._controllers = controllers  # type: ignore[method-assign]
    world.settle(60)
    assert (world.phase, world.status["message"]) == ("Suspended", "for another")
