"""GangOffers on the real control plane: what another cluster writes, and what becomes of it."""

import json
from typing import Any

import pytest

from kube.objects import names
from kube.objects.clusters.gang_offer import FINALIZER
from testbed.errors import TestbedError
from testbed.muster import Muster
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import Json, gang, group

MANAGER = "0c6a3ef4-7d9c-4a15-9a56-2f1a4c1f5a10"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"


def offer(plot: Plot, name: str, workers: int, queue: str = "", **spec: Any) -> Json:
    """Ask for a head and so many workers; the RayCluster has the name without the attempt."""
    cluster = gang(name.rpartition("-")[0], group(replicas=workers))
    for each in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        each["template"]["spec"]["nodeSelector"] = plot.selector
    meta = cluster["metadata"]
    labels = {**meta["labels"], **({names.QUEUE: plot.queue(queue)} if queue else {})}
    template = {"name": meta["name"], "labels": labels, "spec": cluster["spec"]}
    asked = {"manager": MANAGER, "uid": f"of-{name}", "attempt": 1, "template": template}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GangOffer",
        "metadata": {"name": name},
        "spec": {**asked, **spec},
    }


def wait_answer(plot: Plot, name: str, phase: str, reason: str = "") -> Json:
    def said() -> Json:
        found = plot.get("GangOffer", name)
        status = found.get("status") or {}
        reached = status.get("phase") == phase and reason in ("", status.get("reason"))
        return found if reached else {}

    return plot.wait(said, f"GangOffer {name} to be {phase} {reason}")


def accept(plot: Plot, found: Json, term: int = 1) -> None:
    """Accept an offer as it was read: a merge patch with a resourceVersion tests it."""
    meta = found["metadata"]
    tests = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    plot.patch("GangOffer", meta["name"], {"metadata": tests, "spec": {"acceptedBy": term}})


def create_for(plot: Plot, found: Json) -> None:
    """Create the RayCluster that an offer is about, as the other cluster does."""
    meta, template = found["metadata"], found["spec"]["template"]
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "GangOffer",
        "name": meta["name"],
        "uid": meta["uid"],
    }
    plot.create(
        {
            "apiVersion": names.RAY_API_VERSION,
            "kind": "RayCluster",
            "metadata": {
                "name": template["name"],
                "labels": template["labels"],
                "ownerReferences": [owner],
            },
            "spec": template["spec"],
        }
    )


def test_an_accepted_offer_becomes_a_raycluster_in_the_room_that_was_kept(plot: Plot) -> None:
    """The local gang has its pods before the offer is made, which lasts a minute only."""
    plot.add_queue("held", stop="Hold")
    plot.add_queue("open")
    plot.create(gang("local", group(replicas=2), labels={names.QUEUE: plot.queue("held")}))
    plot.wait_phase("local", "Queued", "QueueStopped")
    plot.add_node(3)
    plot.create(offer(plot, "first-1", 2, queue="open"))
    found = wait_answer(plot, "first-1", "Offered")
    assert FINALIZER in found["metadata"]["finalizers"]
    assert {each["metadata"]["name"] for each in plot.all("RayCluster")} == {"local"}

    plot.change_queue("held", stop="None")
    plot.wait_phase("local", "Queued", "InsufficientResources")
    plot.create(offer(plot, "second-1", 2, queue="open"))
    waits = wait_answer(plot, "second-1", "Asked", "InsufficientResources")
    assert "fit" in waits["status"]["message"]

    accept(plot, found)
    started = wait_answer(plot, "first-1", "Started")
    create_for(plot, started)
    plot.wait_running("first", 3)
    plot.wait_no_gang("gangoffer.first-1")
    assert all(is_held(pod) for pod in plot.pods("local"))
    assert not plot.get("RayCluster", "first")["spec"].get("suspend")

    plot.delete("GangOffer", "first-1")  # withdrawn: the member ends it
    plot.wait_gone("GangOffer", "first-1")
    plot.wait_running("local", 3)
    plot.delete("GangOffer", "second-1")
    plot.wait_gone("GangOffer", "second-1")


def test_what_a_former_leader_accepts_is_not_started_and_an_old_acceptance_is_refused(
    muster: Muster, plot: Plot
) -> None:
    plot.add_node(3)
    lease = {"metadata": {"name": f"{names.DISPATCHER_LEASE}-{MANAGER}"}}
    plot.cluster.api.create(LEASES, {**lease, "spec": {"leaseTransitions": 7}})
    plot.create(offer(plot, "late-1", 2))
    found = wait_answer(plot, "late-1", "Offered")
    accept(plot, found, term=6)
    with pytest.raises(TestbedError, match=" 409 "):
        accept(plot, found, term=7)  # it is of a version that is there no more
    refused = 'muster_offers_total{phase="Offered",reason="OtherLeader"}'
    plot.wait(lambda: refused in muster.metrics(), "the coordinator to refuse the start")
    found = wait_answer(plot, "late-1", "Offered")
    with pytest.raises(TestbedError, match="acceptedBy cannot be taken back"):
        accept(plot, found, term=5)
    accept(plot, found, term=7)
    wait_answer(plot, "late-1", "Started")
    plot.delete("GangOffer", "late-1")
    plot.wait_gone("GangOffer", "late-1")


def test_what_is_not_renewed_is_stopped_and_another_lease_is_never_written(plot: Plot) -> None:
    """The manager writes the stamp of the member back once, and is not heard of again."""
    plot.add_node(3)
    name = f"{names.DISPATCHER_LEASE}-fence"
    api = plot.cluster.api
    api.create(LEASES, {"metadata": {"name": name}, "spec": {"leaseTransitions": 1}})
    plot.create(offer(plot, "fenced-1", 2, manager="fence", lostAfterSeconds=30))
    found = wait_answer(plot, "fenced-1", "Offered")

    def stamp() -> str:
        notes = api.get(f"{LEASES}/{name}")["metadata"].get("annotations") or {}
        return str(notes.get(names.STAMP, ""))

    stamped = plot.wait(stamp, "the member to stamp the Lease")
    note = {"metadata": {"annotations": {names.STAMP_READ: stamped}}}
    _patch_lease(plot, name, note)
    accept(plot, found)
    create_for(plot, wait_answer(plot, "fenced-1", "Started"))
    plot.wait_running("fenced", 3)
    closed = wait_answer(plot, "fenced-1", "Closed", "ManagerLost")
    assert "lost after 30 s" in closed["status"]["message"]
    assert not plot.pods("fenced")
    plot.delete("GangOffer", "fenced-1")
    plot.wait_gone("GangOffer", "fenced-1")

    coordinator = f"--as=system:serviceaccount:{names.DEFAULT_NAMESPACE}:muster-coordinator"
    api.create(LEASES, {"metadata": {"name": "muster-other"}})
    for lease, change in (("muster-other", note), (name, {"spec": {"leaseTransitions": 9}})):
        with pytest.raises(TestbedError, match="notes on those of managers"):
            _patch_lease(plot, lease, change, coordinator)


def _patch_lease(plot: Plot, name: str, change: Json, *user: str) -> None:
    """Patch a Lease of Muster's namespace."""
    how = ("-n", names.DEFAULT_NAMESPACE, "--type=merge", "-p", json.dumps(change))
    plot.cluster.kubectl("patch", "lease", name, *how, *user)
