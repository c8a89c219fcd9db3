"""How often is read and written."""

from tests.wrapper.journeys.worlds import noticed, running
from tests.wrapper.world import codeflare, config_map, job, with_wrapper
from wrapper.view import READS_A_SECOND


def test_waiting_app_wrappers_are_written_seldom() -> None:
    world = with_wrapper(codeflare(job()))
    before = world.api.statuses
    for position in range(300):
        world.gang("Waiting", placed=False, reason="InsufficientResources", message=f"{position}")
        world.settle(1)
    assert world.api.statuses - before <= 11
    world.settle(60)
    assert world.status["message"] == "299"


def test_pods_that_come_one_after_another_are_told() -> None:
    pod = {"containers": [{"name": "c", "image": "i"}]}
    spec = {"replicas": 3, "template": {"spec": pod}}
    meta = {"name": "db"}
    db = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
    said = noticed(with_wrapper(codeflare(db)))["message"]
    assert said.endswith("1 of the 3 pods of db can start at once: the others wait for them")


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
