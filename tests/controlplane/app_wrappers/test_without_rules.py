"""Whose pods wait at the API server, with the rules for AppWrappers and without them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.reviewed import HEARD, reviewed_since
from kube.objects import names
from testbed.cluster import Cluster
from testbed.muster import Muster
from testbed.waiting import wait_until
from tests.controlplane.app_wrappers.place import (
    TENANT,
    Json,
    Place,
    config_map,
    deployment,
    wrapper,
)


def gated(pod: Json) -> bool:
    gates = pod["spec"].get("schedulingGates", ())
    return [gate["name"] for gate in gates] == [names.GATE]


def plain(name: str, labels: dict[str, Any]) -> Json:
    """Return a pod that no controller makes."""
    pod: Json = deployment(**labels)["spec"]["template"]
    pod["metadata"]["name"] = name
    return pod | {"apiVersion": "v1", "kind": "Pod"}


async def since(cluster: Cluster) -> datetime | None:
    access = await load_access(str(cluster.kubeconfig), setting="--kubeconfig")
    async with Client(access) as client:
        return await reviewed_since(client)


@pytest.mark.variant
async def test_pods_wait_while_the_rules_are_there_and_are_plain_without_them(
    place: Place, muster: Muster
) -> None:
    """The last test of the folder: it takes the rules away."""
    place.send(TENANT, wrapper(config_map()))
    uid = place.get("aw")["metadata"]["uid"]
    ours = {names.APP_WRAPPER: "aw", names.APP_WRAPPER_UID: uid}
    place.send(TENANT, deployment(2, **ours))
    wait_until(lambda: len(place.pods()) == 2, "both pods")
    assert all(gated(pod) for pod in place.pods())
    absent = {**ours, names.APP_WRAPPER_GROUP: names.MCAD_GROUP}
    gone = {**ours, names.APP_WRAPPER_UID: "other"}
    place.send(TENANT, plain("misnamed", {names.APP_WRAPPER: "Not_a-name"}))
    for labels in (gone, absent):
        said = place.refused(TENANT, plain("gone", labels))
        assert "is gone; allowed: a pod of one that exists" in said
    assert sorted(gated(pod) for pod in place.pods()) == [False, True, True]
    before = await since(muster.cluster)
    assert before is not None
    assert before < datetime.now(UTC) + HEARD + timedelta(seconds=1)

    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        muster.cluster.kubectl("delete", kind, "muster-app-wrapper")
    assert await since(muster.cluster) is None

    def a_plain_pod() -> bool:
        place.kubectl("delete", "pod", "asked", "--ignore-not-found", "--grace-period=0", "--force")
        place.send(TENANT, plain("asked", ours))
        return not any(gated(each) for each in place.pods() if each["metadata"]["name"] == "asked")

    wait_until(a_plain_pod, "the API server to have heard that the rules are gone")
    place.kubectl("scale", "deployment", "web", "--replicas=4")
    wait_until(lambda: len(place.pods()) == 6, "two more pods")
    of_web = [pod for pod in place.pods() if pod["metadata"]["name"].startswith("web-")]
    assert sorted(gated(pod) for pod in of_web) == [False, False, True, True]
