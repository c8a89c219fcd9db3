"""Gangs that start together, beside preemption, backfill, jobs and lost workers."""

import pytest

from kube.objects import names
from tests.controlplane.plot import Plot, condition
from tests.controlplane.rayclusters import GANG, Json, gang, group, ray_job
from tests.controlplane.test_preemption import uids, urgent, with_queue
from tests.controlplane.test_together import PAIR, member, stamp

pytestmark = pytest.mark.variant


def paired(cluster: Json) -> Json:
    """The same as a member of the pair."""
    cluster["metadata"]["annotations"].update(PAIR)
    return cluster


def started_at_once(plot: Plot, *clusters: str) -> bool:
    """Tell whether all were placed by one decision."""
    return len({stamp(plot, each) for each in clusters} - {""}) == 1


def test_a_pair_stops_a_gang_of_lower_priority_and_starts_whole(plot: Plot) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 5)
    plot.create(gang("low", group(replicas=4), labels=labels))
    plot.wait_running("low", 5)

    plot.create(paired(urgent(plot, "a", 1, labels)))
    plot.wait_phase("a", "Queued", "WaitsForMembers")
    assert plot.status("low")["phase"] == "Running"  # nothing is stopped for half of a pair
    plot.create(paired(urgent(plot, "b", 2, labels)))
    plot.wait_running("a", 2)
    plot.wait_running("b", 3)
    assert started_at_once(plot, "a", "b")
    told = condition(plot.wait_phase("low", "Queued"), "Evicted")
    assert (told["status"], told["reason"]) == ("True", "Preempted")


def test_a_lost_worker_is_replaced_and_the_other_member_runs_on(plot: Plot) -> None:
    plot.add_node(5)
    plot.create(member("a", 1))
    plot.create(member("b", 2))
    plot.wait_running("a", 2)
    plot.wait_running("b", 3)
    before, kept = uids(plot, "a"), uids(plot, "b")

    lost = next(each for each in plot.pods("a") if "worker" in each["metadata"]["name"])
    plot.delete("Pod", lost["metadata"]["name"])
    plot.wait(lambda: len(uids(plot, "a") - before) == 1, "the worker to be made anew")
    plot.wait_running("a", 2)
    assert uids(plot, "b") == kept


def test_a_job_and_a_cluster_start_together(plot: Plot) -> None:
    plot.add_node(5)
    job = ray_job("job", group(replicas=1), labels=GANG)
    job["metadata"]["annotations"] = dict(PAIR)
    plot.create(job)
    made = plot.wait(lambda: next(iter(plot.gangs()), ""), "the gang of the job")
    plot.wait_phase(made, "Queued", "WaitsForMembers")
    plot.create(member("b", 1))
    plot.wait_running(made, 2)
    plot.wait_running("b", 2)
    assert started_at_once(plot, made, "b")


def test_a_pair_is_backfilled_whole_before_a_gang_that_waits_for_room(plot: Plot) -> None:
    plot.add_node(6)
    plot.add_queue("team", whenBlocked="Backfill")
    labels = {**GANG, names.QUEUE: plot.queue("team")}
    hour, minute = {names.EXPECTED_DURATION: "1h"}, {names.EXPECTED_DURATION: "1m"}
    plot.create(gang("first", group(replicas=1), labels=labels, annotations=hour))
    plot.wait_running("first", 2)
    plot.create(gang("large", group(replicas=4), labels=labels, annotations=hour))
    plot.wait_phase("large", "Queued", "InsufficientResources")

    plot.create(gang("a", group(replicas=1), labels=labels, annotations=PAIR | minute))
    plot.wait_phase("a", "Queued", "WaitsForMembers")
    plot.create(gang("b", group(replicas=1), labels=labels, annotations=PAIR | minute))
    plot.wait_running("a", 2)
    plot.wait_running("b", 2)
    assert started_at_once(plot, "a", "b")
    assert plot.status("large")["phase"] == "Queued"
