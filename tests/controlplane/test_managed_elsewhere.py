"""RayClusters of a queue with clusters are managed elsewhere from the start, and stay so."""

from __future__ import annotations

import http
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kube.objects import names
from testbed.cluster import Cluster
from testbed.muster import Muster
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group
from tests.controlplane.test_dispatch_record import MEMBERS, member, sent
from tests.rights_plugin import MANIFESTS

COMPONENT = MANIFESTS / "dispatcher"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"
ENTRY = "dispatch.muster.dev"
OK = (http.HTTPStatus.OK, http.HTTPStatus.CREATED)


@pytest.fixture(scope="module", autouse=True)
def component(muster: Muster) -> Iterator[None]:
    """The component's entry of the webhook and its policies, for this module."""
    cluster = muster.cluster
    (step,) = yaml.safe_load((COMPONENT / "webhook-entry.yaml").read_text())
    before = cluster.api.get(WEBHOOKS)["webhooks"]
    _write(cluster, [*before, _on_loopback(step["value"], before[0])])
    cluster.kubectl("apply", "-f", str(COMPONENT / "policies.yaml"))
    yield
    cluster.kubectl("delete", "-f", str(COMPONENT / "policies.yaml"))
    _write(cluster, before)


def _on_loopback(entry: Json, other: Json) -> Json:
    """The entry, where the other ones are."""
    url = other["clientConfig"]["url"].rpartition("/")[0]
    path = entry["clientConfig"]["service"]["path"]
    return {**entry, "clientConfig": {**other["clientConfig"], "url": f"{url}{path}"}}


def _write(cluster: Cluster, webhooks: list[Any]) -> None:
    status, answer = sent(cluster.api, "PATCH", WEBHOOKS, {"webhooks": webhooks})
    assert status == http.HTTPStatus.OK, answer


@pytest.fixture
def far(plot: Plot) -> Plot:
    """A queue with clusters, as the webhook knows it."""
    plot.add_queue("far", clusters={}, quota={"cpu": 3}, whenBlocked="Strict")

    def is_sent() -> bool:
        path = f"{plot.path('RayCluster')}?dryRun=All"
        _, answer = sent(plot.cluster.api, "POST", path, away(plot, "probe"))
        return names.MANAGED_ELSEWHERE in answer

    wait_until(is_sent, "the webhook to know the queue")
    return plot


def away(plot: Plot, name: str, **labels: str) -> Json:
    return gang(name, group(replicas=2), labels={names.QUEUE: plot.queue("far"), **labels})


def changed(plot: Plot, name: str, change: Json) -> tuple[int, str]:
    path = f"{plot.path('RayCluster', name)}?dryRun=All"
    return sent(plot.cluster.api, "PATCH", path, change)


def test_it_is_managed_elsewhere_has_its_quota_and_no_pods(far: Plot) -> None:
    made = far.create(away(far, "a"))
    assert made["spec"]["managedBy"] == names.MANAGED_ELSEWHERE
    far.create(away(far, "b"))
    far.wait_phase("a", "QuotaReserved", "QuotaReserved")
    far.wait_phase("b", "Queued", "QuotaExceeded")
    assert not far.pods("a")
    assert far.status("a")["placement"]["queue"] == far.queue("far")
    status, answer = sent(
        far.cluster.api,
        "POST",
        far.path("RayCluster"),
        away(far, "c", **{names.KUEUE_QUEUE: "theirs"}),
    )
    assert status == http.HTTPStatus.UNPROCESSABLE_ENTITY
    assert "hands the RayCluster to Kueue" in answer


def test_managed_by_is_neither_set_nor_taken_away_once_it_exists(far: Plot) -> None:
    far.create(away(far, "a"))
    here = gang("here", group(replicas=0), labels={names.OPT_IN: "false"})
    far.create(here)
    for name, value in (("a", None), ("here", names.MANAGED_ELSEWHERE)):
        change = {"spec": {"managedBy": value}}
        wait_until(
            lambda name=name, change=change: changed(far, name, change)[0] not in OK,  # type: ignore[misc]
            "the policy to refuse",
        )
        assert "create it anew" in changed(far, name, change)[1]
    status, answer = changed(far, "a", {"metadata": {"labels": {names.KUEUE_QUEUE: "theirs"}}})
    assert status in (http.HTTPStatus.UNPROCESSABLE_ENTITY, http.HTTPStatus.FORBIDDEN)
    assert "Muster sends it to another cluster" in answer
    assert changed(far, "a", {"spec": {"suspend": True}})[0] in OK
    assert changed(far, "here", {"spec": {"suspend": True}})[0] in OK


def test_a_member_with_gangs_is_not_deleted(plot: Plot) -> None:
    api, name = plot.cluster.api, plot.queue("east")
    api.create(MEMBERS, member(name))
    path = f"{MEMBERS}/{name}"
    sent(api, "PATCH", f"{path}/status", {"status": {"gangs": 2}})
    wait_until(
        lambda: sent(api, "DELETE", f"{path}?dryRun=All", {})[0] not in OK, "the policy to refuse"
    )
    assert "gangs that run there: 2" in json.dumps(sent(api, "DELETE", f"{path}?dryRun=All", {}))
    sent(api, "PATCH", f"{path}/status", {"status": {"gangs": 0}})
    assert sent(api, "DELETE", path, {})[0] in OK
