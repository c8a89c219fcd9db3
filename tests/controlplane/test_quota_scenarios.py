"""Scenarios of quota from MCAD's end-to-end tests, with Ray clusters in place of deployments."""

import pytest

from kube.objects import names
from testbed.muster import Muster
from testbed.nodes import NodeSpec, copies
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import Json, gang, group, head, requests

pytestmark = pytest.mark.versions

GPU = "nvidia.com/gpu"


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
