"""When an AppWrapper has succeeded."""

import pytest

from tests.wrapper.journeys.worlds import running
from tests.wrapper.world import World, codeflare, config_map, job, mcad


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
