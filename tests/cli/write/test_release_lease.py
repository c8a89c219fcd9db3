"""`muster release --all` takes the Lease from every coordinator."""

import pytest

from cli.endings import FINE
from kube.objects import names
from tests.cli.write.cluster import LABEL, Double
from tests.cli.write.conftest import (
    HOME,
    Run,
    lease,
    moved,
)


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
