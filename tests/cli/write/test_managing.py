"""The verbs that manage Ray clusters, against a cluster behind HTTP: written, refused, raced."""

import json
from pathlib import Path

import click
import pytest
import yaml

from cli.endings import NO, NOT_READ, WRONG_USE
from kube.objects import names
from tests.cli.managing.clusters import Json, cluster, group
from tests.cli.write.cluster import Double
from tests.cli.write.conftest import Run


def placed(double: Double, name: str = "train", *groups: Json, **spec: object) -> Json:
    """A RayCluster of a person, that runs."""
    body = cluster(name, *groups, **spec)
    fields = {key: body[key] for key in ("apiVersion", "kind", "spec", "status")}
    return double.add("rayclusters", name, "team", labels={names.OPT_IN: "true"}, **fields)


def spec_of(double: Double, name: str = "train") -> Json:
    found: Json = double.get("rayclusters", name, "team")["spec"]
    return found


def owned(double: Double, kind: str) -> None:
    placed(double)["metadata"]["ownerReferences"] = [
        {"kind": kind, "name": "nightly", "controller": True}
    ]


@pytest.fixture
def double(cluster: Double) -> Double:
    """Muster installed, and no Ray cluster."""
    cluster.objects = {
        key: each for key, each in cluster.objects.items() if key[0] not in ("rayclusters", "pods")
    }
    cluster.writes.clear()
    return cluster


async def test_create_makes_what_its_options_say(double: Double, muster: Run) -> None:
    options = ("--group", "w,replicas=2,gpus=8", "--queue", "research", "--no-fit")
    done = await muster("create", "new", *options)
    assert (done.exit_code, done.stdout) == (0, "RayCluster team/new created\n")
    made = double.get("rayclusters", "new", "team")
    assert made["metadata"]["name"] == "new"
    assert made["spec"]["workerGroupSpecs"][0]["replicas"] == 2
    again = await muster("create", "team/new", *options)
    assert again.exit_code == NO
    assert "RayCluster team/new exists already, and nothing was changed" in again.stderr


async def test_a_dry_run_prints_what_kubectl_can_apply_and_creates_nothing(
    double: Double, muster: Run, tmp_path: Path
) -> None:
    done = await muster("create", "new", "--group", "w", "--no-fit", "--dry-run")
    assert double.writes == []
    found = yaml.safe_load(done.stdout)
    assert (found["kind"], found["metadata"]["namespace"]) == ("RayCluster", "team")
    path = tmp_path / "new.yaml"
    path.write_text(done.stdout)
    assert (await muster("create", "-f", str(path), "--no-fit")).exit_code == 0
    assert spec_of(double, "new") == found["spec"]


async def test_create_like_another_one(double: Double, muster: Run) -> None:
    placed(double, "train", suspend=True)
    done = await muster("create", "b", "--like", "train", "--queue", "q", "--no-fit")
    assert done.exit_code == 0, done.stderr
    assert "suspend" not in spec_of(double, "b")
    missing = await muster("create", "c", "--like", "none", "--no-fit")
    assert (missing.exit_code, missing.stdout) == (NO, "")
    assert "no RayCluster none in namespace team" in missing.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: RayJob\napiVersion: ray.io/v1\n", "RayJob; allowed: one RayCluster"),
        ("kind: RayCluster\napiVersion: ray.io/v1\n", "spec.headGroupSpec: absent"),
        ("[", "did not find expected node content"),
        ("", "nothing; allowed: one RayCluster"),
    ],
)
async def test_a_file_that_cannot_be_used_is_said(
    double: Double, muster: Run, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    done = await muster("create", "-f", str(path), "--no-fit")
    assert (done.exit_code, double.writes) == (WRONG_USE, [])
    assert said in done.stderr


@pytest.mark.parametrize("arguments", [["new", "--like", "a", "-f", "x"], [], ["a/b/c"]])
async def test_a_wrong_command_line_creates_nothing(
    double: Double, muster: Run, arguments: list[str]
) -> None:
    done = await muster("create", *arguments)
    assert (done.exit_code, double.writes) == (WRONG_USE, [])


async def test_without_a_right_nothing_is_created_and_one_line_says_why(
    double: Double, muster: Run
) -> None:
    double.refused.append("POST .*/rayclusters")
    done = await muster("create", "new", "--no-fit")
    assert (done.exit_code, done.stdout) == (NO, "")
    assert done.stderr.startswith("Error: RayCluster team/new was not created: ")


async def test_delete_says_what_goes_with_it_and_asks(
    double: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(double)
    double.add("pods", "p", "team", labels={names.RAY_CLUSTER: "train"})
    double.add(
        *("rayjobs", "nightly", "team"),
        spec={"clusterSelector": {names.RAY_CLUSTER: "train"}},
        status={},
    )
    asked = await muster("delete", "train", "--dry-run")
    assert "would go with it: 1 pod, with all that runs on them" in asked.stdout
    assert "will fail: nightly" in asked.stdout
    nobody = await muster("delete", "train")
    assert (nobody.exit_code, double.writes) == (WRONG_USE, [])
    monkeypatch.setattr("cli.confirming.is_terminal", lambda: True)
    no = await muster("delete", "train", answer="n\n")
    assert (no.exit_code, double.writes) == (NO, [])
    yes = await muster("delete", "train", answer="y\n")
    assert yes.exit_code == 0
    assert double.all("rayclusters") == []


async def test_delete_takes_the_very_object_that_was_shown(double: Double, muster: Run) -> None:
    placed(double)
    double.lost.append("DELETE .*/rayclusters")
    done = await muster("delete", "train", "--yes")
    assert (done.exit_code, double.all("rayclusters")) == (0, [])
    placed(double)["metadata"]["finalizers"] = ["of/another"]
    assert (await muster("delete", "team/train", "--yes")).exit_code == 0
    gone = await muster("delete", "train", "--yes")
    assert (gone.exit_code, "is being deleted" in gone.stderr) == (NO, True)


async def test_a_job_is_deleted_by_its_own_name(double: Double, muster: Run) -> None:
    double.add("rayjobs", "nightly", "team", kind="RayJob", spec={}, status={})
    assert (await muster("delete", "--job", "nightly", "--yes")).exit_code == 0
    assert double.all("rayjobs") == []


VERBS = (
    ["delete", "train", "--yes"],
    ["scale", "train", "workers=3"],
    ["suspend", "train", "--yes"],
    ["resume", "train"],
    ["edit", "train", "--queue", "q"],
)


@pytest.mark.parametrize("kind", ["RayJob", "RayService", "AppWrapper"])
@pytest.mark.parametrize("arguments", VERBS, ids=lambda each: each[0])
async def test_the_verb_names_the_owner_and_changes_nothing(
    double: Double, muster: Run, arguments: list[str], kind: str
) -> None:
    owned(double, kind)
    before = json.dumps(double.get("rayclusters", "train", "team"))
    done = await muster(*arguments)
    assert (done.exit_code, double.writes) == (NO, [])
    assert f"belongs to {kind} nightly, and nothing was changed" in done.stderr
    assert json.dumps(double.get("rayclusters", "train", "team")) == before


@pytest.mark.parametrize("arguments", VERBS, ids=lambda each: each[0])
async def test_a_cluster_that_is_not_there_is_said(
    double: Double, muster: Run, arguments: list[str]
) -> None:
    done = await muster(*arguments)
    assert (done.exit_code, done.stderr) == (
        NO,
        "Error: no RayCluster train in namespace team\n",
    )
    double.refused.append("GET .*/rayclusters")
    refused = await muster(*arguments)
    assert refused.exit_code == NOT_READ
    assert refused.stderr.startswith("Error: not allowed to read rayclusters.ray.io")


async def test_scale_writes_replicas_and_asks_where_pods_go(double: Double, muster: Run) -> None:
    placed(double)
    up = await muster("scale", "train", "workers=3")
    assert (up.exit_code, spec_of(double)["workerGroupSpecs"][0]["replicas"]) == (0, 3)
    assert "now      workers.replicas: 2 -> 3, now" in up.stdout
    down = await muster("scale", "train", "workers=1")
    assert (down.exit_code, spec_of(double)["workerGroupSpecs"][0]["replicas"]) == (WRONG_USE, 3)
    assert (await muster("scale", "train", "workers=1", "--yes")).exit_code == 0
    assert spec_of(double)["workerGroupSpecs"][0]["replicas"] == 1
    same = await muster("scale", "train", "workers=1")
    assert "is so already" in same.stdout
    wrong = await muster("scale", "train", "other=1")
    assert (wrong.exit_code, wrong.stdout) == (WRONG_USE, "")


async def test_with_the_autoscaler_scale_writes_its_bounds(double: Double, muster: Run) -> None:
    placed(double, enableInTreeAutoscaling=True)
    assert (await muster("scale", "train", "workers=1..9")).exit_code == 0
    found = spec_of(double)["workerGroupSpecs"][0]
    assert (found["minReplicas"], found["replicas"], found["maxReplicas"]) == (1, 2, 9)


async def test_suspend_and_resume(double: Double, muster: Run) -> None:
    placed(double)
    assert (await muster("suspend", "train")).exit_code == WRONG_USE
    assert (await muster("suspend", "train", "--yes")).exit_code == 0
    assert spec_of(double)["suspend"] is True
    assert "suspended already" in (await muster("suspend", "train")).stdout
    assert (await muster("resume", "train")).stdout == "RayCluster team/train resumed\n"
    assert spec_of(double)["suspend"] is False
    assert "is not suspended" in (await muster("resume", "train")).stdout


async def test_what_muster_holds_is_not_suspended_and_resuming_ends_that(
    double: Double, muster: Run
) -> None:
    placed(double, suspend=True)
    double.objects["gangs", "team", "train"] = {
        "metadata": {"name": "train", "namespace": "team"},
        "status": {"held": {"phase": "Waiting"}},
    }
    held = await muster("suspend", "train", "--yes")
    assert (held.exit_code, double.writes) == (NO, [])
    assert "Muster holds it, and resumes it once its gang is admitted" in held.stderr
    done = await muster("resume", "train")
    assert "Muster held it: its pods are created now, gated" in done.stdout
    assert spec_of(double)["suspend"] is False


async def test_edit_says_what_holds_when_and_writes_it(double: Double, muster: Run) -> None:
    placed(double)
    done = await muster("edit", "train", "--image", "ray:2", "--group", "workers,max=9")
    assert done.exit_code == 0, done.stderr
    assert "now      workers.maxReplicas: 4 -> 9, now" in done.stdout
    assert "later    headGroupSpec.template: for a head pod that is made from" in done.stdout
    assert spec_of(double)["workerGroupSpecs"][0]["maxReplicas"] == 9


async def test_an_edit_that_is_refused_in_part_changes_nothing(double: Double, muster: Run) -> None:
    placed(double)
    done = await muster("edit", "train", "--fault-tolerance", "--group", "workers,max=9")
    assert (done.exit_code, double.writes) == (NO, [])
    assert "muster create NEW --like train" in done.stderr
    double.refused.append("PATCH .*/rayclusters/train")  # as a webhook would
    done = await muster("edit", "train", "--fault-tolerance")
    assert "muster create NEW --like train" in done.stderr
    other = await muster("edit", "train", "--queue", "q")
    assert (other.exit_code, "the policy says no" in other.stderr) == (NO, True)
    gone = await muster("edit", "train", "--without-group", "workers")
    assert (gone.exit_code, double.writes) == (NO, [])
    assert "KubeRay would leave its pods running" in gone.stderr


async def test_recreate_is_asked_about_before_all_pods_go(double: Double, muster: Run) -> None:
    placed(double, upgradeStrategy={"type": "Recreate"})
    done = await muster("edit", "train", "--image", "ray:2")
    assert (done.exit_code, double.writes) == (WRONG_USE, [])
    dry = await muster("edit", "train", "--image", "ray:2", "--dry-run")
    assert (dry.exit_code, double.writes) == (0, [])
    assert "for all pods, which are made anew" in dry.stdout
    assert (await muster("edit", "train", "--image", "ray:2", "--yes")).exit_code == 0
    assert len(double.writes) == 1


async def test_only_its_own_pods_are_deleted_by_name(double: Double, muster: Run) -> None:
    placed(double)
    worker = {
        names.RAY_CLUSTER: "train",
        names.RAY_GROUP: "workers",
        names.RAY_NODE_TYPE: "worker",
    }
    double.add("pods", "mine", "team", labels=worker)
    double.add("pods", "head", "team", labels={**worker, names.RAY_NODE_TYPE: "head"})
    double.add("pods", "other", "team")
    for pod in ("other", "head"):
        done = await muster("edit", "train", "--delete-pod", pod, "--yes")
        assert (done.exit_code, double.writes) == (WRONG_USE, [])
        assert f"{pod}: no worker pod of this RayCluster; there are: mine" in done.stderr
    assert (await muster("edit", "train", "--delete-pod", "mine")).exit_code == WRONG_USE
    assert (await muster("edit", "train", "--delete-pod", "mine", "--yes")).exit_code == 0
    strategy = spec_of(double)["workerGroupSpecs"][0]["scaleStrategy"]
    assert strategy == {"workersToDelete": ["mine"]}


async def test_edit_takes_a_file_or_an_editor(
    double: Double, muster: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(double)
    path = tmp_path / "train.yaml"
    written = cluster("train", group(maxReplicas=7))
    path.write_text(yaml.safe_dump(written))
    assert (await muster("edit", "train", "-f", str(path))).exit_code == 0
    assert spec_of(double)["workerGroupSpecs"][0]["maxReplicas"] == 7
    both = await muster("edit", "train", "-f", str(path), "--queue", "q")
    assert both.exit_code == WRONG_USE

    monkeypatch.setattr(click, "edit", lambda text, **_: text.replace("maxReplicas: 7", "max: 1"))
    edited = await muster("edit", "train")
    assert edited.exit_code == 0, edited.stderr
    monkeypatch.setattr(click, "edit", lambda *_, **__: None)
    assert "is so already" in (await muster("edit", "train")).stdout
    monkeypatch.setattr(click, "edit", lambda *_, **__: "a: [")
    assert (await muster("edit", "train")).exit_code == WRONG_USE


async def test_a_status_that_is_written_meanwhile_loses_nothing(
    double: Double, muster: Run
) -> None:
    found = placed(double)
    told: list[int] = []

    def tell(request: str) -> None:
        if "GET" in request and len(told) < 2:
            told.append(1)
            meta = double.get("rayclusters", "train", "team")["metadata"]
            meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 10)

    double.behind = tell
    done = await muster("resume", "train")
    assert "is not suspended" in done.stdout
    found["spec"]["suspend"] = True
    told.clear()
    done = await muster("resume", "train")
    assert (done.exit_code, len(told)) == (0, 2), done.stderr
    assert spec_of(double)["suspend"] is False
    told.clear()
    done = await muster("edit", "train", "--queue", "q")
    assert (done.exit_code, len(told)) == (0, 2), done.stderr
    assert double.get("rayclusters", "train", "team")["metadata"]["labels"][names.QUEUE] == "q"


async def test_a_change_by_others_meanwhile_is_told_and_nothing_is_written(
    double: Double, muster: Run
) -> None:
    placed(double)

    def change(request: str) -> None:
        if "GET" in request and "rayclusters" in request:
            found = double.get("rayclusters", "train", "team")
            number = int(found["metadata"]["resourceVersion"]) + 1
            found["metadata"]["resourceVersion"] = str(number)
            found["spec"]["rayVersion"] = str(number)

    double.behind = change
    done = await muster("suspend", "train", "--yes")
    assert (done.exit_code, "suspend" in spec_of(double)) == (NO, False)
    assert "was changed by others meanwhile, and nothing was written" in done.stderr
    edited = await muster("edit", "train", "--queue", "q")
    assert edited.exit_code == NO
    assert "was changed by others meanwhile" in edited.stderr


async def test_an_answer_that_was_lost_is_no_conflict(double: Double, muster: Run) -> None:
    placed(double)
    double.unheard.append("PATCH .*/rayclusters/train")
    done = await muster("suspend", "train", "--yes", "--request-timeout", "0.3")
    assert done.exit_code == 0, done.stderr
    assert spec_of(double)["suspend"] is True
