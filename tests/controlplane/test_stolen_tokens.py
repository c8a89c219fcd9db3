"""What stolen tokens of Muster's own accounts are refused, on the real API server."""

from __future__ import annotations

import contextlib
import http
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import yaml

from kube.objects import names
from testbed.api import Api
from testbed.cluster import Cluster
from testbed.muster import APP_WRAPPER, ROOT, Muster
from testbed.policies import POLICY_RESOURCES
from testbed.waiting import WAIT_SECONDS, wait_until
from tests.controlplane.attacks import JSON_PATCH
from tests.controlplane.plot import Plot, plotted
from tests.controlplane.rayclusters import Json, pod
from tests.controlplane.webhook_fields import (
    CA_BUNDLE,
    CHANGES,
    GROUP,
    SCHEMAS,
    WRITTEN_BY_THE_API_SERVER,
    change,
    configuration,
    fields,
)

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NAME = "stolen-token"
_HOME = names.DEFAULT_NAMESPACE
_WRAPPER_POLICY = APP_WRAPPER / "wrapper-policy.yaml"
BY_CERTS = "ValidatingAdmissionPolicy 'muster-certs'"
BY_WRAPPER = "ValidatingAdmissionPolicy 'muster-wrapper'"
_FILLED = "c29tZSBidW5kbGU="
_OTHER = "b3RoZXIgYnVuZGxl"


def account(name: str, namespace: str = _HOME) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def sent(user: Api, method: str, path: str, body: object = None) -> tuple[int, str]:
    """A dry run: the status of the answer, and what it says."""
    content = None if body is None else json.dumps(body).encode()
    kind = JSON_PATCH if method == "PATCH" else "application/json"
    with user.session() as session:
        status, answer = session.request(method, f"{path}?dryRun=All", content, kind)
    return status, str(json.loads(answer).get("message", ""))


@contextlib.contextmanager
def granted(api: Api, user: str, rules: list[Json]) -> Iterator[None]:
    """Give a user rights in the whole cluster for as long as it takes."""
    group = "rbac.authorization.k8s.io"
    subject = {"apiGroup": group, "kind": "User", "name": user}
    role = {"apiGroup": group, "kind": "ClusterRole", "name": _NAME}
    named = {"metadata": {"name": _NAME}}
    api.create(f"{_RBAC}/clusterroles", {**named, "rules": rules})
    api.create(f"{_RBAC}/clusterrolebindings", {**named, "subjects": [subject], "roleRef": role})
    try:
        yield
    finally:
        with api.session() as session:
            for kind in ("clusterrolebindings", "clusterroles"):
                session.call("DELETE", f"{_RBAC}/{kind}/{_NAME}")


# ---- muster-certs


@dataclass(frozen=True)
class Configured:
    """A webhook configuration that the account of muster-certs may patch, by RBAC."""

    cluster: Cluster
    kind: str

    @property
    def collection(self) -> str:
        return f"{GROUP}/{self.kind.lower()}s"

    def patched(self, steps: list[Json], user: str = account("muster-certs")) -> tuple[int, str]:
        by = replace(self.cluster.api, impersonated=user)
        return sent(by, "PATCH", f"{self.collection}/{_NAME}", steps)


@pytest.fixture(params=CHANGES)
def configured(request: pytest.FixtureRequest, muster: Muster) -> Iterator[Configured]:
    api, found = muster.cluster.api, Configured(muster.cluster, request.param)
    home = api.get("/api/v1/namespaces/default")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": home["name"], "uid": home["uid"]}
    rule = {"apiGroups": ["admissionregistration.k8s.io", ""]}
    rule["resources"] = [f"{each.lower()}s" for each in (*CHANGES, "Secret")]
    api.create(found.collection, configuration(found.kind, _NAME, owner))
    with granted(api, account("muster-certs"), [{**rule, "verbs": ["get", "patch"]}]):
        filled = [{"op": "add", "path": CA_BUNDLE, "value": _FILLED}]
        wait_until(lambda: found.patched(filled)[0] == http.HTTPStatus.OK, "the right to patch")
        yield found
    with api.session() as session:
        session.call("DELETE", f"{found.collection}/{_NAME}")


def test_each_field_but_the_bundle_is_kept_from_the_token_of_certs(configured: Configured) -> None:
    schemas = configured.cluster.api.get(SCHEMAS)["components"]["schemas"]
    changes = CHANGES[configured.kind]
    there = fields(schemas, configured.kind)
    assert there == {*changes, CA_BUNDLE, *WRITTEN_BY_THE_API_SERVER}
    for at, value in changes.items():
        status, said = configured.patched(change(at, value))
        assert (status, BY_CERTS in said) == (http.HTTPStatus.FORBIDDEN, True), f"{at}: {said}"
        taken, said = configured.patched(change(at, value), user="")
        assert taken == http.HTTPStatus.OK, f"{at} can be changed by nobody: {said}"


def test_the_token_of_certs_takes_nothing_away_and_moves_nothing(configured: Configured) -> None:
    one, two = "/webhooks/0", "/webhooks/1"
    steps: dict[str, list[Json]] = {
        "metadata.labels": [{"op": "remove", "path": "/metadata/labels"}],
        "webhook one.test.muster.dev": [{"op": "remove", "path": f"{one}/matchConditions"}],
        "webhook two.test.muster.dev": [
            {"op": "remove", "path": f"{two}/clientConfig/url"},
            {"op": "copy", "from": f"{one}/clientConfig", "path": f"{two}/clientConfig"},
        ],
        "which webhooks there are": [{"op": "remove", "path": two}],
        ", and their order": [{"op": "move", "from": one, "path": two}],
    }
    for wanted, patch in steps.items():
        status, said = configured.patched(patch)
        assert (status, wanted in said) == (http.HTTPStatus.FORBIDDEN, True), f"{wanted}: {said}"
        assert "; allowed: to fill webhooks[].clientConfig.caBundle, and nothing else" in said


def test_the_token_of_certs_fills_bundles(configured: Configured) -> None:
    """That of another namespace may no more than that of ours."""
    second = CA_BUNDLE.replace("0", "1")
    filled = [{"op": "add", "path": at, "value": _FILLED} for at in (CA_BUNDLE, second)]
    other = [*filled, {"op": "replace", "path": CA_BUNDLE, "value": _OTHER}]
    emptied = [*filled, {"op": "remove", "path": second}]
    for steps in (filled, other, emptied):
        assert configured.patched(steps) == (http.HTTPStatus.OK, "")
    assert BY_CERTS in configured.patched([*other, *change("/metadata/labels", {})])[1]


@pytest.mark.parametrize("configured", ["MutatingWebhookConfiguration"], indirect=True)
def test_certs_itself_fills_its_bundle_and_repairs_it(configured: Configured) -> None:
    cluster, path = configured.cluster, f"{configured.collection}/{_NAME}"
    options = ("--namespace", _HOME, "--secret", _NAME, "--configuration", _NAME)
    own = cluster.service_account_kubeconfig(_HOME, "muster-certs")
    command = [sys.executable, "-m", "certs", "bootstrap", *options, "--kubeconfig", str(own)]
    with cluster.api.session() as session:
        for number in range(2):
            process = cluster.spawn(f"{_NAME}-{number}", command, {"PYTHONPATH": str(ROOT)})
            assert process.wait(WAIT_SECONDS) == 0, process.log_tail()
            assert cluster.api.get(path)["webhooks"][0]["clientConfig"]["caBundle"]
            emptied = json.dumps([{"op": "remove", "path": CA_BUNDLE}]).encode()
            session.call("PATCH", path, emptied, JSON_PATCH)
        session.call("DELETE", f"/api/v1/namespaces/{_HOME}/secrets/{_NAME}")


# ---- muster-wrapper


@pytest.fixture(scope="module")
def listed(muster: Muster) -> Iterator[Plot]:
    """A namespace that an operator added to the policy's list; the wrapper may create anything."""
    api = muster.cluster.api
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["create", "delete"]}
    user = account("muster-wrapper")
    with plotted(muster.cluster, "listed") as plot, granted(api, user, [rule]):
        paths = []
        for found in yaml.safe_load_all(_WRAPPER_POLICY.read_text()):
            if "matchConstraints" in found["spec"]:
                selector = found["spec"]["matchConstraints"]["namespaceSelector"]
                selector["matchExpressions"][0]["values"].append(plot.name)
            paths.append(f"{POLICY_RESOURCES[found['kind']]}/{found['metadata']['name']}")
            api.apply(paths[-1], json.dumps(found).encode())
        wait_until(lambda: BY_WRAPPER in made(plot, plot.name)[1], "the policy to be in force")
        yield plot
        with api.session() as session:
            for path in paths:
                session.call("DELETE", path)


def wrapper(plot: Plot) -> Api:
    return replace(plot.cluster.api, impersonated=account("muster-wrapper"))


def made(plot: Plot, namespace: str, user: Api | None = None) -> tuple[int, str]:
    """Create a pod with another account, and as restricted as our namespace has them."""
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    containers = [{"name": "main", "image": "none", "securityContext": context}]
    body = pod("stolen", serviceAccountName="default", containers=containers)
    return sent(user or wrapper(plot), "POST", f"/api/v1/namespaces/{namespace}/pods", body)


def lease(plot: Plot, namespace: str, name: str) -> tuple[int, str]:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return sent(wrapper(plot), "POST", path, {"metadata": {"name": name}})


def test_the_token_of_the_wrapper_makes_no_pod_where_accounts_are_worth_the_cluster(
    listed: Plot,
) -> None:
    for namespace in ("kube-system", _HOME, listed.name):
        status, said = made(listed, namespace)
        assert (status, BY_WRAPPER in said) == (http.HTTPStatus.FORBIDDEN, True), said
        assert f"may not create pods in namespace {namespace}, whose service accounts" in said
        assert "; allowed: AppWrappers in namespaces that policy muster-wrapper " in said
        assert made(listed, namespace, listed.cluster.api) == (http.HTTPStatus.CREATED, "")
    assert made(listed, "default") == (http.HTTPStatus.CREATED, "")


@pytest.mark.parametrize("namespace", ["kube-system", _HOME])
def test_nor_anything_else_by_which_one_comes_to_be_or_goes(listed: Plot, namespace: str) -> None:
    home = f"/api/v1/namespaces/{namespace}"
    named = {"metadata": {"name": "stolen"}}
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    asked: list[tuple[str, str, object]] = [
        ("POST", f"{home}/configmaps", named),
        ("POST", f"{home}/serviceaccounts", named),
        ("POST", f"{home}/serviceaccounts/default/token", token),
        ("DELETE", f"{home}/serviceaccounts/default", None),
        ("DELETE", f"{home}/configmaps/kube-root-ca.crt", None),
    ]
    for method, path, body in asked:
        status, said = sent(wrapper(listed), method, path, body)
        assert (status, BY_WRAPPER in said) == (http.HTTPStatus.FORBIDDEN, True), f"{path}: {said}"


def test_the_wrapper_has_its_own_lease_and_no_other(listed: Plot) -> None:
    assert lease(listed, _HOME, "muster-wrapper") == (http.HTTPStatus.CREATED, "")
    assert BY_WRAPPER in lease(listed, _HOME, "muster-coordinator")[1]
    assert BY_WRAPPER in lease(listed, "kube-system", "muster-wrapper")[1]


# ---- all policies


def test_the_api_server_finds_no_fault_in_an_expression(listed: Plot) -> None:
    """It tells of expressions that name what a type does not have."""
    path = POLICY_RESOURCES["ValidatingAdmissionPolicy"]

    def judged() -> list[Json]:
        found = listed.cluster.api.get(path)["items"]
        mine = [each for each in found if each["metadata"]["name"].startswith("muster-")]
        return mine if all("typeChecking" in each.get("status", {}) for each in mine) else []

    found = wait_until(judged, "all policies to be judged")
    assert len(found) >= 6
    for each in found:
        assert not each["status"]["typeChecking"].get("expressionWarnings"), each["metadata"]
