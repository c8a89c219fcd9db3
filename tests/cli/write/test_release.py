"""`muster release`: what it does in which order, and what is left where something is refused."""

import asyncio
import itertools
import re
import time

import msgspec
import pytest

from cli import confirming
from cli.endings import FINE, NO, NOT_READ, WRONG_USE
from cli.write import opting_out, pacing, releasing, standstill
from extender.ledger import _guarded
from kube.objects import names
from kube.objects.gang import Gang
from tests.cli.write.cluster import LABEL, Double
from tests.cli.write.conftest import (
    HOME,
    Run,
    gang,
    gated,
    held,
    lease,
    moved,
    ray_cluster,
    suspended_job,
    waiting,
)
from tests.packaging.tree import ROOT


async def test_all_takes_rules_then_bindings_then_the_coordinator_then_gates(
    cluster: Double, muster: Run
) -> None:
    lease(cluster, "muster-coordinator-abc-1")
    done = await muster("release", "--all", "--yes")
    assert (done.exit_code, done.stderr) == (FINE, ""), done.output
    assert gated(cluster) == []
    assert [each["metadata"]["name"] for each in cluster.all("mutatingwebhookconfigurations")] == [
        "of-others"
    ]
    bindings = cluster.all("validatingadmissionpolicybindings")
    assert [each["metadata"]["name"] for each in bindings] == ["of-others"]
    places = [
        cluster.writes_to(part)
        for part in (
            *("mutatingwebhookconfigurations", "admissionpolicybindings", "deployments"),
            *("leases", "/gangs/", "rayclusters", "pods"),
        )
    ]
    # The Lease is given back in the end.
    order = [place[0] for place in places]
    assert order == sorted(order)
    assert len(places[-1]) == 3


async def test_gates_of_others_stay_and_other_pods_are_left_alone(
    cluster: Double, muster: Run
) -> None:
    before = cluster.add("pods", "plain", "team", spec={"schedulingGates": [{"name": "x/y"}]})
    await muster("release", "--all", "--yes")
    assert cluster.get("pods", "train-1", "team")["spec"]["schedulingGates"] == [
        {"name": "of.others/gate"}
    ]
    assert cluster.get("pods", "plain", "team") == before


async def test_what_muster_suspended_is_resumed_and_what_others_did_is_not(
    cluster: Double, muster: Run
) -> None:
    """The record counts where the note was lost, and a record of an earlier RayCluster does not."""
    noteless = ray_cluster(cluster, "noteless", spec={"suspend": True})
    gang(cluster, "noteless", noteless["metadata"]["uid"], held={"phase": "Suspending"})
    ray_cluster(cluster, "by-hand", spec={"suspend": True})
    resumed = ray_cluster(cluster, "resumed", spec={"suspend": True})
    gang(cluster, "resumed", resumed["metadata"]["uid"], held={"phase": "Resumed"})
    ray_cluster(cluster, "again", spec={"suspend": True})
    gang(cluster, "again", "another-uid", held={"phase": "Waiting"})
    suspended_job(cluster, "job", "Suspended")
    users = suspended_job(cluster, "users", "Suspended")
    users["metadata"]["annotations"] = {names.SUSPENDED_FOR: "team/x of-another"}
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == FINE, done.output
    said = {
        each["metadata"]["name"]: each["spec"].get("suspend") for each in cluster.all("rayclusters")
    }
    assert said == {
        "train": None,
        "later": False,
        "noteless": False,
        "by-hand": True,
        "resumed": True,
        "again": True,
    }
    assert names.HELD not in cluster.get("rayclusters", "later", "team")["metadata"]["annotations"]
    jobs = {each["metadata"]["name"]: each["spec"]["suspend"] for each in cluster.all("rayjobs")}
    assert jobs == {"job": False, "users": True}


async def test_the_extender_takes_the_pods_for_any_others_before_they_come(
    cluster: Double, muster: Run
) -> None:
    """It lets a pod of a gang pass on its slot alone; the record itself stays for a new start."""
    await muster("release", "--all", "--yes")
    assert max(cluster.writes_to("/gangs/")) < min(cluster.writes_to("/pods/"))
    status = cluster.get("gangs", "train", "team")["status"]
    assert (status["phase"], status["reason"]) == ("Queued", "OptedOut")
    assert _guarded(msgspec.convert(cluster.get("gangs", "train", "team"), Gang)).slots == {}


async def test_a_second_call_finds_nothing_to_do(cluster: Double, muster: Run) -> None:
    assert (await muster("release", "--all", "--yes")).exit_code == FINE
    cluster.writes.clear()
    again = await muster("release", "--all", "--yes")
    assert again.exit_code == FINE, again.output
    assert [
        each for each in cluster.writes if "deployments" not in each and "lease" not in each
    ] == []


async def test_pods_that_still_get_a_gate_are_released_too(cluster: Double, muster: Run) -> None:
    """An API server may hear late that the webhook's configuration is gone."""
    late = iter([("late", 2)])

    def create(write: str) -> None:
        if write.startswith("PATCH") and "/pods/train-2" in write:
            for each in late:
                waiting(cluster, *each)

    cluster.after = create
    done = await muster("release", "--all", "--yes")
    assert gated(cluster) == []
    assert "gates taken off 3 pods" in done.stdout
    assert "gates taken off 2 more pods" in done.stdout


async def test_no_pod_waits_until_every_api_server_has_heard(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go at once; one that is gated a little later goes too."""
    monkeypatch.setattr(releasing, "HEARD", 2.0)
    released: list[float] = []
    late = iter(["late"])

    def note(write: str) -> None:
        if "/pods/" not in write:
            return
        released.append(time.monotonic())
        if not gated(cluster) and released[-1] - released[0] < 1:
            for each in late:
                waiting(cluster, each, 1)

    cluster.after = note
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == FINE, done.output
    assert time.monotonic() - released[0] >= 1.0  # it goes on looking after the first
    assert gated(cluster) == []


def test_api_servers_hear_of_a_deleted_configuration_as_late_as_of_one_that_is_written() -> None:
    assert names.CONFIGURATION_HEARD.total_seconds() == standstill.HEARD


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        (r"PATCH .*/pods/train-1$", "1 gated pods: 403"),
        (r"DELETE .*bindings", "muster-gates: 403"),
        (r"PATCH .*/deployments/", "Deployment muster-system/muster-coordinator is not scaled"),
        (r"PATCH .*/rayclusters/later", "1 held RayClusters: 403"),
        (r"PATCH .*/gangs/train", "1 Gangs to be marked: 403"),
    ],
)
async def test_a_refusal_is_told_and_all_else_is_done(
    cluster: Double, muster: Run, refused: str, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "PATIENCE", 0.1)
    lease(cluster, "muster-coordinator-abc-1")
    cluster.refused = [refused]
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == NO
    assert left in done.stderr
    assert "1 left to do" in done.stderr
    assert "no pod has Muster's gate" not in done.stdout
    assert gated(cluster) == (["train-1"] if "pods" in refused else [])
    if "later" not in refused:
        assert cluster.get("rayclusters", "later", "team")["spec"]["suspend"] is False


@pytest.mark.parametrize(
    "lost",
    ["GET .*/pods$", "GET .*/leases/", "PATCH .*/pods/train-1", "DELETE ", "PATCH .*/deployments/"],
)
async def test_a_lost_answer_ends_nothing_halfway(cluster: Double, muster: Run, lost: str) -> None:
    lease(cluster, "muster-coordinator-abc-1")
    cluster.lost = [lost, lost]
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == FINE, done.output
    assert (cluster.lost, gated(cluster)) == ([], [])


@pytest.mark.parametrize(
    "unheard",
    [
        "GET .*/leases/",
        "PATCH .*/pods/train-1",
        "DELETE .*webhook",
        "PATCH .*/leases/",
        "PATCH .*/gangs/",
    ],
)
async def test_an_answer_that_comes_too_late_ends_nothing_halfway(
    cluster: Double, muster: Run, unheard: str
) -> None:
    """It was carried out, and nobody heard of it: it is tried again, and found done."""
    lease(cluster, "muster-coordinator-abc-1")
    cluster.unheard = [unheard]
    done = await muster("release", "--all", "--yes", "--request-timeout", "0.5")
    assert done.exit_code == FINE, done.output
    assert (cluster.unheard, gated(cluster)) == ([], [])
    # The holder was a pod of the Deployment, as the first try had read it.
    assert cluster.get("leases", "muster-coordinator", HOME)["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize("command", ["release", "uninstall"])
@pytest.mark.parametrize(
    ("refused", "left"),
    [
        (r"DELETE .*webhookconfigurations", "muster-webhook: 403"),
        (r"DELETE .*mutatingadmissionpolicybindings", "muster-gate: 403"),
        (r"PATCH .*/leases/", "Lease muster-system/muster-coordinator is not taken"),
    ],
)
async def test_while_pods_would_be_gated_or_deleted_no_gate_is_taken_off(
    cluster: Double, muster: Run, command: str, refused: str, left: str
) -> None:
    """New pods would come gated, or a leader delete those that lost their gate."""
    cluster.add("mutatingadmissionpolicybindings", "muster-gate", labels=LABEL)
    lease(cluster, "muster-coordinator-abc-1")
    cluster.refused = [refused]
    done = await muster(command, *(["--all"] if command == "release" else []), "--yes")
    assert done.exit_code == NO
    assert left in done.stderr
    assert "Error: no gate was taken off" in done.stderr
    assert len(gated(cluster)) == 3
    assert cluster.get("rayclusters", "later", "team")["spec"]["suspend"] is True
    assert cluster.writes_to("/gangs/") == cluster.writes_to("DELETE /apis/apps") == []


async def test_a_configuration_that_comes_back_at_once_is_told(
    cluster: Double, muster: Run
) -> None:
    """As where something applies the manifests by itself, or a finalizer holds it."""
    cluster.get("mutatingwebhookconfigurations", "muster-webhook")["metadata"]["finalizers"] = ["x"]
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == NO
    assert "muster-webhook is still there, or there again" in done.stderr
    assert len(gated(cluster)) == 3


async def test_a_deployment_that_is_not_scaled_keeps_the_lease_from_its_pods(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of its pods is there now, and the next one would lead."""
    lease(cluster, "muster-coordinator-abc-1")
    cluster.refused = [r"PATCH .*/deployments/"]
    assert (await muster("release", "--all", "--yes")).exit_code == NO
    assert cluster.get("leases", "muster-coordinator", HOME)["spec"]["holderIdentity"] == (
        names.STOPPED
    )


async def test_a_ray_job_that_is_never_resumed_holds_up_nothing(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that its tenant's own controller suspends again each time."""
    monkeypatch.setattr(pacing, "PATIENCE", 0.1)
    stuck = suspended_job(cluster, "stuck", "Suspending")
    again = suspended_job(cluster, "again", "Suspended")
    note = dict(again["metadata"]["annotations"])

    def suspend(write: str) -> None:
        if "/rayjobs/again" in write:
            job = cluster.get("rayjobs", "again", "team")
            job["spec"]["suspend"] = True
            job["metadata"]["annotations"] = dict(note)

    cluster.after = suspend
    done = await asyncio.wait_for(muster("release", "--all", "--yes"), 120)
    assert done.exit_code == NO
    assert "2 suspended RayJobs: KubeRay still suspends RayJob team/stuck" in done.stderr
    assert stuck["spec"]["suspend"] is True
    assert gated(cluster) == []


async def test_a_tenant_that_makes_gated_pods_all_the_time_holds_up_nothing(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "PATIENCE", 0.1)
    numbers = itertools.count()

    def make(write: str) -> None:
        if "/pods/" in write:
            waiting(cluster, f"more-{next(numbers)}", 1)

    cluster.after = make
    done = await asyncio.wait_for(muster("release", "--all", "--yes"), 120)
    assert done.exit_code == NO
    assert "gated pods: new ones come all the time" in done.stderr


async def test_muster_is_where_the_account_of_its_coordinator_is(
    cluster: Double, muster: Run
) -> None:
    """A tenant's Deployment of that name and label is no sign, nor is the usual namespace."""
    moved(cluster, "gangs")
    cluster.add("deployments", "muster-coordinator", "team", labels=LABEL, spec={"replicas": 2})
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == FINE, done.output
    assert cluster.get("deployments", "muster-coordinator", "gangs")["spec"]["replicas"] == 0
    assert cluster.get("deployments", "muster-coordinator", "team")["spec"]["replicas"] == 2
    assert cluster.get("leases", "muster-coordinator", "gangs")["spec"]["leaseTransitions"] == 2


async def test_without_the_binding_the_deployment_says_where_muster_is(
    cluster: Double, muster: Run
) -> None:
    moved(cluster, "gangs")
    del cluster.objects["clusterrolebindings", "", "muster-coordinator"]
    assert (await muster("release", "--all", "--yes")).exit_code == FINE
    assert cluster.get("deployments", "muster-coordinator", "gangs")["spec"]["replicas"] == 0


async def test_a_ray_cluster_that_is_held_late_is_resumed_too(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As late as an API server hears that the webhook's configuration is gone."""
    monkeypatch.setattr(releasing, "HEARD", 3.0)
    loop = asyncio.get_running_loop()

    def create(write: str) -> None:
        if "rayclusters/later" in write:
            loop.call_later(0.5, held, cluster, "late")

    cluster.after = create
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == FINE, done.output
    assert cluster.get("rayclusters", "late", "team")["spec"]["suspend"] is False
    assert "1 more held RayCluster resumed" in done.stdout


async def test_what_may_not_be_read_ends_it_before_anything_is_written(
    cluster: Double, muster: Run
) -> None:
    cluster.refused = [r"GET .*/pods$"]
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == NOT_READ
    assert "not allowed to read pods" in done.stderr
    assert cluster.writes == []


# --- the coordinators


async def test_a_leader_of_the_deployment_loses_its_lease_and_it_is_free_in_the_end(
    cluster: Double, muster: Run
) -> None:
    lease(cluster, "muster-coordinator-abc-1")
    held_by: list[str] = []

    def note(write: str) -> None:
        spec = cluster.get("leases", "muster-coordinator", HOME)["spec"]
        held_by.append(f"{spec['holderIdentity']} at {write}")

    cluster.after = note
    await muster("release", "--all", "--yes")
    pods = [each for each in held_by if "/pods/" in each]
    assert pods
    assert all(each.startswith(names.STOPPED) for each in pods)
    spec = cluster.get("leases", "muster-coordinator", HOME)["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 6)
    assert cluster.get("deployments", "muster-coordinator", HOME)["spec"]["replicas"] == 0
    assert cluster.get("deployments", "muster-webhook", HOME)["spec"]["replicas"] == 2


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_a_coordinator_that_may_still_run_never_leads_again(
    cluster: Double, muster: Run, elsewhere: bool
) -> None:
    """One outside of the Deployment, and one whose pod does not end."""
    lease(cluster, "laptop" if elsewhere else "muster-coordinator-abc-1")
    if not elsewhere:
        label = {"app.kubernetes.io/name": "muster-coordinator"}
        cluster.add("pods", "muster-coordinator-abc", HOME, labels=label, spec={"nodeName": "dead"})
    done = await muster("release", "--all", "--yes")
    spec = cluster.get("leases", "muster-coordinator", HOME)["spec"]
    assert spec["holderIdentity"] == names.STOPPED
    assert spec["leaseDurationSeconds"] > 365 * 24 * 3600
    assert "kubectl -n muster-system delete lease muster-coordinator" in done.stdout


async def test_a_leader_that_renews_meanwhile_still_loses_the_lease(
    cluster: Double, muster: Run
) -> None:
    lease(cluster, "muster-coordinator-abc-1")
    renewals = iter(range(3))

    def renew(write: str) -> None:
        for _ in renewals:
            meta = cluster.get("leases", "muster-coordinator", HOME)["metadata"]
            meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
            return

    original = cluster._answer

    async def answer(request, key):  # type: ignore[no-untyped-def]
        got = await original(request, key)
        if request.method == "GET" and key[0] == "leases":
            renew("")
        return got

    cluster._answer = answer  # type: ignore[method-assign]
    done = await muster("release", "--all", "--yes")
    assert done.exit_code == FINE, done.output
    assert cluster.get("leases", "muster-coordinator", HOME)["spec"]["leaseTransitions"] == 6


# --- asking


async def test_a_dry_run_counts_and_changes_nothing(cluster: Double, muster: Run) -> None:
    cluster.add(
        *("gangs", "appwrapper.big", "team"),
        spec={},
        status={"held": {"phase": "Waiting"}, "phase": "Queued"},
    )
    done = await muster("release", "--all", "--dry-run")
    assert (done.exit_code, cluster.writes) == (FINE, [])
    for said in (
        "would delete 1 webhook configuration",
        "would delete 1 policy binding",
        "(1 Deployment to 0)",
        "would take Muster's gate off 3 pods",
        "would resume 1 RayCluster",
        "1 AppWrapper waits",
        "team/big; to start one, start Muster again, wait",
    ):
        assert said in done.stdout


async def test_without_a_terminal_and_without_yes_it_refuses(cluster: Double, muster: Run) -> None:
    done = await muster("release", "--all")
    assert (done.exit_code, cluster.writes) == (WRONG_USE, [])
    assert "add --yes" in done.stderr


@pytest.mark.parametrize(("answer", "code"), [("n\n", NO), ("y\n", FINE)])
async def test_a_person_is_asked(
    cluster: Double, muster: Run, answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "is_terminal", lambda: True)
    done = await muster("release", "--all", answer=answer)
    assert done.exit_code == code
    assert (cluster.writes == []) is (code == NO)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a gang"),
        (["--all", "-n", "team"], "--all is the whole cluster"),
        (["--all", "team/train"], "--all is the whole cluster"),
        (["a/b/c"], "allowed: NAME or NAMESPACE/NAME"),
        (["x/train", "-n", "team"], "is not in namespace team"),
    ],
)
async def test_a_wrong_command_line_is_refused(
    cluster: Double, muster: Run, arguments: list[str], said: str
) -> None:
    done = await muster("release", *arguments)
    assert (done.exit_code, cluster.writes) == (WRONG_USE, [])
    assert said in done.stderr


# --- one gang, one namespace


def opted_out(cluster: Double) -> set[str]:
    return {
        f"{kind}/{each['metadata']['name']}"
        for kind in ("rayclusters", "rayjobs")
        for each in cluster.all(kind)
        if each["metadata"].get("labels", {}).get(names.OPT_IN) == "false"
    }


async def test_one_gang_is_opted_out_and_released_and_no_other_is(
    cluster: Double, muster: Run
) -> None:
    waiting(cluster, "other", 1)
    done = await muster("release", "team/train", "--yes")
    assert done.exit_code == FINE, done.output
    assert opted_out(cluster) == {"rayclusters/train"}
    assert gated(cluster) == ["other-0"]
    assert cluster.writes_to("webhookconfigurations") == []
    assert "muster-coordinator" not in "".join(cluster.writes)


async def test_the_name_of_a_job_means_its_cluster_too(cluster: Double, muster: Run) -> None:
    cluster.add("rayjobs", "job", "team", spec={}, status={"rayClusterName": "later"})
    done = await muster("release", "job", "-n", "team", "--yes")
    assert done.exit_code == FINE, done.output
    assert opted_out(cluster) == {"rayclusters/later", "rayjobs/job"}
    assert cluster.get("rayclusters", "later", "team")["spec"]["suspend"] is False


async def test_a_namespace_means_its_gangs_and_no_other_ray_cluster(
    cluster: Double, muster: Run
) -> None:
    ray_cluster(cluster, "plain")
    cluster.get("namespaces", "team")["metadata"]["labels"] = {names.OPT_IN: "true"}
    done = await muster("release", "-n", "team", "--yes")
    assert done.exit_code == FINE, done.output
    assert opted_out(cluster) == {"rayclusters/train", "rayclusters/later"}
    assert "kubectl label namespace team muster.dev/gang-" in done.stdout


async def test_a_namespace_means_what_waits_for_a_gang_that_was_never_made(
    cluster: Double, muster: Run
) -> None:
    """The coordinator died before it could; pods of others are counted, and left alone."""
    ray_cluster(cluster, "plain")
    for each in [key for key in cluster.objects if key[0] == "gangs"]:
        del cluster.objects[each]
    spec = {"schedulingGates": [{"name": names.GATE}]}
    cluster.add("pods", "of-an-app-wrapper", "team", spec=spec)
    done = await muster("release", "-n", "team", "--yes")
    assert done.exit_code == FINE, done.output
    assert opted_out(cluster) == {"rayclusters/train", "rayclusters/later"}
    assert gated(cluster) == ["of-an-app-wrapper"]
    assert cluster.get("rayclusters", "later", "team")["spec"]["suspend"] is False
    assert "1 gated pod of none of them: muster release --all frees it" in done.stdout


async def test_what_is_made_for_an_app_wrapper_is_no_gang_of_its_own(
    cluster: Double, muster: Run
) -> None:
    """No label on it is heard: a coordinator would take its pods for those of the AppWrapper on."""
    waiting(cluster, "wrapped", 1)
    del cluster.objects["gangs", "team", "wrapped"]
    owner = {"kind": names.APP_WRAPPER_KIND, "name": "big", "uid": "of-big", "controller": True}
    cluster.get("rayclusters", "wrapped", "team")["metadata"] |= {
        "labels": {names.APP_WRAPPER: "big", names.APP_WRAPPER_UID: "of-big"},
        "ownerReferences": [owner],
    }
    assert (await muster("release", "-n", "team", "--yes")).exit_code == FINE
    assert opted_out(cluster) == {"rayclusters/train", "rayclusters/later"}
    assert gated(cluster) == ["wrapped-0"]


async def test_without_a_coordinator_the_extender_takes_the_pods_of_one_gang_for_any_others(
    cluster: Double, muster: Run
) -> None:
    waiting(cluster, "other", 1)
    assert (await muster("release", "team/train", "--yes")).exit_code == FINE
    assert cluster.get("gangs", "train", "team")["status"]["reason"] == "OptedOut"
    assert "reason" not in cluster.get("gangs", "other", "team")["status"]
    assert max(cluster.writes_to("/gangs/")) < min(cluster.writes_to("/pods/"))


async def test_for_one_gang_nothing_of_other_namespaces_is_read(
    cluster: Double, muster: Run
) -> None:
    """A tenant may not."""
    cluster.refused = [r"GET /api/v1/pods", r"GET /apis/(ray.io|muster.dev)/v1(alpha1)?/[a-z]+$"]
    done = await muster("release", "-n", "team", "--yes")
    assert done.exit_code == FINE, done.output
    assert gated(cluster) == []


async def test_what_could_not_be_labelled_keeps_its_gates(cluster: Double, muster: Run) -> None:
    """A coordinator that comes back would take it for a gang whose gates somebody removed."""
    cluster.refused = [r"PATCH .*/rayclusters/train"]
    done = await muster("release", "-n", "team", "--yes")
    assert done.exit_code == NO
    assert "rayclusters team/train: 403" in done.stderr
    assert len(gated(cluster)) == 3
    assert cluster.get("rayclusters", "later", "team")["spec"]["suspend"] is False
    assert '"false" set on team/later' in done.stdout


async def test_where_a_coordinator_runs_it_takes_the_gates_off(
    cluster: Double, muster: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opting_out, "PATIENCE", 60.0)

    def coordinate(write: str) -> None:
        if "rayclusters" in write:
            for each in cluster.all("pods"):
                each["spec"]["schedulingGates"] = []

    cluster.after = coordinate
    done = await muster("release", "team/train", "--yes")
    assert "the coordinator took the gates off" in done.stdout
    assert cluster.writes_to("/pods/") == []


async def test_what_is_not_there_is_said(cluster: Double, muster: Run) -> None:
    done = await muster("release", "team/absent", "--yes")
    assert done.exit_code == NO
    assert "no RayCluster, RayJob or RayService absent in namespace team" in done.stderr


async def test_the_page_shows_what_it_says(cluster: Double, muster: Run) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    (shown,) = re.findall(
        r"^```text\n\$ muster release --all --yes\n(.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    waiting(cluster, "many", 97)
    held(cluster, "later-too")
    cluster.add("validatingadmissionpolicybindings", "muster-more", labels=LABEL)
    lease(cluster, "muster-coordinator-abc-1")
    done = await muster("release", "--all", "--yes")
    said = shown.replace("waiting 15 s", "waiting 1 s").replace("until 30 s", "until 0 s")
    assert done.stdout == said
