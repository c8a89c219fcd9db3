"""Has Muster's admission policies in force on a cluster, or not.

The API server takes up a policy within a second or so. Whether it has is asked by requests that the
policies are to refuse, each a dry run in the name of an account that RBAC allows them: the garbage
collector's may patch any object.
"""

from __future__ import annotations

import json
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import yaml

from kube.objects.names import API_VERSION, GATE
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.waiting import wait_until

POLICIES = Path(__file__).resolve().parents[2] / "manifests" / "base" / "policies.yaml"
_API = "/apis/admissionregistration.k8s.io/v1"
POLICY_RESOURCES = {
    "ValidatingAdmissionPolicy": f"{_API}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_API}/validatingadmissionpolicybindings",
}
"""Where policies and their bindings are, by kind."""

_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
_NAME = "policy-probe"
_POD = {
    "metadata": {"name": _NAME},
    "spec": {
        "schedulingGates": [{"name": GATE}],
        "containers": [{"name": "probe", "image": "probe"}],
    },
}
_GANG = {"apiVersion": API_VERSION, "kind": "Gang", "metadata": {"name": _NAME}, "spec": {}}
_PROBES: dict[str, tuple[Json, Json]] = {
    "/api/v1/namespaces/default/pods": (_POD, {"spec": {"schedulingGates": None}}),
    f"/apis/{API_VERSION}/namespaces/default/gangs": (_GANG, {"spec": {"queue": "probed"}}),
}
"""Collection: what is created there for a moment, and the change of it that is refused."""


def apply_policies(cluster: Cluster, files: tuple[Path, ...] = (POLICIES,)) -> None:
    """Apply policies and their bindings; it is not waited until they are in force."""
    for path in files:
        for found in yaml.safe_load_all(path.read_text()):
            where = POLICY_RESOURCES[found["kind"]]
            name = found["metadata"]["name"]
            cluster.api.apply(f"{where}/{name}", json.dumps(found).encode())


def wait_enforced(cluster: Cluster) -> None:
    """Wait until the policies refuse; before a coordinator runs, which would see the probes."""
    _wait(cluster, HTTPStatus.FORBIDDEN, "the policies to be in force")


def lift_policies(cluster: Cluster) -> None:
    """Delete the bindings, and wait until nothing is refused any more."""
    with cluster.api.session() as session:
        for found in yaml.safe_load_all(POLICIES.read_text()):
            if found["kind"] == "ValidatingAdmissionPolicyBinding":
                where, name = POLICY_RESOURCES[found["kind"]], found["metadata"]["name"]
                session.call("DELETE", f"{where}/{name}")
    _wait(cluster, HTTPStatus.OK, "the policies to be lifted")


def _wait(cluster: Cluster, answer: HTTPStatus, what: str) -> None:
    for path, (content, _) in _PROBES.items():
        cluster.api.create(path, content)
    try:
        for path, (_, change) in _PROBES.items():
            wait_until(lambda p=path, c=change: _answer(cluster, p, c) == answer, what)  # type: ignore[misc]
    finally:
        with cluster.api.session() as session:
            for path in _PROBES:
                session.call("DELETE", f"{path}/{_NAME}?gracePeriodSeconds=0")


def _answer(cluster: Cluster, path: str, change: Json) -> int:
    """What the account is answered that may patch anything and release nothing."""
    with replace(cluster.api, impersonated=_COLLECTOR).session() as session:
        whole = f"{path}/{_NAME}?dryRun=All"
        body = json.dumps(change).encode()
        return session.request("PATCH", whole, body, "application/merge-patch+json")[0]
