"""What MCAD's generation says of the pods, in MCAD's fields."""

from tests.wrapper.world import World, job, mcad, with_wrapper

REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}


def with_pod(phase: str, *conditions: dict[str, str], gpu: str = "2") -> World:
    """A world of which the pod asks for 1500m, 2Gi and GPUs, in two containers."""
    world = with_wrapper(mcad(job()))
    world.place()
    world.settle(2)
    world.gang("Resumed", placed=True)
    asked = ({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": gpu})
    containers = [{"name": f"c{i}", "resources": {"requests": r}} for i, r in enumerate(asked)]
    status = {"phase": phase, "conditions": list(conditions)}
    world.api.change("pods", "work-0", spec={"containers": containers}, status=status)
    world.settle(60)
    return world


def totals(world: World) -> list[int | None]:
    return [world.status.get(each) for each in ("totalcpu", "totalmemory", "totalgpu")]


def test_what_running_pods_request_is_totaled() -> None:
    assert totals(with_pod("Running")) == [1500, 2**31 - 1, 2]  # the field holds no more
    assert totals(with_pod("Succeeded")) == [1500, 2**31 - 1, 2]
    assert totals(with_pod("Pending")) == [None] * 3


def test_an_amount_that_cannot_be_read_stops_nothing() -> None:
    assert totals(with_pod("Running", gpu="many")) == [1000, 2**30, None]


def test_pods_that_kube_scheduler_cannot_place_are_listed_with_its_words() -> None:
    (listed,) = with_pod("Pending", REFUSED).status["pendingpodconditions"]
    assert (listed["podname"], [*listed["conditions"]]) == ("work-0", [REFUSED])
    gated = {**REFUSED, "reason": "SchedulingGated"}
    assert "pendingpodconditions" not in with_pod("Pending", gated).status
    assert "pendingpodconditions" not in with_pod("Running", REFUSED).status
