"""Jobs on a real Ray: submitted, shown, followed, failed and stopped, through a real KubeRay.

The owner's RayCluster has a real head and worker of Ray behind it, with Ray's dashboard. The pods
that submit jobs run what KubeRay wrote for them, with Ray's own client, and their logs come from a
kubelet's port through the API server.
"""

import http
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cli.endings import FINE, NO
from testbed.cluster import Cluster
from testbed.kubelet.kubelet import STAYING_JOB_STAGES, Kubelet
from testbed.muster import start_muster, with_muster
from testbed.options import Options
from testbed.ray_dashboard import RayDashboard
from testbed.ray_nodes import ENVIRONMENT, missing
from testbed.waiting import WAIT_SECONDS
from tests.controlplane.led_dashboards import LedDashboards
from tests.controlplane.plot import Plot, plotted
from tests.controlplane.rayclusters import Json, gang, group
from tests.controlplane.test_cli import run
from tests.controlplane.test_managing import done, people_of, refused, written
from tests.packaging.tree import ROOT

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

STEPS = """
import pathlib, sys, time
print("first")
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
print("last")
"""
"""Prints, waits for a file, and prints again."""

ON_A_WORKER = """
import os, ray
ray.init()
print(ray.get(ray.remote(lambda: "on " + os.environ["RAY_CLOUD_INSTANCE_ID"]).remote()))
"""
"""Has a worker of Ray name the pod that it is in."""


@dataclass(frozen=True)
class Site:
    """A RayCluster `train` that runs with a real Ray, and who submits jobs to it."""

    plot: Plot
    ray: RayDashboard
    kubelet: Kubelet
    user: Path

    def submit(self, name: str, *words: str) -> None:
        """Submit a job as the user, and wait until Ray itself runs it."""
        done(self.user, "submit", name, "--cluster", "train", "--", *words)
        self.wait_ray(name, "RUNNING")

    def submission(self, name: str) -> str:
        """Ray's name of a job; empty before KubeRay has chosen it."""
        return str(self.plot.get("RayJob", name).get("status", {}).get("jobId", ""))

    def wait_ray(self, name: str, state: str) -> Json:
        """Wait until a job is in this state, as Ray itself says."""
        job = self.plot.wait(lambda: self.submission(name), f"RayJob {name} to have an id")

        def there() -> Json:
            found = self.ray.job(job)
            return found if found.get("status") == state else {}

        return self.plot.wait(there, f"Ray to call job {name} {state}")

    def row(self, name: str) -> Json:
        """What `muster jobs` shows of a job."""
        rows = json.loads(done(self.user, "jobs", "-o", "json"))["jobs"]
        (found,) = [each for each in rows if each["name"] == name]
        assert isinstance(found, dict)
        return found

    def wait_row(self, name: str, job: str, deployment: str) -> Json:
        """Wait until `muster jobs` shows these states, Ray's and KubeRay's."""

        def shown() -> Json:
            row = self.row(name)
            return row if (row["job"], row["deployment"]) == (job, deployment) else {}

        return self.plot.wait(shown, f"job {name} to be shown as {job}, {deployment}")

    def submitters(self, name: str) -> list[str]:
        """The pods that submit a job, of which one may have died."""
        wanted = "batch.kubernetes.io/job-name"
        pods = (each["metadata"] for each in self.plot.all("Pod"))
        return [each["name"] for each in pods if each.get("labels", {}).get(wanted) == name]


@pytest.fixture(scope="module")
def dashboards() -> Iterator[LedDashboards]:
    with LedDashboards() as dashboards:
        yield dashboards


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, dashboards: LedDashboards
) -> Iterator[Cluster]:
    """One of its own, for its kwok leaves pods of Jobs alone once they run."""
    directory = tmp_path_factory.mktemp("real-jobs") / "root"
    options = Options(kuberay_env=dashboards.environment, kwok_stages=STAYING_JOB_STAGES)
    with Cluster.start(directory, with_muster(options)) as cluster:
        start_muster(cluster)
        yield cluster


@pytest.fixture(scope="module")
def kubelet(cluster: Cluster, dashboards: LedDashboards) -> Iterator[Kubelet]:
    with Kubelet(cluster, ENVIRONMENT, dashboards.led) as kubelet:
        yield kubelet


@contextmanager
def with_ray(
    kubelet: Kubelet, cluster: Cluster, dashboards: LedDashboards, folder: Path, manifest: Json
) -> Iterator[Site]:
    """The owner's RayCluster `train` of one worker, with the Ray that it would run."""
    with plotted(cluster, folder.name) as plot:
        people = people_of(plot)
        plot.add_node(8)
        kubelet.take(plot.node("node"))
        path = written(plot, folder / "train.yaml", manifest)
        done(people["owner"], "create", "-f", path, "--no-fit")
        plot.wait_running("train", 2)
        with RayDashboard(cluster, plot.name, "train") as ray:
            plot.wait(lambda: len(ray.seen()["running"]) == 2, "Ray to run on both pods")
            dashboards.led[f"train-head-svc.{plot.name}.svc.cluster.local:8265"] = ray.dashboard
            for pod in plot.pods("train"):
                name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
                kubelet.answer_for(plot.name, name, container, ray.process(name))
            yield Site(plot, ray, kubelet, people["user"])


@pytest.fixture(scope="module")
def site(
    kubelet: Kubelet,
    cluster: Cluster,
    dashboards: LedDashboards,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    folder, manifest = tmp_path_factory.mktemp("jobs"), gang("train", group(replicas=1))
    with with_ray(kubelet, cluster, dashboards, folder, manifest) as site:
        yield site


@contextmanager
def followed(kubeconfig: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, as a person starts it who goes on with other things meanwhile."""
    command = [sys.executable, "-c", "from cli.__main__ import main; main()"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], line: str) -> list[str]:
    """The lines up to one, which has to come before the end."""
    assert process.stdout is not None
    lines: list[str] = []
    while line not in lines:
        read = process.stdout.readline()
        assert read, (lines, process.communicate(timeout=WAIT_SECONDS)[1])
        lines.append(read.rstrip("\n"))
    return lines


def rest_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code, and what is left of both outputs, once it has ended by itself."""
    assert process.stdout is not None
    assert process.stderr is not None
    rest, said = process.stdout.read(), process.stderr.read()
    return process.wait(WAIT_SECONDS), rest, said


def test_a_job_runs_is_followed_and_succeeds(site: Site, tmp_path: Path) -> None:
    go = tmp_path / "go"
    site.submit("steps", "python", "-c", STEPS, str(go))
    with followed(site.user, "logs", "--job", "steps", "--follow") as follower:
        read_until(follower, "first")
        row = site.wait_row("steps", "RUNNING", "Running")
        assert (row["cluster"], row["ended"]) == ("train", "")
        assert follower.poll() is None
        go.touch()
        code, rest, said = rest_of(follower)
    assert (code, "last" in rest.splitlines()) == (FINE, True), said
    assert said.splitlines()[-1] == (
        f"RayJob {site.plot.name}/steps: SUCCEEDED: Job finished successfully."
    )
    row = site.wait_row("steps", "SUCCEEDED", "Complete")
    assert row["began"] < row["ended"]
    (pod,) = site.submitters("steps")
    log = site.plot.cluster.kubectl("logs", pod, "-n", site.plot.name)
    assert [each for each in log.splitlines() if each in ("first", "last")] == ["first", "last"]
    assert done(site.user, "logs", "--job", "steps") == log
    tail = done(site.user, "logs", "--job", "steps", "--tail", "2")
    assert tail.splitlines() == log.splitlines()[-2:]


def test_a_job_uses_the_workers_of_the_ray_cluster(site: Site) -> None:
    said = done(
        site.user,
        "submit",
        "used",
        "--cluster",
        "train",
        "--follow",
        "--",
        "python",
        "-c",
        ON_A_WORKER,
    )
    (worker,) = site.plot.pods("train", "worker")
    assert f"on {worker['metadata']['name']}" in said.splitlines()


def test_a_job_that_fails_is_shown_with_its_message(site: Site) -> None:
    words = ("python", "-c", "print('so far'); raise SystemExit(3)")
    ended = run(site.user, "submit", "bad", "--cluster", "train", "--follow", "--", *words)
    assert (ended.exit_code, "so far" in ended.stdout.splitlines()) == (NO, True), ended.output
    assert f"RayJob {site.plot.name}/bad: FAILED: " in ended.stderr.splitlines()[-1]
    assert "exit code 3" in ended.stderr
    row = site.wait_row("bad", "FAILED", "Failed")
    assert row["reason"] == "AppFailed"
    assert "exit code 3" in row["message"]


def test_a_line_of_shell_runs_on_ray_alone(site: Site) -> None:
    """The environment tells where: the submitter has no pod of Ray in its own."""
    line = 'true && echo "at $RAY_CLOUD_INSTANCE_ID"; for i in 1 2; do echo "$i"; done'
    said = done(site.user, "submit", "line", "--cluster", "train", "--follow", "--", line)
    assert [each for each in said.splitlines() if each in (f"at {site.ray.head}", "1", "2")] == [
        f"at {site.ray.head}",
        "1",
        "2",
    ]
    assert site.wait_ray("line", "SUCCEEDED")["entrypoint"] == f"sh -c {shlex.quote(line)}"


def test_the_next_submitter_is_followed_where_one_dies(site: Site, tmp_path: Path) -> None:
    """It submits nothing again: the job runs on, and its log is printed from its begin."""
    go = tmp_path / "go"
    site.submit("twice", "python", "-c", STEPS, str(go))
    with followed(site.user, "logs", "--job", "twice", "--follow") as follower:
        read_until(follower, "first")
        (first,) = site.submitters("twice")
        site.kubelet.process(site.plot.name, first).kill()
        read_until(follower, "first")
        go.touch()
        code, rest, said = rest_of(follower)
    assert (code, "last" in rest.splitlines()) == (FINE, True), said
    assert "its submitter ended early: the log of the next one begins anew" in said
    assert len(site.submitters("twice")) == 2
    assert site.wait_row("twice", "SUCCEEDED", "Complete")["message"].startswith("Job finished")


def test_the_deletion_of_a_job_stops_it(site: Site, tmp_path: Path) -> None:
    site.submit("endless", "python", "-c", STEPS, str(tmp_path / "never"))
    job, (pod,) = site.submission("endless"), site.submitters("endless")
    said = done(site.user, "delete", "--job", "endless", "--yes")
    assert "RayJob" in said
    site.plot.wait_gone("RayJob", "endless")
    site.plot.wait(lambda: site.ray.job(job)["status"] == "STOPPED", "Ray to stop the job")
    site.plot.wait_gone("Pod", pod)
    site.plot.wait(
        lambda: not site.kubelet.process(site.plot.name, pod).running, "the submitter to be ended"
    )
    assert "no RayJob endless" in refused(site.user, "logs", "--job", "endless")


def test_the_logs_of_the_pods_of_a_ray_cluster(site: Site) -> None:
    (worker,) = site.plot.pods("train", "worker")
    name = worker["metadata"]["name"]
    assert "Ray runtime started" in done(site.user, "logs", "train")
    assert "Ray runtime started" in done(site.user, "logs", "train", "--group", "workers")
    lines = done(site.user, "logs", "train", "--all", "--tail", "1").splitlines()
    assert [each.partition(" ")[0] for each in lines] == [f"[{site.ray.head}]", f"[{name}]"]
    assert "previous terminated container" in refused(site.user, "logs", "train", "--previous")


def test_a_ray_that_wants_a_token_runs_jobs_of_who_has_none(
    kubelet: Kubelet,
    cluster: Cluster,
    dashboards: LedDashboards,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """KubeRay makes the token, and gives it to the submitter: the user may read no Secret."""
    manifest = gang("train", group(replicas=1), authOptions={"mode": "token"})
    folder = tmp_path_factory.mktemp("guarded")
    with with_ray(kubelet, cluster, dashboards, folder, manifest) as site:
        assert site.ray.token
        assert site.ray.get("/api/jobs/", "")[0] == http.HTTPStatus.UNAUTHORIZED
        submit = ("submit", "used", "--cluster", "train", "--follow", "--")
        said = done(site.user, *submit, "python", "-c", ON_A_WORKER)
        (worker,) = site.plot.pods("train", "worker")
        assert f"on {worker['metadata']['name']}" in said.splitlines()
        assert site.ray.token not in said
        assert site.wait_row("used", "SUCCEEDED", "Complete")["cluster"] == "train"
        with replace(cluster.api, token=token_of(site.user)).session() as session:
            path = f"/api/v1/namespaces/{site.plot.name}/secrets/train"
            assert session.request("GET", path)[0] == http.HTTPStatus.FORBIDDEN


def token_of(kubeconfig: Path) -> str:
    """The token of Kubernetes in a kubeconfig."""
    found: str = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    return found
