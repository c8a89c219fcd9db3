"""How patient an AppWrapper of CodeFlare's generation is, by its annotations."""

import pytest

from appwrapper.spec.retries import PREFIX
from tests.wrapper.world import World, codeflare, job, with_wrapper


def started(**annotations: str) -> World:
    """A world in which all items of an AppWrapper were just created, of 10 starts at most."""
    wrapper = codeflare(job())
    said = {f"{PREFIX}{key}": value for key, value in annotations.items()}
    wrapper["metadata"]["annotations"] |= {f"{PREFIX}retryLimit": "10", **said}
    world = with_wrapper(wrapper)
    world.place()
    world.settle(2)
    assert (world.phase, len(world.api.named("pods"))) == ("Running", 1)
    world.gang("Resumed", placed=True)
    return world


def unhealthy(world: World) -> str:
    """CodeFlare's word for why it is started again."""
    found = [each for each in world.status["conditions"] if each["type"] == "Unhealthy"]
    return str(found[0]["reason"]) if found[0]["status"] == "True" else ""


@pytest.mark.parametrize(("said", "grace"), [({}, 60), ({"failureGracePeriodDuration": "5m"}, 300)])
def test_pods_that_stay_failed_have_it_started_again(said: dict[str, str], grace: int) -> None:
    world = started(**said)
    world.pods_become("Failed", 1)
    world.settle(grace - 5)
    assert world.phase == "Running"
    world.settle(10)
    assert (world.phase, world.status["reason"]) == ("Resetting", "PodsFailed")
    assert world.status["message"] == "1 pod is failed"
    assert world.status["resettingCount"] == 1
    assert unhealthy(world) == "FoundFailedPods"


def test_pods_that_are_replaced_in_time_have_it_go_on() -> None:
    world = started()
    for _ in range(3):
        world.pods_become("Failed", 1)
        world.settle(50)
        world.pods_become("Running")
        world.settle(20)
    assert world.phase == "Running"


@pytest.mark.parametrize(
    ("said", "code", "phase"),
    [
        ({"terminalExitCodes": "3, 4"}, 4, "Failed"),
        ({"terminalExitCodes": "3, 4"}, 5, "Resetting"),
        ({"retryableExitCodes": "10,20"}, 20, "Resetting"),
        ({"retryableExitCodes": "10,20"}, 5, "Failed"),
        ({"terminalExitCodes": "soon"}, 4, "Resetting"),
    ],
)
def test_exit_codes_say_whether_it_is_started_again(
    said: dict[str, str], code: int, phase: str
) -> None:
    world = started(**said)
    world.pods_become("Failed", code)
    world.settle(61)
    assert world.phase == phase
    final = f"1 pod is failed (exit codes {code}: not started again)"
    assert world.status["message"] == (final if phase == "Failed" else "1 pod is failed")


@pytest.mark.parametrize(
    ("said", "grace"), [({}, 300), ({"warmupGracePeriodDuration": "10m"}, 600)]
)
def test_pods_that_are_never_ready_have_it_started_again(said: dict[str, str], grace: int) -> None:
    world = started(**said)
    world.settle(grace - 10)
    assert world.phase == "Running"
    world.settle(20)
    assert (world.phase, world.status["reason"]) == ("Resetting", "PodsNotReady")
    said_so = "of 1 pods that must run at once: 1 pending, 0 running, 0 succeeded"
    assert world.status["message"] == said_so
    assert unhealthy(world) == "InsufficientPodsReady"


def test_pods_that_never_come_have_it_started_again_earlier() -> None:
    world = started()
    world.makes_pods = False
    world.api.remove("pods", "work-0")
    world.settle(70)
    assert (world.phase, world.status["reason"]) == ("Resetting", "PodsNotReady")


@pytest.mark.parametrize("died", [False, True], ids=["the same leader", "another leader"])
def test_once_all_were_ready_too_few_pods_alone_stop_nothing(died: bool) -> None:
    world = started()
    world.pods_become("Running")
    world.settle(60)
    world.pods_become("Pending")
    world.settle(60)
    if died:
        world.lead()
    world.settle(1000)
    assert world.phase == "Running"


@pytest.mark.parametrize(
    ("said", "grace"), [({}, 600), ({"forcefulDeletionGracePeriodDuration": "30s"}, 30)]
)
def test_pods_that_do_not_end_are_deleted_by_force(said: dict[str, str], grace: int) -> None:
    world = started(**said)
    world.nodes_answer = False
    world.stop()
    world.settle(grace - 5)
    assert (world.phase, world.api.forced) == ("Suspending", [])
    world.settle(40)
    assert (world.phase, world.api.forced) == ("Suspended", ["work-0"])


def test_what_has_succeeded_is_not_deleted_by_force_before_it_is_deleted_at_all() -> None:
    world = started(successTTLDuration="1h", forcefulDeletionGracePeriodDuration="5m")
    world.nodes_answer = False
    world.pods_become("Succeeded")
    world.job_says("work", "Complete")
    world.settle(3600 + 290)
    assert (world.phase, world.api.forced) == ("Succeeded", [])
    world.settle(60)
    assert (world.phase, world.api.forced) == ("Succeeded", ["work-0"])
