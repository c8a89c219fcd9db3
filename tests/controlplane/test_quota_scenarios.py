"""Scenarios of quota from MCAD's end-to-end tests, with Ray clusters in place of deployments."""

import pytest

from kube.objects import names
from testbed.muster import Muster
from testbed.nodes import NodeSpec, copies
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import Json, gang, group, head, requests

pytestmark = pytest.mark.versions

GPU = "nvidia.com/gpu"
NONE = group(replicas=0)


def pods_of(name: str, count: int, *, queue: str = "", **more: str) -> Json:
    """A gang of so many equal pods, the head among them, in a queue by its full name."""
    asked = requests(**more)
    labels = {names.QUEUE: queue} if queue else {}
    workers = group(replicas=count - 1, resources=asked)
    return gang(name, workers, head_group=head(asked), labels=labels)


def wait_uses(plot: Plot, queue: str, summary: str) -> None:
    """Wait until a queue says what it uses of its quota."""

    def told() -> bool:
        return bool(plot.queue_status(queue).get("summary") == summary)

    plot.wait(told, f"queue {queue} to use {summary}")


@pytest.mark.variant
def test_a_gang_that_fits_waits_for_none_that_came_before_it(plot: Plot) -> None:
    """Two nodes have 450m left each: 427m twice fits, 850m at once only in the aggregate."""
    plot.add_equal_nodes(2, cpus="1")
    plot.create(pods_of("runs", 2, cpu="550m"))
    plot.wait_running("runs", 2)
    plot.create(pods_of("aggregate", 1, cpu="850m"))
    status = plot.wait_phase("aggregate", "Queued", "InsufficientResources")
    assert (
        "0 of 1 headgroup fits: it needs 850m cpu on one node; 900m are free" in status["message"]
    )
    plot.create(pods_of("large", 3, cpu="427m"))
    plot.wait_phase("large", "Queued")
    plot.create(pods_of("small", 2, cpu="340m"))
    plot.wait_running("small", 2)
    assert all(is_held(pod) for name in ("aggregate", "large") for pod in plot.pods(name))
    plot.delete_whole("runs")
    plot.wait_phase("aggregate", "Queued", "InsufficientResources", "660m")


@pytest.mark.variant
def test_a_queue_borrows_what_others_leave_idle(plot: Plot) -> None:
    """CPU, memory and GPUs at once, as long as the other queue does not ask for its own."""
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=8, memory="64Gi", gpus=8), 3))
    plot.add_queue("company")
    own: Json = {"quota": {"cpu": 1, "memory": "1Gi", GPU: 8}}
    plot.add_queue("gold", parent=plot.queue("company"), **own)
    plot.add_queue("silver", parent=plot.queue("company"), **own)
    large = {"cpu": "500m", "memory": "300Mi", GPU: "8"}
    plot.create(pods_of("silver", 2, queue=plot.queue("silver"), **large))
    plot.wait_running("silver", 2)
    wait_uses(plot, "silver", f"{GPU} 16/8, cpu 1/1, memory 600Mi/1Gi")
    assert plot.queue_status("silver")["borrowed"][GPU] == "8"

    plot.create(pods_of("gold", 1, queue=plot.queue("gold"), **large))
    status = plot.wait_phase("gold", "Queued", "QuotaExceeded")
    assert f"uses 0 of its quota of 8 {GPU} and may take 0 more" in status["message"]
    plot.delete_whole("silver")
    plot.wait_running("gold", 1)
    wait_uses(plot, "gold", f"{GPU} 8/8, cpu 500m/1, memory 300Mi/1Gi")


def test_a_queue_takes_back_what_it_lent(plot: Plot) -> None:
    """What silver runs is borrowed, so it ends for the gang that the quota of gold covers."""
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=8, memory="64Gi", gpus=8), 3))
    plot.add_queue("company")
    own: Json = {"quota": {"cpu": 1, "memory": "1Gi", GPU: 8}}
    plot.add_queue("gold", parent=plot.queue("company"), preemption={"reclaim": "Any"}, **own)
    plot.add_queue("silver", parent=plot.queue("company"), preemption={"reclaim": "Any"}, **own)
    large = {"cpu": "500m", "memory": "300Mi", GPU: "8"}
    plot.create(pods_of("borrows", 2, queue=plot.queue("silver"), **large))
    plot.wait_running("borrows", 2)

    plot.create(pods_of("owns", 1, queue=plot.queue("gold"), **large))
    plot.wait_running("owns", 1)
    status = plot.wait_phase("borrows", "Queued", "QuotaExceeded")
    assert condition(status, "Evicted")["reason"] == "Preempted"
    assert all(is_held(pod) for pod in plot.wait_pods("borrows", 2))
    wait_uses(plot, "silver", f"{GPU} 0/8, cpu 0/1, memory 0/1Gi")
    plot.create(pods_of("covered", 1, queue=plot.queue("silver"), **large))
    plot.wait_running("covered", 1)  # each has its own now, and takes nothing of the other
    assert plot.status("owns")["phase"] == "Running"


def test_priority_within_a_queue_and_a_hard_quota_beside_it(plot: Plot) -> None:
    """A gang of high priority takes the room of a low one; a queue that cannot borrow waits."""
    plot.add_node(8)
    high = plot.add_priority_class("high", 1000)
    plot.add_queue("root", quota={"cpu": 2})
    rules: Json = {"parent": plot.queue("root"), "borrowingLimit": {"cpu": 0}}
    lower = {"withinQueue": "LowerPriority"}
    plot.add_queue("gold", quota={"cpu": 1}, preemption=lower, **rules)
    plot.add_queue("bronze", quota={"cpu": "900m"}, **rules)
    plot.create(pods_of("gold-low", 1, queue=plot.queue("gold"), cpu="600m"))
    plot.create(pods_of("bronze-1", 1, queue=plot.queue("bronze"), cpu="500m"))
    for name in ("gold-low", "bronze-1"):
        plot.wait_running(name, 1)
    urgent = pods_of("gold-high", 1, queue=plot.queue("gold"), cpu="600m")
    urgent["spec"]["headGroupSpec"]["template"]["spec"]["priorityClassName"] = high
    plot.create(urgent)
    plot.wait_running("gold-high", 1)
    plot.wait_phase("gold-low", "Queued", "QuotaExceeded")
    plot.create(pods_of("bronze-2", 1, queue=plot.queue("bronze"), cpu="500m"))
    plot.wait_phase("bronze-2", "Queued", "QuotaExceeded")
    assert plot.status("bronze-1")["phase"] == "Running"
    plot.delete_whole("bronze-1")
    plot.wait_running("bronze-2", 1)
    plot.delete_whole("gold-high")
    plot.wait_running("gold-low", 1)


def test_quota_that_comes_while_gangs_run_counts_them_and_survives_a_restart(
    plot: Plot, muster: Muster
) -> None:
    """A gang of the default queue is counted in the queue that its namespace gets."""
    plot.add_node(8)
    plot.create(pods_of("first", 2))
    plot.wait_running("first", 2)
    assert condition(plot.status("first"), "QuotaReserved")["reason"] == "NotRequired"
    plot.add_queue("elsewhere", quota={"cpu": 0}, namespaceSelector={"matchLabels": {"no": "one"}})
    plot.add_queue("bronze", quota={"cpu": 2})
    wait_uses(plot, "bronze", "cpu 2/2")
    plot.create(pods_of("second", 2))
    plot.wait_phase("second", "Queued", "QuotaExceeded")

    muster.coordinators[0].restart()
    muster.wait_ready()
    muster.wait_led()
    plot.create(pods_of("unknown", 1, queue=plot.queue("gone")))
    status = plot.wait_phase("unknown", "Gathering", "Misconfigured")
    assert f"GangQueue {plot.queue('gone')} does not exist" in status["message"]
    assert plot.status("second")["reason"] == "QuotaExceeded"
    assert plot.queue_status("bronze")["summary"] == "cpu 2/2"
    plot.delete_whole("first")
    plot.wait_running("second", 2)


@pytest.mark.variant
def test_a_tree_that_is_added_does_not_touch_gangs_that_it_does_not_select(plot: Plot) -> None:
    """Gangs of a namespace that no queue selects run in the default queue, as before."""
    plot.add_node(8)
    for name, more in (("top", {}), ("leaf", {"parent": plot.queue("top")})):
        plot.add_queue(
            name, quota={"cpu": 0}, namespaceSelector={"matchLabels": {"no": "one"}}, **more
        )
    plot.create(pods_of("free", 3))
    plot.wait_running("free", 3)
    assert plot.gangs()["free"]["spec"]["queue"] == "default"


@pytest.mark.variant
def test_a_queue_that_is_deleted_while_it_is_applied_again(plot: Plot) -> None:
    """It goes with its last gang, and the gang that waits starts once it is there again."""
    plot.add_node(8)
    plot.add_queue("team", quota={"cpu": 2})
    plot.create(pods_of("runs", 2, queue=plot.queue("team")))
    plot.wait_running("runs", 2)
    wait_uses(plot, "team", "cpu 2/2")
    plot.delete_queue("team")
    plot.change_queue("team", quota={"cpu": 4})
    plot.create(pods_of("waits", 2, queue=plot.queue("team")))
    plot.wait_phase("waits", "Queued", "QueueInactive", "is being deleted")
    assert plot.bound("runs")
    plot.delete_whole("runs")
    plot.wait_no_queue("team")
    plot.wait_phase("waits", "Gathering", "Misconfigured", "does not exist")
    plot.add_queue("team", quota={"cpu": 2})
    plot.wait_running("waits", 2)


@pytest.mark.variant
def test_a_queue_that_is_stopped_and_drained_goes_on_as_it_was(plot: Plot) -> None:
    """The stop is of the queue above."""
    plot.add_node(8)
    plot.add_queue("top", quota={"cpu": 4})
    plot.add_queue("team", parent=plot.queue("top"))
    plot.create(pods_of("runs", 2, queue=plot.queue("team")))
    plot.wait_running("runs", 2)
    plot.change_queue("top", stop="Hold")
    plot.create(pods_of("waits", 2, queue=plot.queue("team")))
    plot.wait_phase("waits", "Queued", "QueueStopped", plot.queue("top"))
    assert plot.bound("runs")
    plot.change_queue("top", stop="HoldAndDrain")
    plot.wait_phase("runs", "Queued", "QueueStopped", plot.queue("top"))
    wait_uses(plot, "top", "cpu 0/4")
    plot.change_queue("top", stop="None")
    plot.wait_running("runs", 2)
    plot.wait_running("waits", 2)


@pytest.mark.variant
def test_a_parent_that_comes_changes_and_goes_while_gangs_wait(plot: Plot) -> None:
    plot.add_node(8)
    plot.add_queue("leaf", parent=plot.queue("top"))
    plot.create(pods_of("one", 2, queue=plot.queue("leaf")))
    plot.wait_phase("one", "Queued", "QueueInactive", plot.queue("top"))
    plot.add_queue("top", quota={"cpu": 1})
    plot.wait_phase("one", "Queued", "QuotaExceeded")
    plot.change_queue("top", quota={"cpu": 2})
    plot.wait_running("one", 2)
    plot.create(pods_of("two", 2, queue=plot.queue("leaf")))
    plot.wait_phase("two", "Queued", "QuotaExceeded")
    plot.delete_queue("top")
    plot.wait_no_queue("top")
    plot.wait_phase("two", "Queued", "QueueInactive", plot.queue("top"))
    assert plot.bound("one", "head")
    plot.add_queue("top", quota={"cpu": 4})
    plot.wait_running("two", 2)
    wait_uses(plot, "top", "cpu 4/4")


@pytest.mark.variant
def test_a_quota_without_loans_is_hard_and_a_forest_has_many_trees(plot: Plot) -> None:
    """Each tree has its own resources; a gang waits for its quota though nodes are free."""
    plot.add_node(8)
    for tree in ("compute", "other"):
        plot.add_queue(tree, quota={"cpu": "1200m"})
        plot.add_queue(
            f"{tree}-leaf",
            parent=plot.queue(tree),
            quota={"cpu": "400m"},
            borrowingLimit={"cpu": 0},
        )
    plot.create(pods_of("one", 1, queue=plot.queue("compute-leaf"), cpu="400m"))
    plot.wait_running("one", 1)
    plot.create(pods_of("two", 1, queue=plot.queue("compute-leaf"), cpu="400m"))
    plot.wait_phase("two", "Queued", "QuotaExceeded")
    plot.create(pods_of("apart", 1, queue=plot.queue("other-leaf"), cpu="400m"))
    plot.wait_running("apart", 1)
    plot.create(pods_of("never", 1, queue=plot.queue("other-leaf"), cpu="500m"))
    plot.wait_phase("never", "Queued", "QuotaExceeded", "at most")
    plot.delete_whole("one")
    plot.wait_running("two", 1)
