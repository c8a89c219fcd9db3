"""Scaling, suspending, jobs, queues, deletions and patches: what is written, what is refused."""

import shlex
from typing import Any

import pytest

from cli.endings import StandsInTheWay, Unusable
from cli.managing.deleting import goes_with, goes_with_job, hangs
from cli.managing.forms import JobForm, QueueForm, Target
from cli.managing.job import check_takes_jobs, command_of, new_job, waits_for
from cli.managing.owners import check_free, owner_of
from cli.managing.patches import as_read, is_in, patch_of, same_as_read
from cli.managing.queue import changed_queue, new_queue
from cli.managing.rewriting import to_be_edited, with_edited, with_file
from cli.managing.scaling import pods_that_go, scaled
from cli.managing.suspending import is_held, resumption, suspension
from tests.cli.managing.clusters import cluster, group, with_changes


def numbers(found: dict[str, Any]) -> tuple[int, int, int]:
    group = found["spec"]["workerGroupSpecs"][0]
    return group["minReplicas"], group["replicas"], group["maxReplicas"]


def test_scaling_sets_replicas_and_moves_the_bounds_that_are_in_the_way() -> None:
    assert numbers(scaled(cluster(), [Target("workers", 3, 3)])) == (0, 3, 4)
    assert numbers(scaled(cluster(), [Target("workers", 9, 9)])) == (0, 9, 9)
    least = cluster("train", group(minReplicas=2))
    assert numbers(scaled(least, [Target("workers", 0, 0)])) == (0, 0, 4)
    with pytest.raises(Unusable, match="allowed: one number, for Ray's autoscaler is off"):
        scaled(cluster(), [Target("workers", 1, 2)])
    with pytest.raises(Unusable, match="other: no worker group; there are: workers"):
        scaled(cluster(), [Target("other", 1, 1)])


def test_scaling_sets_the_bounds_where_rays_autoscaler_decides() -> None:
    auto = cluster(enableInTreeAutoscaling=True)
    assert numbers(scaled(auto, [Target("workers", 1, 8)])) == (1, 2, 8)
    assert pods_that_go(auto, scaled(auto, [Target("workers", 0, 0)])) == 0


def test_pods_go_where_replicas_become_fewer() -> None:
    old = cluster("train", group("a", numOfHosts=2), group("b"))
    new = scaled(old, [Target("a", 1, 1), Target("b", 3, 3)])
    assert pods_that_go(old, new) == 2


def test_what_muster_holds_is_not_suspended_and_an_explicit_false_resumes_it() -> None:
    assert suspension(cluster(), "") == {"spec": {"suspend": True}}
    asleep = cluster(suspend=True)
    assert suspension(asleep, "") == {}
    for held, phase in (
        (asleep, "Waiting"),
        (with_changes(asleep, **{"metadata__annotations__muster.dev/held": "true"}), ""),
    ):
        assert is_held(held, phase)
        with pytest.raises(StandsInTheWay, match="Muster holds it, and resumes it once"):
            suspension(held, phase)
    assert not is_held(cluster(), "Waiting")
    assert resumption(cluster()) == {}
    assert resumption(asleep) == {"spec": {"suspend": False}}
    noted = with_changes(asleep, **{"metadata__annotations__muster.dev/held": "true"})
    assert resumption(noted)["metadata"] == {"annotations": {"muster.dev/held": None}}


OWNERS = [
    ("RayJob", True, "RayJob nightly"),
    ("RayService", True, "RayService nightly"),
    ("AppWrapper", False, "AppWrapper nightly"),
    ("Deployment", False, ""),
]


@pytest.mark.parametrize(("kind", "controls", "owner"), OWNERS)
def test_the_owner_of_an_object_is_named_and_the_object_left_alone(
    kind: str, controls: bool, owner: str
) -> None:
    reference = {"kind": kind, "name": "nightly", "controller": controls}
    meta = {**cluster()["metadata"], "ownerReferences": [reference]}
    assert owner_of(meta) == owner
    if owner:
        with pytest.raises(StandsInTheWay, match=f"team/train belongs to {owner}, and nothing"):
            check_free("RayCluster", meta)
    else:
        check_free("RayCluster", meta)


def test_what_is_being_deleted_is_left_alone() -> None:
    meta = {**cluster()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    with pytest.raises(StandsInTheWay, match="is being deleted, and nothing was changed"):
        check_free("RayCluster", meta)


def test_a_job_on_a_cluster_selects_it_and_one_of_its_own_takes_it_along() -> None:
    asked = JobForm(entrypoint="python a.py", cluster="train", runtime_env="pip: [x]")
    found = new_job("nightly", "team", asked, None)
    assert found["spec"] == {
        "entrypoint": "python a.py",
        "runtimeEnvYAML": "pip: [x]",
        "clusterSelector": {"ray.io/cluster": "train"},
    }
    own = new_job("nightly", "team", JobForm(entrypoint="a", retries=2), cluster())
    assert own["metadata"]["labels"] == {"muster.dev/gang": "true"}
    assert own["spec"]["rayClusterSpec"] == cluster()["spec"]
    assert own["spec"]["shutdownAfterJobFinishes"] is True
    assert own["spec"]["backoffLimit"] == 2


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("n", JobForm(cluster="train"), "COMMAND: absent"),
        ("n" * 48, JobForm(entrypoint="a", cluster="train"), "at most 47 characters"),
        ("n", JobForm(entrypoint="a", cluster="train", retries=1), "allowed without --cluster"),
        ("n", JobForm(entrypoint="a", cluster="Train"), "cluster:"),
    ],
)
def test_a_job_that_kuberay_would_refuse_is_refused(name: str, asked: JobForm, said: str) -> None:
    with pytest.raises(Unusable) as fault:
        new_job(name, "team", asked, None)
    assert said in str(fault.value)


def test_the_words_of_a_command_stay_words() -> None:
    assert command_of(["python", "a.py", "two words"]) == "python a.py 'two words'"
    assert command_of(["cd x && python a.py"]) == "cd x && python a.py"


@pytest.mark.parametrize(
    ("line", "entrypoint"),
    [
        ("  python a.py --lr 0.1\n", "python a.py --lr 0.1"),
        ("python -c 'print(1); print(2)'", "python -c 'print(1); print(2)'"),
        ("cd x && python a.py", "sh -c 'cd x && python a.py'"),
        ("python -c 'print(1)'", """sh -c 'python -c '"'"'print(1)'"'"''"""),
        ("a.py > log", "sh -c 'a.py > log'"),
        ("first\nsecond", "sh -c 'first\nsecond'"),
        ("an open ' quotation", """sh -c 'an open '"'"' quotation'"""),
    ],
)
def test_ray_gets_a_line_of_shell_as_it_stands(line: str, entrypoint: str) -> None:
    """KubeRay's submitter reads it as a part of a line of its own shell."""
    found = new_job("n", "team", JobForm(entrypoint=line, cluster="train"), None)
    assert found["spec"]["entrypoint"] == entrypoint
    words = shlex.split(entrypoint)
    assert words == (shlex.split(line) if words[0] == "python" else ["sh", "-c", line])


def test_a_suspended_cluster_takes_no_job_and_one_that_is_not_ready_lets_it_wait() -> None:
    with pytest.raises(StandsInTheWay, match="muster resume team/train; nothing was submitted"):
        check_takes_jobs(cluster(suspend=True))
    check_takes_jobs(cluster())
    assert waits_for(cluster()) == ""
    assert "the job waits" in waits_for(with_changes(cluster(), status__state=""))


def job(name: str, cluster: str, state: str = "Running") -> dict[str, Any]:
    spec = {"clusterSelector": {"ray.io/cluster": cluster}} if cluster else {}
    status = {"jobDeploymentStatus": state, "rayClusterName": "made"}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def test_what_goes_with_a_cluster_or_a_job() -> None:
    jobs = [job("b", "train"), job("a", "train"), job("over", "train", "Complete"), job("c", "x")]
    found = list(goes_with(cluster(gcsFaultToleranceOptions={"redisAddress": "r"}), 3, jobs))
    assert found[0].startswith("3 pods, with all that runs on them")
    assert found[1].endswith("will fail: a, b")
    assert "Redis" in found[2]
    assert next(iter(goes_with(cluster(), None, []))).startswith("its pods")
    assert "the RayCluster that it runs on stays" in next(iter(goes_with_job(jobs[0])))
    assert "RayCluster made with its pods" in next(iter(goes_with_job(job("own", ""))))


def test_a_deletion_that_would_never_end_is_said() -> None:
    held = cluster()
    held["metadata"]["finalizers"] = ["ray.io/gcs-ft-redis-cleanup-finalizer"]
    assert "never takes its finalizer off" in hangs(held)
    assert hangs(cluster()) == ""


def test_a_queue_has_what_was_asked_for_and_an_empty_text_takes_away() -> None:
    asked = QueueForm(
        parent="company",
        quota={"cpu": "8", "nvidia.com/gpu": "4"},
        namespaces=("a", "b"),
        node_labels={"pool": "x"},
        when_blocked="Backfill",
        reclaim="Any",
    )
    found = new_queue("research", asked)
    assert found["spec"] == {
        "parent": "company",
        "quota": {"cpu": "8", "nvidia.com/gpu": "4"},
        "nodeSelector": {"pool": "x"},
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
            ]
        },
        "whenBlocked": "Backfill",
        "preemption": {"reclaim": "Any"},
    }
    other = QueueForm(parent="", quota={"cpu": ""}, namespaces=("c",), within_queue="Never")
    again = changed_queue(found, other)
    assert "parent" not in again["spec"]
    assert again["spec"]["quota"] == {"nvidia.com/gpu": "4"}
    assert again["spec"]["preemption"] == {"reclaim": "Any", "withinQueue": "Never"}
    (only,) = again["spec"]["namespaceSelector"]["matchExpressions"]
    assert only["values"] == ["c"]
    assert changed_queue(found, QueueForm()) == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (QueueForm(quota={"cpu": "x"}), 'quota: cpu: "x"; allowed: a quantity'),
        (QueueForm(ordering="Random"), 'ordering: "Random"; allowed: Priority, FIFO'),
        (QueueForm(reclaim="x"), 'reclaim: "x"; allowed: Never, LowerPriority, Any'),
        (QueueForm(parent="research"), "parent: research; allowed: another queue"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(asked: QueueForm, said: str) -> None:
    with pytest.raises(Unusable) as fault:
        new_queue("research", asked)
    assert said in str(fault.value)


def test_a_patch_has_what_differs_and_fits_the_object_that_was_read() -> None:
    old = cluster(autoscalerOptions={"version": "v2", "image": "a"}, suspend=True)
    new = cluster(autoscalerOptions={"version": "v2"})
    new["metadata"]["labels"] = {"x": "y"}
    patch = patch_of(old, new)
    assert patch == {
        "metadata": {"labels": {"muster.dev/gang": None, "x": "y"}},
        "spec": {"autoscalerOptions": {"image": None}, "suspend": None},
    }
    assert as_read(patch, old)["metadata"]["resourceVersion"] == "7"
    assert as_read(patch, old)["metadata"]["labels"] == patch["metadata"]["labels"]
    assert patch_of(old, old) == {}
    assert is_in(patch, new)
    assert not is_in(patch, old)


def test_only_a_new_status_is_the_same_object_as_was_read() -> None:
    read = cluster()
    told = with_changes(read, status__state="failed", metadata__resourceVersion="8")
    assert same_as_read(read, told)
    for other in (
        with_changes(read, spec__suspend=True),
        with_changes(read, metadata__uid="v"),
        with_changes(read, metadata__labels__a="b"),
        with_changes(read, metadata__deletionTimestamp="now"),
    ):
        assert not same_as_read(read, other)


def test_a_file_adds_to_the_labels_and_an_editor_replaces_them() -> None:
    read = cluster()
    shown = to_be_edited(read)
    assert "status" not in shown
    assert "uid" not in shown["metadata"]
    shown["metadata"]["labels"] = {"a": "b"}
    assert with_edited(read, shown, "p")["metadata"]["labels"] == {"a": "b"}
    assert with_file(read, shown, "p")["metadata"]["labels"] == {
        "a": "b",
        "muster.dev/gang": "true",
    }
    for field, value in (("name", "other"), ("namespace", "other")):
        wrong = {**shown, "metadata": {**shown["metadata"], field: value}}
        with pytest.raises(Unusable, match=f"p: metadata.{field}: other; allowed: "):
            with_file(read, wrong, "p")
    with pytest.raises(Unusable, match="p: kind: RayJob; allowed: RayCluster"):
        with_edited(read, {**shown, "kind": "RayJob"}, "p")
