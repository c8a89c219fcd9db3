"""RayJobs of every submission mode are stopped for others, start again, and reach their end.

The dashboards are played (`dashboards.py`), and so are the submitters: what they would do is done
to the dashboard, and to the status of their pod or container.
"""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from kube.objects import names
from tests.controlplane.dashboards import Dashboards
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import GANG, Json, gang, group, ray_job
from tests.controlplane.test_opt_in import owners
from tests.controlplane.test_preemption import urgent, with_queue

MODES = ("K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
SUBMITTER = "ray-job-submitter"
ELSEWHERE = "submitters"
"""A scheduler that is not there: submitters that it is to place end only when a test says so."""
_NUMBERS = itertools.count(1)


class Job:
    """A RayJob in a plot, and its submitter."""

    def __init__(self, plot: Plot, dashboards: Dashboards, mode: str, **spec: Any) -> None:
        self.plot, self.dashboards, self.mode = plot, dashboards, mode
        self.name = f"{mode.removesuffix('Mode').lower()}-{next(_NUMBERS)}"
        dashboards.open(plot)
        labels = {**GANG, names.QUEUE: plot.queue("team")}
        plot.create(_manifest(self.name, mode, labels, spec))

    @property
    def status(self) -> Json:
        found: Json = self.plot.get("RayJob", self.name).get("status", {})
        return found

    @property
    def cluster(self) -> str:
        """The RayCluster that there is now; empty while there is none."""
        owned = [c["metadata"] for c in self.plot.all("RayCluster") if self.name in owners(c)]
        return str(owned[-1]["name"]) if owned else ""

    @property
    def pods(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.plot.pods(self.cluster)}

    def wait_state(self, *states: str) -> None:
        self.plot.wait(
            lambda: self.status.get("jobDeploymentStatus") in states,
            f"RayJob {self.name} to be {states}",
        )

    def wait_running(self) -> None:
        """Wait until the job runs on Ray, submitted as its mode has it."""
        if self.mode == "InteractiveMode":
            self.wait_state("Waiting", "Running")
            self.plot.patch("RayJob", self.name, {"spec": {"jobId": self.name}})
        self.wait_state("Running")
        self.plot.wait_running(self.cluster, 2)
        if self.mode != "HTTPMode":
            self.dashboards.submit(self.plot, self.cluster, self.status["jobId"])
        self._touch()
        self.plot.wait(self._runs, f"the job of {self.name} to run")

    def _touch(self) -> None:
        """Have KubeRay look at once: where no dashboard answered it asks ever more seldom."""
        annotations = {"test.muster.dev/touched": str(next(_NUMBERS))}
        self.plot.patch("RayJob", self.name, {"metadata": {"annotations": annotations}})

    def _runs(self) -> bool:
        told = self.status
        runs = self.dashboards.runs(self.plot, self.cluster, told["jobId"])
        return runs and told.get("jobStatus") == "RUNNING"

    def wait_next_cluster(self, first: str) -> str:
        """Wait for another RayCluster than the first, all of its pods held back."""
        there = self.plot.wait(
            lambda: self.cluster if self.cluster != first else "", f"the retry of {self.name}"
        )
        self.plot.wait_phase(there, "Queued")
        assert all(is_held(pod) for pod in self.plot.wait_pods(there, 2))
        return there

    def wait_evicted(self, first: str, before: set[str]) -> None:
        """Wait until the pods of the first RayCluster were made again, held back."""
        self.plot.wait_phase(first, "Queued")
        assert all(is_held(pod) for pod in self.plot.wait_pods(first, 2))
        assert (self.cluster, self.pods & before) == (first, set())

    def is_resumed(self) -> bool:
        """Whether no suspension is left on the RayJob, nor Muster's note of one."""
        found = self.plot.get("RayJob", self.name)
        noted = names.SUSPENDED_FOR in found["metadata"].get("annotations", {})
        return not noted and not found["spec"].get("suspend")

    def end_well(self) -> None:
        """Let the job succeed, and wait until KubeRay says so."""
        self.dashboards.succeed(self.plot, self.cluster, self.status["jobId"])
        self.end_submitter("Succeeded")
        self._touch()
        self.wait_state("Complete")
        assert self.status["jobStatus"] == "SUCCEEDED"

    def fail(self) -> None:
        """Let the job fail on Ray; what KubeRay makes of it is its own."""
        self.dashboards.fail(self.plot, self.cluster, self.status["jobId"])
        self._touch()

    def end_submitter(self, phase: str) -> None:
        """End the submitter of a mode that has one."""
        if self.mode == "K8sJobMode":
            (pod,) = (pod for pod in self.plot.all("Pod") if _is_of_job(pod, self.name))
            self.plot.patch_status("Pod", pod["metadata"]["name"], {"phase": phase})
        if self.mode == "SidecarMode":
            (pod,) = self.plot.pods(self.cluster, "head")
            self.plot.patch_status("Pod", pod["metadata"]["name"], _without_submitter(pod))


def _manifest(name: str, mode: str, labels: dict[str, str], spec: Json) -> Json:
    made = ray_job(name, group(replicas=1), labels=labels, submissionMode=mode, **spec)
    if mode == "K8sJobMode":
        made["spec"]["submitterPodTemplate"]["spec"]["schedulerName"] = ELSEWHERE
        made["spec"]["submitterConfig"] = {"backoffLimit": 0}
    else:
        del made["spec"]["submitterPodTemplate"]
    return made


def _is_of_job(pod: Json, name: str) -> bool:
    owners = pod["metadata"].get("ownerReferences", ())
    is_owned = ("Job", name) in ((owner["kind"], owner["name"]) for owner in owners)
    return is_owned and "deletionTimestamp" not in pod["metadata"]


def _without_submitter(pod: Json) -> Json:
    """The statuses of a head's containers with the submitter at its end."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    ended = {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}
    statuses = pod["status"]["containerStatuses"]
    assert SUBMITTER in [each["name"] for each in statuses]
    return {
        "containerStatuses": [
            {**each, "state": ended} if each["name"] == SUBMITTER else each for each in statuses
        ]
    }


@pytest.mark.variant
def test_a_rayjob_of_each_mode_is_stopped_and_reaches_its_second_end(
    plot: Plot, dashboards: Dashboards
) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 11)
    jobs = [Job(plot, dashboards, mode, shutdownAfterJobFinishes=True) for mode in MODES]
    unsubmitted = Job(plot, dashboards, "InteractiveMode", shutdownAfterJobFinishes=True)
    for job in jobs:
        job.wait_running()
    unsubmitted.wait_state("Waiting")
    first, before = [job.cluster for job in jobs], (unsubmitted.cluster, unsubmitted.pods)

    plot.create(urgent(plot, "urgent", 9, labels))
    plot.create(gang("later", group(replicas=1), labels=labels))
    plot.wait_running("urgent", 10)
    for job, cluster in zip(jobs, first, strict=True):
        job.wait_next_cluster(cluster)
        plot.wait(job.is_resumed, f"RayJob {job.name} to be resumed")
    unsubmitted.wait_evicted(*before)
    # The next RayClusters are younger than `later`, and wait in the places of their RayJobs.
    plot.wait(lambda: plot.status("later").get("position") == 6, "later to be the last of six")

    plot.delete_whole("urgent")
    for job in (*jobs, unsubmitted):
        job.wait_running()
        job.end_well()


@pytest.mark.long
def test_a_rayjob_with_a_retry_that_cannot_be_suspended_is_tried_again(
    plot: Plot, dashboards: Dashboards
) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 7)
    by_job, by_http, sidecar = (Job(plot, dashboards, mode, backoffLimit=1) for mode in MODES[:3])
    for job in (by_job, by_http, sidecar):
        job.wait_running()
    first, kept = [by_job.cluster, sidecar.cluster], by_http.pods

    plot.create(urgent(plot, "urgent", 4, labels))
    plot.wait_running("urgent", 5)
    by_job.end_submitter("Failed")
    by_job.wait_next_cluster(first[0])
    sidecar.wait_next_cluster(first[1])
    plot.create(urgent(plot, "second", 1, labels))
    plot.wait_message("second", f"RayJob {by_http.name} would be lost: in HTTPMode")
    assert by_http.pods == kept

    for name in ("second", "urgent"):
        plot.delete_whole(name)
    for job in (by_job, sidecar):
        job.wait_running()
        job.end_well()
        assert job.status["failed"] == 1


@pytest.mark.variant
def test_a_sidecar_job_that_lost_its_head_keeps_no_slot_for_it(
    plot: Plot, dashboards: Dashboards
) -> None:
    """KubeRay makes no other head in that RayCluster, which it deletes for a retry alone."""
    labels = with_queue(plot, 3)
    job = Job(plot, dashboards, "SidecarMode")
    job.wait_running()
    plot.create(gang("next", group(replicas=0), labels=labels))
    plot.wait_phase("next", "Queued")
    (head,) = plot.pods(job.cluster, "head")
    plot.delete("Pod", head["metadata"]["name"])
    plot.wait_phase(job.cluster, "Running", "HeadLost")
    plot.wait_running("next", 1)
    job.wait_state("Failed")
    assert list(plot.pods(job.cluster, "head")) == []


@pytest.mark.long
def test_a_rayjob_that_may_be_lost_is_stopped_where_its_queue_allows_that(
    plot: Plot, dashboards: Dashboards
) -> None:
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 9)
    jobs = [Job(plot, dashboards, mode) for mode in MODES]
    by_job, by_http, sidecar, interactive = jobs
    for job in jobs:
        job.wait_running()
    first, before = [job.cluster for job in jobs], [job.pods for job in jobs]
    plot.create(urgent(plot, "urgent", 7, labels))
    plot.wait_message("urgent", "would be lost: it has no retry left (spec.backoffLimit)")
    assert [job.pods for job in jobs] == before

    plot.change_queue("team", preemption={"jobsMayBeLost": True})
    plot.wait_running("urgent", 8)
    by_job.end_submitter("Failed")
    by_job.wait_state("Failed")
    sidecar.wait_state("Failed")
    by_http.wait_evicted(first[1], before[1])
    interactive.wait_evicted(first[3], before[3])

    plot.delete_whole("urgent")
    for job in (by_http, interactive):
        job.wait_running()
        job.end_well()
