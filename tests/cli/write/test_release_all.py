"""`muster release --all` takes all gates off, whatever happens meanwhile."""

import asyncio
import itertools
import time

import msgspec
import pytest

from cli.endings import FINE, NO, NOT_READ
from cli.write import pacing, releasing, standstill
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
    ray_cluster,
    suspended_job,
    waiting,
)


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
