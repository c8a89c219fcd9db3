"""A gang that is stopped for another one is stopped whole, though the coordinator is killed."""

from __future__ import annotations

from testbed.waiting import wait_until
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import gang, group
from tests.controlplane.test_preemption import urgent, with_queue
from tests.faults.calls import evictions_after
from tests.faults.crew import Crew


def test_a_gang_that_is_half_evicted_when_its_leader_dies_is_stopped_whole(
    plot: Plot, crew: Crew
) -> None:
    """What is left to be evicted is on the record, and nowhere else."""
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 4)
    leader = crew.start_leader()
    hold = leader.proxy.hold(evictions_after(1))
    plot.create(gang("low", group(replicas=3), labels=labels))
    plot.wait_running("low", 4)
    before = {pod["metadata"]["uid"] for pod in plot.pods("low")}
    plot.create(urgent(plot, "urgent", 3, labels))
    wait_until(lambda: bool(hold.met), "the leader to evict a second pod")
    leader.process.kill()
    assert plot.status("low")["phase"] == "Preempting"
    follower = crew.start_leader()

    plot.wait_running("urgent", 4)
    status = plot.wait_phase("low", "Queued")
    assert "placement" not in status
    assert "evictions" not in status
    assert condition(status, "Evicted")["reason"] == "Preempted"
    after = plot.wait_pods("low", 4)
    assert all(is_held(pod) for pod in after)
    assert not before & {pod["metadata"]["uid"] for pod in after}

    plot.delete_whole("urgent")
    plot.wait_running("low", 4)
    plot.delete_whole("low")
    plot.delete_queue("team")
    plot.wait_no_queue("team")
    assert follower.leads
