"""Gangs are stopped for others whole or not at all, though the coordinator is killed at each step.

Each leader dies at the next step, in the middle of a request that never arrives. The one after it
knows what is written, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kube.objects import names
from testbed.waiting import wait_until
from tests.controlplane.dashboards import Dashboards
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import gang, group
from tests.controlplane.test_preemption import linger, uids, urgent, with_queue
from tests.controlplane.test_submission_modes import Job
from tests.faults.calls import either, evictions_after, is_release, resumes, suspends, writes_of
from tests.faults.chronicle import Chronicle
from tests.faults.crew import Crew
from tests.faults.ledger import never_whole, problems
from tests.faults.proxied import Match

CPUS = 6
LINGER = ["example.com/lingers"]
MINIMUM = {"wide": 2, "low": 3, "urgent": 4}


@contextmanager
def dies_at(crew: Crew, step: Match) -> Iterator[None]:
    """Have a leader that is killed, after the block, when it sends what matches."""
    leader, hold = crew.start_held_leader(step)
    yield
    wait_until(lambda: bool(hold.met), f"{leader.identity} to come to its last step")
    leader.process.kill()


def run_two_gangs(plot: Plot, labels: dict[str, str]) -> None:
    """Fill the node: with a gang that has a surplus replica, and a younger one that has none."""
    wide = gang("wide", group(replicas=2), labels=labels)
    wide["metadata"]["annotations"] = {names.MIN_REPLICAS: "workers=1"}
    plot.create(wide)
    plot.wait_running("wide", 3)
    plot.create(gang("low", group(replicas=2), labels=labels))
    plot.wait_running("low", 3)


def ends(plot: Plot) -> set[str]:
    """The gangs of which something is to end, by their records."""
    return {name for name in ("wide", "low") if "evictions" in plot.status(name)}


def leaving(plot: Plot) -> int:
    """How many pods are being deleted."""
    return sum("deletionTimestamp" in pod["metadata"] for pod in plot.all("Pod"))


def keep_all(plot: Plot, finalizers: list[str] | None) -> None:
    """Keep all pods once they are deleted, or let them go."""
    linger(plot, [pod["metadata"]["name"] for pod in plot.all("Pod")], finalizers)


def clear(plot: Plot) -> None:
    """Delete the Ray clusters and the queue, which goes with what holds its quota."""
    plot.delete_all_whole()
    plot.wait_no_pods()
    plot.delete_queue("team")
    plot.wait_no_queue("team")


@pytest.mark.long
def test_whatever_step_of_a_preemption_a_leader_dies_at_the_next_one_ends_or_undoes_it(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """A surplus replica of one gang and the whole of another one are to end for an urgent gang."""
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, CPUS)
    with dies_at(crew, either(writes_of("low", "evictions"), evictions_after(0))):
        run_two_gangs(plot, labels)
        plot.create(urgent(plot, "urgent", 3, labels))
        plot.wait(lambda: ends(plot) == {"wide"}, "one of the two ends to be written")
    assert ends(plot) == {"wide"}

    with dies_at(crew, evictions_after(0)):
        plot.wait(lambda: ends(plot) == {"wide", "low"}, "both ends to be written")
    before = uids(plot, "wide"), uids(plot, "low")
    plot.delete_whole("urgent")
    plot.wait_gone("RayCluster", "urgent")

    with dies_at(crew, evictions_after(1)):
        plot.wait(lambda: not ends(plot), "both ends to be undone")
        assert (uids(plot, "wide"), uids(plot, "low")) == before
        keep_all(plot, LINGER)
        plot.create(urgent(plot, "urgent", 3, labels))
    plot.wait(lambda: leaving(plot) == 1, "the first eviction, which was sent, to be carried out")

    leader = crew.start_leader()
    wait_until(lambda: leaving(plot) == 4, "all that is to end to be on its way")
    leader.process.kill()

    with dies_at(crew, writes_of("urgent", "placement")):
        keep_all(plot, None)
    assert leaving(plot) == 0
    assert "placement" not in plot.status("urgent")

    with dies_at(crew, is_release):
        plot.wait(lambda: "placement" in plot.status("urgent"), "the placement to be written")
    assert all(is_held(pod) for pod in plot.pods("urgent"))

    crew.start_leader()
    plot.wait_running("urgent", 4)
    told = plot.wait_phase("low", "Queued")
    assert condition(told, "Evicted")["reason"] == "Preempted"
    assert all(is_held(pod) for pod in plot.wait_pods("low", 3))
    assert sum(is_held(pod) for pod in plot.wait_pods("wide", 3)) == 1
    assert len(uids(plot, "wide") & before[0]) == 2
    assert not uids(plot, "low") & before[1]
    assert not ends(plot)

    plot.delete_whole("urgent")
    plot.wait_running("low", 3)
    plot.wait_running("wide", 3)
    assert problems(chronicle.ledger, {plot.node("node"): CPUS}) == []
    assert never_whole(chronicle.ledger, MINIMUM) == []
    clear(plot)


@pytest.mark.long
def test_whatever_step_of_a_suspension_a_leader_dies_at_the_rayjob_is_resumed(
    plot: Plot, crew: Crew, dashboards: Dashboards
) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, CPUS)
    with dies_at(crew, suspends):
        job = Job(plot, dashboards, "HTTPMode", shutdownAfterJobFinishes=True)
        job.wait_running()
        plot.create(urgent(plot, "urgent", CPUS - 1, labels))
    first = job.cluster
    assert "evictions" in plot.status(first)
    assert job.is_resumed(), "nothing is suspended yet"

    plot.patch("RayCluster", first, {"metadata": {"finalizers": LINGER}})
    leader = crew.start_leader()
    job.wait_state("Suspending")
    leader.process.kill()
    plot.patch("RayCluster", first, {"metadata": {"finalizers": None}})
    job.wait_state("Suspended")

    with dies_at(crew, resumes):
        assert not job.is_resumed()

    crew.start_leader()
    plot.wait_running("urgent", CPUS)
    job.wait_next_cluster(first)
    plot.wait(job.is_resumed, "the RayJob to be resumed")
    plot.delete_whole("urgent")
    job.wait_running()
    job.end_well()
    clear(plot)
