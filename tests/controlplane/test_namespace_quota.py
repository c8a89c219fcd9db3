"""Gangs of a namespace whose ResourceQuotas do not hold all of them start one after another."""

from collections.abc import Sequence

import pytest

from testbed.muster import Muster
from testbed.nodes import NodeSpec
from testbed.recorder import Recorder
from tests.controlplane.plot import Plot
from tests.controlplane.quotas import (
    add_defaults,
    add_quota,
    add_quota_of_defaults,
    would_be_held,
)
from tests.controlplane.rayclusters import (
    GANG,
    Json,
    gang,
    group,
    head,
    pod,
    ray_job,
    ray_service,
    requests,
)
from tests.controlplane.test_held_starts import suspended

WORKERS = 4
"""Of each gang, beside its head."""

LONG = 120.0

GPU = "nvidia.com/gpu"


def run_one_after_another(plot: Plot, names: Sequence[str]) -> list[str]:
    """Delete each gang once all of it is bound; return in which order they were."""
    left, ran = list(names), []
    while left:
        done = plot.wait(
            lambda: [name for name in left if len(plot.bound(name)) == WORKERS + 1],
            f"one of {left} to start",
            seconds=LONG,
        )
        for name in done:
            left.remove(name)
            ran.append(name)
            plot.delete("RayCluster", name)
    return ran


def test_a_gang_gets_no_pods_while_the_quota_has_no_room_for_them(
    plot: Plot, muster: Muster
) -> None:
    """One that has room is not suspended at any time."""
    plot.add_node(20)
    add_quota(plot, "small", {"pods": 8})  # first: controller-manager may miss a pod just made
    add_strangers(plot)
    with Recorder(muster.cluster) as recorder:
        plot.create(gang("fits", group(replicas=3)))
        plot.wait_running("fits", 4)
        assert plot.get("RayCluster", "fits")["metadata"]["generation"] == 1
        waits = gang("waits", group(replicas=WORKERS))
        plot.wait(lambda: would_be_held(plot, waits), "the webhook to know of the quota")
        plot.create(waits)
        short = "ResourceQuota small: the gang needs 5 of pods; 0 of 8 are left"
        plot.wait_message("waits", short)
        plot.wait_message("waits", "of pods in it fits has 4, other pods have 4")
        free_strangers(plot)
        plot.wait_message("waits", "4 of 8 are left")
        assert suspended(plot, "waits")
        assert not [each for each in recorder.events if each.gang == (plot.name, "waits")]
    plot.delete("RayCluster", "fits")
    plot.wait_running("waits", WORKERS + 1)


@pytest.mark.long
def test_ten_gangs_that_come_at_once_all_run(plot: Plot) -> None:
    plot.add_node(20)
    add_quota(plot, "small", {"pods": 8})
    names = [f"g{at}" for at in range(10)]
    for name in names:
        plot.create(gang(name, group(replicas=WORKERS)))
    assert sorted(run_one_after_another(plot, names)) == names


@pytest.mark.long
@pytest.mark.parametrize(
    ("hard", "spec"),
    [
        ({"count/pods": 8}, {}),
        ({"requests.cpu": 8, "requests.memory": "100Gi"}, {}),
        ({"limits.cpu": 8}, {}),
        ({"pods": 8}, {"scopes": ["NotTerminating"]}),
        ({"pods": 8}, {"scopes": ["NotBestEffort"]}),
    ],
    ids=["count", "cpu", "limits", "not-terminating", "not-best-effort"],
)
def test_whatever_a_quota_counts_three_gangs_run(plot: Plot, hard: Json, spec: Json) -> None:
    """A second quota that is wide, and defaults of a LimitRange, are beside it."""
    plot.add_node(20)
    add_defaults(plot)
    add_quota(plot, "wide", {"pods": 100, "requests.cpu": 100})
    add_quota(plot, "narrow", hard, **spec)
    names = ["a", "b", "c"]
    for name in names:
        plot.create(gang(name, group(replicas=WORKERS)))
    assert sorted(run_one_after_another(plot, names)) == names


@pytest.mark.long
def test_of_the_gangs_of_one_priority_class_one_after_another_runs(plot: Plot) -> None:
    """The quota counts the pods of this class alone, beside those of a gang without one."""
    plot.add_node(20)
    high = plot.add_priority_class("high", 100)
    of_class = {"scopeName": "PriorityClass", "operator": "In", "values": [high]}
    selector = {"matchExpressions": [of_class]}
    add_quota(plot, "small", {"pods": 8}, scopeSelector=selector)
    names = ["a", "b"]
    for name in names:
        workers = group(replicas=WORKERS, priorityClassName=high)
        plot.create(gang(name, workers, head_group=head(priorityClassName=high)))
    plot.create(gang("free", group(replicas=WORKERS)))
    plot.wait_running("free", WORKERS + 1)
    assert sorted(run_one_after_another(plot, names)) == names


@pytest.mark.long
def test_gangs_of_several_queues_share_the_quota_of_their_namespace(plot: Plot) -> None:
    plot.add_node(20)
    add_quota(plot, "small", {"pods": 8})
    names = ["a", "b", "c", "d"]
    for at, name in enumerate(names):
        queue = f"q{at % 2}"
        if at < 2:
            plot.add_queue(queue, quota={"cpu": "20"})
        labels = {"muster.dev/queue": plot.queue(queue)}
        plot.create(gang(name, group(replicas=WORKERS), labels=labels))
    assert sorted(run_one_after_another(plot, names)) == names


STRANGERS = 4
LARGE = 6
"""Workers of a gang that never has all of its pods while two strangers are left."""


def add_strangers(plot: Plot) -> None:
    for at in range(STRANGERS):
        plot.create(pod(f"stranger-{at}"))


def with_strangers(plot: Plot) -> None:
    """A quota for 8 pods, 4 of which are of no gang; what it counts cannot be foreseen."""
    plot.add_node(20)
    add_quota_of_defaults(plot, "small", 8)
    add_strangers(plot)


def free_strangers(plot: Plot, left: int = 0) -> None:
    """Delete the strangers but for some, which are deleted next time."""
    for each in plot.all("Pod"):
        name, _, number = each["metadata"]["name"].partition("-")
        if name == "stranger" and int(number) >= left:
            plot.delete("Pod", each["metadata"]["name"])


def have_it_make_way(plot: Plot, early: str) -> None:
    """A large gang that has 4 pods meets one of a higher priority; then room for that comes free.

    Not all of the strangers go at once: KubeRay could make the last pods of the large gang first.
    """
    plot.wait(lambda: len(plot.pods(early)) == 8 - STRANGERS, "a part of its pods")
    high = plot.add_priority_class("high", 100)
    first = head(priorityClassName=high)
    workers = group(replicas=WORKERS, priorityClassName=high)
    plot.create(gang("urgent", workers, head_group=first))
    # Held from its creation where the webhook knows by then that nothing is left.
    plot.wait(lambda: plot.status("urgent").get("reason") == "PodsRefused", "it to be refused")
    free_strangers(plot, left=2)
    plot.wait_running("urgent", WORKERS + 1)
    assert suspended(plot, early)
    plot.wait_message(early, "it made way for urgent")
    free_strangers(plot)


@pytest.mark.long
def test_a_ray_job_with_a_deadline_makes_way_and_runs_later(plot: Plot) -> None:
    with_strangers(plot)
    job = ray_job("timed", group(replicas=LARGE), labels=GANG, activeDeadlineSeconds=3600)
    plot.create(job)
    name = plot.wait(
        lambda: plot.get("RayJob", "timed").get("status", {}).get("rayClusterName"), "RayCluster"
    )
    have_it_make_way(plot, name)
    plot.delete("RayCluster", "urgent")
    plot.wait_running(name, LARGE + 1)


@pytest.mark.long
def test_someone_who_resumes_it_again_and_again_blocks_none(plot: Plot) -> None:
    with_strangers(plot)
    plot.create(gang("early", group(replicas=LARGE)))
    have_it_make_way(plot, "early")
    for _ in range(3):
        plot.patch("RayCluster", "early", {"spec": {"suspend": False}})
        plot.wait(lambda: len(plot.pods("early")) == 3, "pods as far as the quota goes")
    plot.delete("RayCluster", "urgent")
    plot.wait_running("early", LARGE + 1)


@pytest.mark.long
def test_a_ray_service_comes_before_gangs_that_can_be_suspended(plot: Plot) -> None:
    with_strangers(plot)
    plot.create(gang("early", group(replicas=WORKERS)))
    plot.wait(lambda: len(plot.pods("early")) == 8 - STRANGERS, "a part of its pods")
    plot.create(ray_service("serve", group(replicas=WORKERS), labels=GANG))
    (served,) = plot.wait(lambda: plot.gangs().keys() - {"early"}, "the Gang of the RayService")
    plot.wait_phase(served, "Gathering", "PodsRefused")
    free_strangers(plot)
    plot.wait_running(served, WORKERS + 1)
    plot.delete("RayService", "serve")
    plot.wait_running("early", WORKERS + 1)


@pytest.mark.long
def test_a_quota_of_gpus_is_lowered_and_raised(plot: Plot) -> None:
    """The gangs never fit for a time, and start once they do."""
    plot.add_nodes(NodeSpec("node", cpus=20, memory="100Gi", gpus=20))
    add_quota(plot, "gpus", {f"requests.{GPU}": 6})
    names = ["a", "b"]
    hungry = requests(**{GPU: "1"})
    set_gpus(plot, 3)
    for name in names:
        plot.create(gang(name, group(replicas=WORKERS, resources=hungry)))
        plot.wait_message(name, "a ResourceQuota never admits all of it")
    set_gpus(plot, 6)
    assert sorted(run_one_after_another(plot, names)) == names


def set_gpus(plot: Plot, most: int) -> None:
    plot.patch("ResourceQuota", "gpus", {"spec": {"hard": {f"requests.{GPU}": str(most)}}})
