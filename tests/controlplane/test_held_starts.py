"""Held gangs on the real control plane: no pod exists until the whole gang has its place."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import names
from testbed.muster import Muster
from testbed.recorder import Recorder
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import GANG, Json, gang, group, ray_job, ray_service
from tests.controlplane.test_preemption import budget, urgent, wait_budget, with_queue

pytestmark = pytest.mark.versions

WHEN_ADMITTED = {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED}


def held(name: str, workers: int = 2, **more: Any) -> Json:
    """A gang of so many workers and a head that is to be held."""
    cluster = gang(name, group(replicas=workers), **more)
    cluster["metadata"]["annotations"] = dict(WHEN_ADMITTED)
    return cluster


def suspended(plot: Plot, name: str) -> bool:
    return bool(plot.get("RayCluster", name)["spec"].get("suspend"))


def phase(plot: Plot, name: str) -> str:
    return str(plot.status(name).get("held", {}).get("phase", ""))


def had_pods(recorder: Recorder, plot: Plot, cluster: str) -> bool:
    """Whether any pod of a Ray cluster was ever seen."""
    return any(each.gang == (plot.name, cluster) for each in recorder.events)


def test_a_held_gang_has_no_pods_until_it_runs_whole(plot: Plot, recorder: Recorder) -> None:
    plot.add_node(4)
    plot.create(gang("first", group(replicas=2)))
    plot.wait_running("first", 3)

    plot.create(held("second", 2))
    status = plot.wait_phase("second", "Queued", "InsufficientResources")
    assert (suspended(plot, "second"), phase(plot, "second")) == (True, "Waiting")
    gathered = condition(status, "Gathered")
    assert (gathered["status"], gathered["reason"]) == ("True", "Held")
    assert not had_pods(recorder, plot, "second")

    plot.delete_whole("first")
    plot.wait_running("second", 3)
    assert (suspended(plot, "second"), phase(plot, "second")) == (False, "Resumed")


@pytest.mark.variant
def test_the_rayjob_of_a_queue_that_holds_runs_and_one_with_a_deadline_is_gated(
    plot: Plot, recorder: Recorder
) -> None:
    plot.add_node(5)
    plot.add_queue("calm", createPods="WhenAdmitted")
    labels = {**GANG, names.QUEUE: plot.queue("calm")}
    plot.create(gang("first", group(replicas=3)))
    plot.wait_running("first", 4)

    plot.create(ray_job("job", group(replicas=1), labels=labels))
    cluster = plot.wait(lambda: next(iter(_waiting(plot, "job")), None), "the job's gang to wait")
    assert not had_pods(recorder, plot, cluster)
    plot.create(ray_job("hasty", group(replicas=1), labels=labels, activeDeadlineSeconds=3600))
    hasty = plot.wait(lambda: next(iter(_waiting(plot, "hasty")), None), "the other to wait")
    assert all(is_held(pod) for pod in plot.wait_pods(hasty, 2))
    told = condition(plot.status(hasty), "StartHeld")
    assert told["status"] == "False"
    assert "activeDeadlineSeconds of RayJob hasty" in told["message"]
    plot.wait_message(hasty, "KubeRay ends RayJob hasty at 2")
    runs = "activeDeadlineSeconds of 3600 s runs"
    plot.wait_event("hasty", "InsufficientResources", runs, kind="RayJob")
    assert not had_pods(recorder, plot, cluster)

    plot.delete_whole("first")
    plot.wait_running(cluster, 2)


def _waiting(plot: Plot, job: str) -> Iterator[str]:
    """The gangs of a RayJob that wait, by name."""
    for name, found in plot.gangs().items():
        if name.startswith(f"{job}-") and found.get("status", {}).get("phase") == "Queued":
            yield name


@pytest.mark.variant
def test_an_opt_out_resumes_it_and_a_rayservice_is_never_held(plot: Plot) -> None:
    plot.add_node(1)
    plot.create(held("out", 2))
    plot.wait_phase("out", "Queued")
    plot.patch("RayCluster", "out", {"metadata": {"labels": {names.OPT_IN: "false"}}})
    plot.wait(lambda: not suspended(plot, "out"), "the RayCluster to be resumed")
    assert not any(is_held(pod) for pod in plot.wait_pods("out", 3))
    plot.wait_no_gang("out")

    service = ray_service("serve", group(replicas=1), labels=GANG)
    service["metadata"]["annotations"] = dict(WHEN_ADMITTED)
    plot.create(service)
    name = plot.wait(lambda: next(iter(_waiting(plot, "serve")), None), "the service to wait")
    assert not suspended(plot, name)
    assert "RayService serve made it" in condition(plot.status(name), "StartHeld")["message"]


def test_a_quota_of_the_namespace_has_nothing_created(plot: Plot, recorder: Recorder) -> None:
    plot.add_node(4)
    plot.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "few"},
            "spec": {"hard": {"pods": "2"}},
        }
    )
    plot.create(held("a", 2))
    plot.wait_message("a", "ResourceQuota few: the gang needs 3 of pods")
    assert not had_pods(recorder, plot, "a")
    plot.patch("ResourceQuota", "few", {"spec": {"hard": {"pods": "3"}}})
    plot.wait_running("a", 3)


def test_one_that_is_stopped_for_another_is_suspended_again_and_comes_back(plot: Plot) -> None:
    """Not while a budget keeps one of its pods, which a suspension would not have asked."""
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 3, deleteAfterSeconds=3600)
    plot.create(held("low", 2, labels=labels))
    plot.wait_running("low", 3)
    plot.create(budget("low", 2))
    wait_budget(plot, "low", 1)
    plot.create(urgent(plot, "p", 2, labels))
    plot.wait_phase("low", "Preempting", "Preempted", "an eviction is refused")
    assert (suspended(plot, "low"), phase(plot, "low")) == (False, "Resumed")

    plot.delete("PodDisruptionBudget", "low")
    plot.wait_running("p", 3)
    status = plot.wait_phase("low", "Queued")
    assert condition(status, "Evicted")["status"] == "True"
    plot.wait(lambda: not plot.pods("low"), "the pods of low to go")
    assert (suspended(plot, "low"), phase(plot, "low")) == (True, "Waiting")

    plot.delete_whole("p")
    plot.wait_running("low", 3)


@pytest.mark.variant
def test_what_is_created_while_the_webhook_is_down_is_gated_as_ever(
    plot: Plot, webhook_down: Muster
) -> None:
    plot.add_node(2)
    plot.create(held("a", 2))
    webhook_down.webhook.restart()
    webhook_down.wait_ready()
    status = plot.wait_phase("a", "Queued")
    assert not suspended(plot, "a")
    assert all(is_held(pod) for pod in plot.wait_pods("a", 3))
    assert condition(status, "StartHeld")["reason"] == "NotHeld"
