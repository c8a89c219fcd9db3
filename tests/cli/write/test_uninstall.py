"""`muster uninstall`: nothing of Muster is left, nothing waits for it, nothing of others goes."""

import pytest

from cli.endings import FINE, NO, WRONG_USE
from cli.removal.ours import KINDS
from cli.write import pacing
from kube.objects import names
from kube.objects.clusters.gang_offer import FINALIZER
from tests.cli.write.cluster import LABEL, Double
from tests.cli.write.conftest import HOME, Run, gated, lease, moved, suspended_job
from tests.rights_plugin import manifest_objects

NO_OBJECTS = ("kustomize.config.k8s.io", "kubescheduler.config.k8s.io", "builtin")
"""API groups of files that kustomize and kube-scheduler read."""

HELM = {
    "labels": {**LABEL, "app.kubernetes.io/managed-by": "Helm"},
    "annotations": {
        "meta.helm.sh/release-name": "gangs",
        "meta.helm.sh/release-namespace": HOME,
    },
}


def left(cluster: Double) -> set[str]:
    """What of Muster there is, by kind and name."""
    mine = {key for key, each in cluster.objects.items() if _is_ours(key[2], each)}
    return {f"{kind}/{name}" for kind, _, name in mine if kind not in ("pods", "rayclusters")}


def _is_ours(name: str, found: dict[str, dict[str, dict[str, str]]]) -> bool:
    labels = found["metadata"].get("labels", {})
    return "muster" in name or labels == LABEL


async def test_nothing_of_muster_is_left_and_all_of_others(cluster: Double, muster: Run) -> None:
    lease(cluster, "muster-coordinator-abc-1")
    cluster.add("services", "of-another-muster", "team", labels=LABEL)
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = [names.QUEUE_FINALIZER]
    done = await muster("uninstall", "--yes")
    assert (done.exit_code, done.stderr) == (FINE, ""), done.output
    assert "nothing of Muster is left" in done.stdout
    assert gated(cluster) == []
    assert left(cluster) == {"services/of-another-muster"}
    assert "services team/of-another-muster has the label" in done.stdout
    assert cluster.all("gangqueues") == cluster.all("gangs") == []
    assert {each["metadata"]["name"] for each in cluster.all("rayclusters")} == {"train", "later"}
    assert len(cluster.all("mutatingwebhookconfigurations")) == 1


async def test_gates_go_before_programs_these_before_definitions_and_the_namespace_last(
    cluster: Double, muster: Run
) -> None:
    """But for what tells another call which namespace it is."""
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = [names.QUEUE_FINALIZER]
    await muster("uninstall", "--yes")
    deletions = [each for each in cluster.writes if each.startswith("DELETE")]

    def first(part: str, among: list[str]) -> int:
        return next(at for at, each in enumerate(among) if part in each)

    gates = max(cluster.writes_to("/pods/"))
    queues = first("PATCH /apis/muster.dev/v1alpha1/gangqueues", cluster.writes)
    programs = first("DELETE /apis/apps", cluster.writes)
    assert gates < queues < programs
    assert first("deployments", deletions) < first("customresourcedefinitions", deletions)
    assert deletions[-2].endswith(f"/namespaces/{HOME}")
    (last,) = [each for each in deletions if "clusterrolebindings/muster-coordinator" in each]
    assert deletions[-1] == last


async def test_a_queue_that_others_hold_is_told_and_keeps_its_definition_waiting(
    cluster: Double, muster: Run
) -> None:
    """Muster's own finalizer is off, so that it goes as soon as the others let it."""
    await muster("uninstall", "--keep-crds", "--yes")
    queue = cluster.get("gangqueues", "research")
    assert queue["metadata"]["finalizers"] == ["of.others/one"]
    assert "deletionTimestamp" not in queue["metadata"]
    assert left(cluster) == {
        "customresourcedefinitions/gangs.muster.dev",
        "customresourcedefinitions/gangqueues.muster.dev",
    }
    assert cluster.all("gangs") == []


async def test_while_a_pod_is_gated_nothing_else_is_removed(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for ever; a coordinator can still be started again."""
    monkeypatch.setattr(pacing, "PATIENCE", 0.1)
    cluster.refused = [r"PATCH .*/pods/train-1$"]
    done = await muster("uninstall", "--yes")
    assert done.exit_code == NO
    said = "1 pod still gated by Muster: team/train-1: nothing more is removed before"
    assert said in done.stderr
    assert_nothing_removed(cluster)
    cluster.refused = []
    again = await muster("uninstall", "--yes", "--keep-crds")
    assert again.exit_code == FINE, again.output


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
async def test_while_muster_keeps_anything_suspended_nothing_else_is_removed(
    cluster: Double, muster: Run, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the Gangs, which go with their definition, it is known that it was Muster."""
    monkeypatch.setattr(pacing, "PATIENCE", 0.1)
    suspended_job(cluster, "job", "Suspending" if kind == "RayJob" else "Suspended")
    cluster.refused = [r"PATCH .*/rayclusters/later$"] if kind == "RayCluster" else []
    done = await muster("uninstall", "--yes")
    assert done.exit_code == NO
    which = "team/later" if kind == "RayCluster" else "team/job"
    assert f"1 {kind} still suspended by Muster: {which}: nothing more is removed" in done.stderr
    assert_nothing_removed(cluster)


def assert_nothing_removed(cluster: Double) -> None:
    assert cluster.writes_to("DELETE /apis/apps") == []
    assert len(cluster.all("customresourcedefinitions")) == 2
    assert len(cluster.all("gangqueues")) == 1


async def test_what_users_made_for_muster_is_theirs_whatever_it_is_called(
    cluster: Double, muster: Run
) -> None:
    for plural, namespace in (("gangqueues", ""), ("rayclusters", "team"), ("services", "team")):
        cluster.add(plural, "muster-research", namespace, labels=LABEL, spec={})
    cluster.add("rayclusters", "muster-at-home", HOME, labels=LABEL, spec={})
    done = await muster("uninstall", "--keep-crds", "--yes")
    assert done.exit_code == FINE, done.output
    for each in ("gangqueues muster-research", "rayclusters team/muster-research"):
        assert f"{each} has the label" in done.stdout
    deleted = [each for each in cluster.writes if each.startswith("DELETE")]
    assert [each for each in deleted if "muster-research" in each or "at-home" in each] == []


def test_muster_makes_objects_of_no_other_kinds() -> None:
    """Each of them is removed."""
    made = {
        (each["apiVersion"].rpartition("/")[0], plural(each["kind"]))
        for each in manifest_objects()
        if each["apiVersion"].partition("/")[0] not in NO_OBJECTS
    }
    assert made - {(group, each) for group, kinds in KINDS.items() for each in kinds} == set()


def plural(kind: str) -> str:
    word = kind.lower()
    return f"{word[:-1]}ies" if word.endswith("cy") else f"{word}s"


async def test_half_an_uninstall_is_finished_where_it_was_begun(
    cluster: Double, muster: Run
) -> None:
    """Its programs are gone, in a namespace that is not the usual one."""
    moved(cluster, "gangs")
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = []
    for each in [key for key in cluster.objects if key[0] == "deployments"]:
        del cluster.objects[each]
    done = await muster("uninstall", "--yes")
    assert done.exit_code == FINE, done.output
    assert left(cluster) == set()
    assert ("namespaces", "", "gangs") not in cluster.objects


async def test_what_does_not_answer_is_not_taken_for_gone(cluster: Double, muster: Run) -> None:
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = []
    cluster.refused = [r"GET .*/clusterroles/muster-coordinator"]
    done = await muster("uninstall", "--yes")
    assert "clusterroles muster-coordinator is deleted and not gone" in done.stderr


async def test_an_object_that_may_not_be_deleted_is_told(cluster: Double, muster: Run) -> None:
    cluster.refused = [r"DELETE .*/clusterroles/"]
    done = await muster("uninstall", "--yes", "--keep-crds")
    assert done.exit_code == NO
    assert "clusterroles muster-coordinator: 403" in done.stderr
    assert "clusterroles muster-coordinator is still there" in done.stderr
    assert ("namespaces", "", HOME) not in cluster.objects
    assert "nothing of Muster is left" not in done.stdout


async def test_while_a_scheduler_may_call_the_extender_it_refuses(
    cluster: Double, muster: Run
) -> None:
    cluster.add("deployments", "muster-extender", HOME, labels=LABEL, spec={})
    done = await muster("uninstall", "--yes")
    assert (done.exit_code, cluster.writes) == (WRONG_USE, [])
    assert "--extender-is-out" in done.stderr
    text = "kind: KubeSchedulerConfiguration\nextenders:\n- urlPrefix: https://muster-extender.x"
    configured = cluster.add("configmaps", "scheduler", "kube-system", data={"config": text})
    done = await muster("uninstall", "--yes", "--extender-is-out")
    assert (done.exit_code, cluster.writes) == (WRONG_USE, [])
    assert "calls the extender by ConfigMap kube-system/scheduler" in done.stderr
    configured["data"] = {"config": "kind: KubeSchedulerConfiguration"}
    done = await muster("uninstall", "--yes", "--extender-is-out", "--keep-crds")
    assert done.exit_code == FINE, done.output


async def test_what_helm_installed_is_left_to_helm(cluster: Double, muster: Run) -> None:
    """Its release would say that all is there; gates and finalizers it knows nothing of."""
    cluster.add("deployments", "muster-certs", HOME, spec={}, **HELM)
    done = await muster("uninstall", "--yes")
    assert done.exit_code == FINE, done.output
    assert "helm uninstall gangs -n muster-system" in done.stdout
    assert "nothing of Muster is left" not in done.stdout
    assert gated(cluster) == []
    queue = cluster.get("gangqueues", "research")["metadata"]
    assert queue["finalizers"] == ["of.others/one"]
    assert "deletionTimestamp" not in queue
    assert cluster.writes_to("DELETE /apis/apps") == []


async def test_definitions_that_helm_kept_go_with_the_next_call(
    cluster: Double, muster: Run
) -> None:
    """A chart keeps them, for all their objects would go with them."""
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = []
    for each in cluster.all("customresourcedefinitions"):
        each["metadata"] |= HELM
    done = await muster("uninstall", "--yes")
    assert done.exit_code == FINE, done.output
    assert cluster.all("customresourcedefinitions") == []


@pytest.mark.parametrize("there", [True, False])
async def test_definitions_of_app_wrappers_go_only_without_app_wrappers(
    cluster: Double, muster: Run, there: bool
) -> None:
    """All that they wrap would go with them."""
    name = "appwrappers.workload.codeflare.dev"
    cluster.add("customresourcedefinitions", name, labels=LABEL)
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = []
    if there:
        cluster.add("appwrappers", "one", "team", spec={})
    done = await muster("uninstall", "--yes")
    assert done.exit_code == FINE, done.output
    kept = {each["metadata"]["name"] for each in cluster.all("customresourcedefinitions")}
    assert kept == ({name} if there else set())
    assert (f"{name} is kept: 1 AppWrapper" in done.stdout) is there


@pytest.mark.parametrize("foreign", ["deployments", ""])
async def test_a_namespace_with_things_of_others_stays(
    cluster: Double, muster: Run, foreign: str
) -> None:
    """And so does one that Muster's manifests did not make; what is Muster's in it goes."""
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = []
    if foreign:
        cluster.add(foreign, "of-others", HOME, spec={})
    else:
        del cluster.get("namespaces", HOME)["metadata"]["labels"]
    done = await muster("uninstall", "--yes")
    assert done.exit_code == FINE, done.output
    assert f"namespace {HOME} is kept" in done.stdout
    assert left(cluster) == {f"namespaces/{HOME}"}


async def test_a_dry_run_changes_nothing(cluster: Double, muster: Run) -> None:
    done = await muster("uninstall", "--dry-run")
    assert (done.exit_code, cluster.writes) == (FINE, [])
    for said in ("would take Muster's gate off 3 pods", "2 deployments", "gangs.muster.dev"):
        assert said in done.stdout
    assert (await muster("uninstall")).exit_code == WRONG_USE
    assert cluster.writes == []


async def test_gang_offers_are_let_go_and_stay_for_the_rayclusters_that_they_own(
    cluster: Double, muster: Run
) -> None:
    cluster.get("gangqueues", "research")["metadata"]["finalizers"] = []
    cluster.add("gangoffers", "train-1", "team", finalizers=["of.others/one", FINALIZER], spec={})
    done = await muster("uninstall", "--yes")
    assert done.exit_code == FINE, done.output
    assert "1 GangOffer let go" in done.stdout
    offer = cluster.get("gangoffers", "train-1", "team")
    assert offer["metadata"]["finalizers"] == ["of.others/one"]
    assert "deletionTimestamp" not in offer["metadata"]
