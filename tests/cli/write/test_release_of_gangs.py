"""`muster release` of a gang or a namespace."""

import pytest

from cli.endings import FINE, NO
from cli.write import opting_out
from kube.objects import names
from tests.cli.write.cluster import Double
from tests.cli.write.conftest import (
    Run,
    gated,
    ray_cluster,
    waiting,
)

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
