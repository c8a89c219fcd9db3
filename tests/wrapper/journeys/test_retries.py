"""Starts that are tried again, and those that are given up."""

from appwrapper.spec.retries import PREFIX
from tests.wrapper.fake_api import over_quota, unanswered
from tests.wrapper.journeys.worlds import running
from tests.wrapper.world import codeflare, config_map, job, mcad, with_wrapper
from wrapper.lifecycle import MCAD_PAUSE


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


def test_a_failed_job_is_started_again() -> None:
    world = running(codeflare(job()))
    world.job_says("work", "Failed")
    world.pods_become("Failed")
    world.settle(3)
    assert world.phase == "Resetting"
    assert world.status["reason"] == "ItemFailed"


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
