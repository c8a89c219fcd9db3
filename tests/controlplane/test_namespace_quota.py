"""Gangs of a namespace whose ResourceQuotas do not hold all of them start one after another."""

from collections.abc import Sequence

import pytest

from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import GANG, Json, gang, group, ray_job, requests

WORKERS = 4
"""Of each gang, beside its head."""

LONG = 120.0

GPU = "example.com/gpu"


def add_quota(plot: Plot, name: str, hard: Json, **spec: object) -> None:
    amounts = {key: str(value) for key, value in hard.items()}
    made = {"metadata": {"name": name}, "spec": {"hard": amounts, **spec}}
    plot.create({"kind": "ResourceQuota", **made})
    plot.wait(
        lambda: plot.get("ResourceQuota", name).get("status", {}).get("used"),
        "the quota to be in force",
    )


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
    defaults = {"default": {"cpu": "1", "memory": "1Gi"}, "type": "Container"}
    plot.create(
        {"kind": "LimitRange", "metadata": {"name": "range"}, "spec": {"limits": [defaults]}}
    )
    add_quota(plot, "wide", {"pods": 100, "requests.cpu": 100})
    add_quota(plot, "narrow", hard, **spec)
    names = ["a", "b", "c"]
    for name in names:
        plot.create(gang(name, group(replicas=WORKERS)))
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


@pytest.mark.long
def test_a_ray_job_with_a_deadline_makes_way_and_runs_later(plot: Plot) -> None:
    plot.add_node(20)
    add_quota(plot, "small", {"requests.cpu": 4})
    plot.create(gang("first", group(replicas=WORKERS)))
    job = ray_job("timed", group(replicas=WORKERS), labels=GANG, activeDeadlineSeconds=3600)
    plot.create(job)
    plot.wait(lambda: plot.get("RayJob", "timed")["status"]["rayClusterName"], "its RayCluster")
    plot.wait(lambda: len(plot.gangs()) == 2, "both Gangs")
    plot.patch("ResourceQuota", "small", {"spec": {"hard": {"requests.cpu": "8"}}})
    plot.wait(lambda: len(plot.bound("first")) == WORKERS + 1, "the first to start", seconds=LONG)
    plot.delete("RayCluster", "first")
    name = plot.get("RayJob", "timed")["status"]["rayClusterName"]
    plot.wait(lambda: len(plot.bound(name)) == WORKERS + 1, "the job to start", seconds=LONG)


@pytest.mark.long
def test_someone_who_resumes_it_again_and_again_blocks_none(plot: Plot) -> None:
    """It comes before those that can be suspended, from the first time on."""
    plot.add_node(20)
    add_quota(plot, "small", {"pods": 8})
    for name in ("a", "b", "c"):
        plot.create(gang(name, group(replicas=WORKERS)))
    held = plot.wait(lambda: suspended(plot), "one to make way", seconds=LONG)[0]
    for _ in range(3):
        plot.patch("RayCluster", held, {"spec": {"suspend": False}})
    assert sorted(run_one_after_another(plot, ["a", "b", "c"])) == ["a", "b", "c"]


def suspended(plot: Plot) -> list[str]:
    """The names of RayClusters that are suspended."""
    found = (each for each in plot.all("RayCluster") if each["spec"].get("suspend"))
    return [each["metadata"]["name"] for each in found]


@pytest.mark.long
def test_a_quota_of_gpus_is_raised_and_lowered(plot: Plot) -> None:
    plot.add_node(20)
    add_quota(plot, "gpus", {f"requests.{GPU}": 6})
    hungry = requests(**{GPU: "1"})
    names = ["a", "b"]
    for name in names:
        plot.create(gang(name, group(replicas=WORKERS, resources=hungry)))
    for gpus in (3, 2, 5):
        change = {"spec": {"hard": {f"requests.{GPU}": str(gpus)}}}
        plot.patch("ResourceQuota", "gpus", change)
    plot.wait(lambda: len(pods_with(plot, GPU)) >= WORKERS, "a gang's pods", seconds=LONG)


def pods_with(plot: Plot, resource: str) -> list[Json]:
    """The pods that ask for a resource."""
    asked = (
        (each, each["spec"]["containers"][0]["resources"].get("requests", {}))
        for each in plot.all("Pod")
    )
    return [each for each, amounts in asked if resource in amounts]
