"""`muster submit`, `jobs`, `logs` and `queue create|edit`, against a cluster behind HTTP."""

import json
from pathlib import Path

import pytest
import yaml

from cli.endings import NO, WRONG_USE
from cli.read.ray import logs as reading
from kube.objects import names
from tests.cli.managing.clusters import Json, cluster
from tests.cli.write.cluster import Double
from tests.cli.write.conftest import Run


@pytest.fixture
def double(cluster: Double, monkeypatch: pytest.MonkeyPatch) -> Double:
    """A RayCluster that runs with a head and two workers, and nothing else."""
    monkeypatch.setattr(reading, "PAUSE", 0.01)
    monkeypatch.setattr(reading, "ENDING", 0.05)
    cluster.objects = {}
    cluster.writes.clear()
    running(cluster, "train")
    for name, kind, group in (
        ("train-head", "head", "headgroup"),
        ("train-w-1", "worker", "workers"),
        ("train-w-2", "worker", "workers"),
    ):
        labels = {
            names.RAY_CLUSTER: "train",
            names.RAY_NODE_TYPE: kind,
            names.RAY_GROUP: group,
        }
        cluster.add("pods", name, "team", labels=labels, spec=pod_spec("ray", "side"))
        cluster.logs[name] = f"{name} says a\n{name} says b".encode()
    return cluster


def pod_spec(*containers: str) -> Json:
    return {"nodeName": "node", "containers": [{"name": each} for each in containers]}


def running(double: Double, name: str, **spec: object) -> None:
    body = cluster(name, **spec)
    fields = {key: body[key] for key in ("apiVersion", "kind", "spec", "status")}
    double.add("rayclusters", name, "team", **fields)


def job(double: Double, name: str, mode: str = "", **status: str) -> Json:
    spec = {"entrypoint": "python a.py", "submissionMode": mode}
    return double.add("rayjobs", name, "team", kind="RayJob", spec=spec, status=status)


def submitter(double: Double, name: str, of: str, log: bytes | None = b"done\n") -> None:
    labels = {"batch.kubernetes.io/job-name": of}
    double.add("pods", name, "team", labels=labels, spec=pod_spec("ray-job-submitter"))
    if log is not None:
        double.logs[name] = log


# ---- submit


async def test_a_job_for_a_cluster_that_runs_selects_it(double: Double, muster: Run) -> None:
    words = ("--", "python", "a.py", "--lr", "0.1")
    done = await muster("submit", "nightly", "--cluster", "train", *words)
    assert (done.exit_code, done.stdout) == (0, "RayJob team/nightly created\n")
    made = double.get("rayjobs", "nightly", "team")["spec"]
    assert made == {
        "entrypoint": "python a.py --lr 0.1",
        "clusterSelector": {names.RAY_CLUSTER: "train"},
    }


async def test_a_job_may_have_a_cluster_of_its_own(
    double: Double, muster: Run, tmp_path: Path
) -> None:
    path = tmp_path / "env.yaml"
    path.write_text("pip: [x]\n")
    options = ("--like", "train", "--queue", "q", "--runtime-env", str(path), "--retries", "1")
    done = await muster("submit", "nightly", *options, "--no-fit", "--", "python a.py && b")
    assert done.exit_code == 0, done.stderr
    made = double.get("rayjobs", "nightly", "team")
    assert made["spec"]["entrypoint"] == "sh -c 'python a.py && b'"
    assert made["spec"]["runtimeEnvYAML"] == "pip: [x]\n"
    assert made["spec"]["rayClusterSpec"]["rayVersion"] == "2.52.0"
    assert "clusterSelector" not in made["spec"]
    dry = await muster("submit", "b", "--group", "w", "--no-fit", "--dry-run", "--", "x")
    assert yaml.safe_load(dry.stdout)["kind"] == "RayJob"
    assert len(double.all("rayjobs")) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--cluster", "train"], WRONG_USE, "COMMAND: absent"),
        (["--cluster", "train", "--group", "w", "--", "x"], WRONG_USE, "--cluster names one"),
        (["--cluster", "none", "--", "x"], NO, "no RayCluster none in namespace team"),
        (["--cluster", "asleep", "--", "x"], NO, "muster resume team/asleep"),
        (["--cluster", "train", "--retries", "1", "--", "x"], WRONG_USE, "retries: 1; allowed"),
        (["--like", "train", "--cluster-file", "x", "--", "x"], WRONG_USE, "one of both"),
        (["--if-fits", "--cluster", "train", "--", "x"], WRONG_USE, "--if-fits asks"),
        (["--runtime-env", "/none", "--", "x"], WRONG_USE, "--runtime-env /none: "),
    ],
)
async def test_a_job_that_cannot_be_is_refused(
    double: Double, muster: Run, arguments: list[str], code: int, said: str
) -> None:
    running(double, "asleep", suspend=True)
    done = await muster("submit", "nightly", *arguments)
    assert (done.exit_code, double.writes) == (code, [])
    assert said in done.stderr


async def test_a_job_on_a_cluster_that_is_not_ready_is_submitted_and_that_is_said(
    double: Double, muster: Run
) -> None:
    double.get("rayclusters", "train", "team")["status"] = {}
    done = await muster("submit", "nightly", "--cluster", "train", "--", "x")
    assert done.exit_code == 0
    assert "Note: RayCluster train is not ready: the job waits until it is" in done.stderr


async def test_a_job_is_followed_from_before_it_begins_to_its_end(
    double: Double, muster: Run
) -> None:
    """It is submitted, then its pod comes, then that begins, then KubeRay says how it ended."""
    steps = iter(("", "pod", "", "begun", "over"))

    def go_on(request: str) -> None:
        if not request.endswith("/rayjobs/nightly"):
            return
        match next(steps, ""):
            case "pod":
                submitter(double, "nightly-x", "nightly", None)
            case "begun":
                double.logs["nightly-x"] = b"working\n"
            case "over":
                found = double.get("rayjobs", "nightly", "team")
                found["status"] = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}

    double.behind = go_on
    done = await muster("submit", "nightly", "--cluster", "train", "--follow", "--", "x")
    assert (done.exit_code, done.stdout) == (0, "RayJob team/nightly created\nworking\n")
    assert "waiting: RayJob nightly has not begun, and has no pod" in done.stderr
    assert "waiting: pod team/nightly-x: container" in done.stderr
    assert done.stderr.endswith("RayJob team/nightly: SUCCEEDED\n")


async def test_the_next_submitter_is_followed_where_one_ends_early(
    double: Double, muster: Run
) -> None:
    """The first one ends while the job runs; the second has no node at once, then all the log."""
    job(double, "nightly", jobStatus="RUNNING", jobDeploymentStatus="Running")
    submitter(double, "nightly-1", "nightly", b"one\n")
    steps = iter(("", "dies", "", "", "placed", "", "over"))

    def go_on(request: str) -> None:
        if not request.endswith("/rayjobs/nightly"):
            return
        match next(steps, ""):
            case "dies":
                del double.objects["pods", "team", "nightly-1"]
                submitter(double, "nightly-2", "nightly", b"one\ntwo\n")
                del double.get("pods", "nightly-2", "team")["spec"]["nodeName"]
            case "placed":
                double.get("pods", "nightly-2", "team")["spec"]["nodeName"] = "node"
            case "over":
                found = double.get("rayjobs", "nightly", "team")
                found["status"] = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}

    double.behind = go_on
    done = await muster("logs", "--job", "nightly", "--follow")
    assert (done.exit_code, done.stdout) == (0, "one\none\ntwo\n")
    assert done.stderr.splitlines() == [
        "its submitter ended early: the log of the next one begins anew",
        "waiting: pod team/nightly-2: it has no node yet",
        "RayJob team/nightly: SUCCEEDED",
    ]


# ---- logs


async def test_the_log_of_a_cluster_is_its_heads(double: Double, muster: Run) -> None:
    done = await muster("logs", "train", "--tail", "5")
    assert (done.exit_code, done.stdout) == (0, "train-head says a\ntrain-head says b")
    assert double.logs_asked == ["train-head?tailLines=5&container=ray"]


async def test_lines_of_several_pods_begin_with_their_pod(double: Double, muster: Run) -> None:
    done = await muster("logs", "train", "--group", "workers", "-c", "side", "--previous")
    assert done.stdout.splitlines() == [
        "[train-w-1] train-w-1 says a",
        "[train-w-1] train-w-1 says b",
        "[train-w-2] train-w-2 says a",
        "[train-w-2] train-w-2 says b",
    ]
    assert "previous=true&container=side" in double.logs_asked[0]
    followed = await muster("logs", "train", "--all", "--follow")
    assert min(followed.stdout.splitlines()) == "[train-head] train-head says a"
    assert len(followed.stdout.splitlines()) == 6


async def test_a_pod_that_has_not_begun_keeps_no_other_back(double: Double, muster: Run) -> None:
    del double.logs["train-w-1"]
    done = await muster("logs", "train", "--all")
    assert done.exit_code == 0
    assert "train-w-2 says b" in done.stdout
    assert "pod team/train-w-1: container" in done.stderr
    alone = await muster("logs", "train", "--group", "workers", "--follow")
    assert "train-w-2 says a" in alone.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["none"], NO, "no RayCluster none in namespace team"),
        (["train", "--group", "x"], NO, "no pods of group x; there are pods of: headgroup, wo"),
        (["train", "-c", "x"], WRONG_USE, "--container: x; allowed of pod train-head: ray, side"),
        (["train", "--group", "a", "--all"], WRONG_USE, "--group names one group"),
        (["--job", "x", "--all"], WRONG_USE, "--job has one log"),
        (["--job", "x"], NO, "no RayJob x in namespace team"),
        (["--job", "http"], NO, "Ray's dashboard has it"),
        (["--job", "new"], NO, "RayJob new has not begun, and has no pod that submits it"),
        (["--job", "http", "--follow"], NO, "KubeRay submits it itself"),
    ],
)
async def test_a_log_that_is_not_there_is_said(
    double: Double, muster: Run, arguments: list[str], code: int, said: str
) -> None:
    job(double, "http", "HTTPMode")
    job(double, "new")
    done = await muster("logs", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr


async def test_the_log_of_a_job_is_its_latest_submitters(double: Double, muster: Run) -> None:
    job(double, "nightly", jobStatus="RUNNING")
    submitter(double, "nightly-1", "nightly", b"first\n")
    submitter(double, "nightly-2", "nightly", b"second\n")
    for number in (1, 2):
        meta = double.get("pods", f"nightly-{number}", "team")["metadata"]
        meta["creationTimestamp"] = f"2026-01-0{number}T00:00:00Z"
    assert (await muster("logs", "--job", "nightly")).stdout == "second\n"


async def test_a_sidecar_submits_in_the_pod_of_the_head(double: Double, muster: Run) -> None:
    job(double, "nightly", "SidecarMode", rayClusterName="train")
    assert "train-head says a" in (await muster("logs", "--job", "nightly")).stdout
    assert double.logs_asked == ["train-head?container=ray-job-submitter"]


async def test_a_job_that_failed_is_exit_code_1(double: Double, muster: Run) -> None:
    job(double, "bad", jobStatus="FAILED", jobDeploymentStatus="Failed", message="exit 1")
    submitter(double, "bad-x", "bad", b"oh\n")
    done = await muster("logs", "--job", "bad", "--follow")
    assert (done.exit_code, done.stdout) == (NO, "oh\n")
    assert done.stderr == "RayJob team/bad: FAILED: exit 1\n"


# ---- jobs


async def test_jobs_say_where_they_run_and_why_they_wait(double: Double, muster: Run) -> None:
    job(double, "a", jobDeploymentStatus="Initializing", rayClusterName="a-x")
    double.objects["gangs", "team", "a-x"] = {
        "metadata": {"name": "a-x", "namespace": "team"},
        "spec": {"queue": "research"},
        "status": {"phase": "Queued", "reason": "QuotaExceeded", "message": "no quota"},
    }
    job(double, "b", jobStatus="SUCCEEDED", jobDeploymentStatus="Complete", message="well")
    text = (await muster("jobs")).stdout
    assert "team/a" in text
    assert "QuotaExceeded" in text
    done = await muster("jobs", "-n", "team", "-o", "json")
    waits, over = json.loads(done.stdout)["jobs"]
    assert (waits["queue"], waits["reason"], waits["message"]) == (
        "research",
        "QuotaExceeded",
        "no quota",
    )
    assert (over["job"], over["message"]) == ("SUCCEEDED", "well")
    double.refused.append("GET .*/gangs")
    blind = await muster("jobs", "-n", "team")
    assert "why jobs wait is not known" in blind.stderr
    assert "SUCCEEDED" in blind.stdout


async def test_without_the_right_to_all_namespaces_jobs_are_of_the_contexts(
    double: Double, muster: Run
) -> None:
    job(double, "a")
    double.refused.append("GET /apis/ray.io/v1/rayjobs")
    done = await muster("jobs")
    assert (done.exit_code, "team/a" in done.stdout) == (0, True)
    assert "only jobs of namespace team are shown" in done.stderr
    assert (await muster("jobs", "-A")).exit_code == 3
    assert (await muster("jobs", "-n", "other")).stdout == "no RayJob in namespace other\n"


# ---- queues


async def test_a_queue_is_created_and_changed(double: Double, muster: Run) -> None:
    made = ("queue", "create", "research", "--quota", "cpu=8,nvidia.com/gpu=4")
    dry = await muster(*made, "--dry-run")
    assert (yaml.safe_load(dry.stdout)["spec"]["quota"]["cpu"], double.writes) == ("8", [])
    assert (await muster(*made, "--namespaces", "a,b")).exit_code == 0
    found = double.get("gangqueues", "research")
    found["kind"] = "GangQueue"
    assert found["spec"]["quota"] == {"cpu": "8", "nvidia.com/gpu": "4"}
    again = await muster(*made)
    assert (again.exit_code, "exists already" in again.stderr) == (NO, True)

    edited = ("queue", "edit", "research", "--quota", "cpu=,memory=1Ti", "--stop", "Hold")
    dry = await muster(*edited, "--dry-run")
    assert yaml.safe_load(dry.stdout)["spec"]["stop"] == "Hold"
    assert "stop" not in double.get("gangqueues", "research")["spec"]
    assert (await muster(*edited)).stdout == "GangQueue research changed\n"
    assert double.get("gangqueues", "research")["spec"]["quota"] == {
        "nvidia.com/gpu": "4",
        "memory": "1Ti",
    }
    assert "is so already" in (await muster("queue", "edit", "research", "--stop", "Hold")).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "R"], WRONG_USE, 'NAME: "R"; allowed: at most 63'),
        (["create", "r", "--quota", "cpu"], WRONG_USE, '--quota: "cpu"; allowed: key=value'),
        (["create", "r", "--quota", "cpu=x"], WRONG_USE, 'quota: cpu: "x"; allowed: a quantity'),
        (["edit", "r"], WRONG_USE, "name what is to change"),
        (["edit", "r", "--stop", "Hold"], NO, "no GangQueue r"),
    ],
)
async def test_a_queue_that_cannot_be_is_refused(
    double: Double, muster: Run, arguments: list[str], code: int, said: str
) -> None:
    done = await muster("queue", *arguments)
    assert (done.exit_code, double.writes) == (code, [])
    assert said in done.stderr


async def test_a_queue_without_a_verb_is_shown_as_ever(double: Double, muster: Run) -> None:
    double.add("gangqueues", "research", spec={"quota": {"cpu": "8"}})
    for arguments in (["queue"], ["queue", "research"], ["-o", "wide", "queue", "research"]):
        done = await muster(*arguments)
        assert done.exit_code == 0, done.stderr
        assert "research" in done.stdout
