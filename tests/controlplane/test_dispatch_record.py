"""What the API server allows in the objects that say on which cluster a gang runs."""

from __future__ import annotations

import contextlib
import http
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kube.objects import names
from testbed.api import Api
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json

MEMBERS = "/apis/muster.dev/v1alpha1/memberclusters"
QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"
MERGE = "application/merge-patch+json"
ACCOUNT = "system:serviceaccount:team:dispatches"
OPEN: Json = {"attempt": 2, "term": 3, "phase": "Offered", "cluster": "east"}


def sent(api: Api, method: str, path: str, body: Json) -> tuple[int, str]:
    kind = MERGE if method == "PATCH" else "application/json"
    with api.session() as session:
        status, answer = session.request(method, path, json.dumps(body).encode(), kind)
    return status, answer.decode()


def member(name: str, **spec: Any) -> Json:
    meta: Json = {"name": name}
    secret: Json = {"kubeconfigSecret": {"name": "east"}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MemberCluster",
        "metadata": meta,
        "spec": secret | spec,
    }


@contextlib.contextmanager
def allowed_to_dispatch(api: Api, name: str) -> Iterator[Api]:
    """An account that may write `status.dispatch` of all Gangs."""
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": ["muster.dev"], "resources": ["gangs"], "verbs": ["dispatch"]},
        {"apiGroups": ["muster.dev"], "resources": ["gangs/status"], "verbs": ["patch"]},
    ]
    subject = {"kind": "User", "name": ACCOUNT, "apiGroup": group}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    found: dict[str, Json] = {
        f"/apis/{group}/v1/clusterroles": {"rules": rules},
        f"/apis/{group}/v1/clusterrolebindings": {"roleRef": reference, "subjects": [subject]},
    }
    for path, body in found.items():
        api.create(path, {"metadata": {"name": name}, **body})
    yield replace(api, impersonated=ACCOUNT)
    for path in found:
        sent(api, "DELETE", f"{path}/{name}", {})


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (member("n" * 64), "at most 63 characters"),
        (member("east", namespaces=["a", "a"]), "Duplicate value"),
        (member("east", state="Away"), "Unsupported value"),
        (member("east", kubeconfigSecret={}), "kubeconfigSecret.name: Required"),
    ],
    ids=["a-name-too-long", "a-namespace-twice", "no-such-state", "no-secret"],
)
def test_a_member_that_cannot_be_is_refused(plot: Plot, found: Json, said: str) -> None:
    status, answer = sent(plot.cluster.api, "POST", f"{MEMBERS}?dryRun=All", found)
    assert status == http.HTTPStatus.UNPROCESSABLE_ENTITY
    assert said in answer


def test_a_member_is_filled_with_what_goes_without_saying_and_stays_one_cluster(
    plot: Plot,
) -> None:
    api, name = plot.cluster.api, plot.queue("east")
    made = api.create(MEMBERS, member(name))
    assert made["spec"]["state"] == "Active"
    assert made["spec"]["kubeconfigSecret"]["key"] == "kubeconfig"
    path = f"{MEMBERS}/{name}"
    assert sent(api, "PATCH", f"{path}/status", {"status": {"uid": "one"}})[0] == http.HTTPStatus.OK
    status, answer = sent(api, "PATCH", f"{path}/status", {"status": {"uid": "two"}})
    assert status == http.HTTPStatus.UNPROCESSABLE_ENTITY
    assert "another cluster answers" in answer
    sent(api, "DELETE", path, {})


def test_a_queue_with_clusters_does_not_backfill(plot: Plot) -> None:
    spec = {"clusters": {"order": ["east"]}, "whenBlocked": "Backfill"}
    queue: Json = {
        "apiVersion": names.API_VERSION,
        "kind": "GangQueue",
        "metadata": {"name": plot.queue("far")},
        "spec": spec,
    }
    path = f"{QUEUES}?dryRun=All"
    status, answer = sent(plot.cluster.api, "POST", path, queue)
    assert status == http.HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Backfill needs nodes" in answer
    spec["whenBlocked"] = "Strict"
    assert sent(plot.cluster.api, "POST", path, queue)[0] == http.HTTPStatus.CREATED


def test_the_record_of_a_dispatch_goes_one_way_and_nothing_else_is_written_with_it(
    plot: Plot,
) -> None:
    plot.create({"apiVersion": names.API_VERSION, "kind": "Gang", "metadata": {"name": "a"}})
    path = f"{plot.path('Gang', 'a')}/status"
    with allowed_to_dispatch(plot.cluster.api, plot.queue("dispatches")) as by:
        changes: list[tuple[Json, str]] = [
            ({"dispatch": OPEN}, ""),
            ({"dispatch": {"term": 2}}, "term must not decrease"),
            ({"dispatch": {"attempt": 1, "cluster": None}}, "attempt must not decrease"),
            ({"dispatch": {"cluster": "west"}}, "stays on the cluster"),
            ({"dispatch": {"cluster": None}}, "stays on the cluster"),
            ({"dispatch": {"phase": "Gone"}}, "Unsupported value"),
            ({"dispatch": {"phase": "Started"}, "phase": "Running"}, "muster-gangs"),
            ({"placement": {"epoch": 1}}, "muster-gangs"),
            ({"dispatch": {"phase": "Closed"}}, ""),
            ({"dispatch": {"attempt": 3, "phase": "Asked", "cluster": None}}, ""),
        ]
        for change, said in changes:
            status, answer = sent(by, "PATCH", path, {"status": change})
            assert (status == http.HTTPStatus.OK) == (not said), answer
            assert said in answer
