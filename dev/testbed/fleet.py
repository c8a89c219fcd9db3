"""Starts a manager and its members, each with a control plane of its own, and joins them."""

from __future__ import annotations

import base64
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from testbed import components
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.manifests import MANIFESTS
from testbed.muster import (
    NAMESPACE,
    start_muster,
    wait_app_wrappers_trusted,
    with_app_wrappers,
    with_muster,
)
from testbed.options import Options

ACCOUNT = "muster-dispatcher-member"
"""The account on a member, and its ClusterRole."""
WRAPPED = f"{ACCOUNT}-wrapped"
"""The ClusterRole that lists what AppWrappers of the manager may wrap there."""

MEMBERS = "/apis/muster.dev/v1alpha1/memberclusters"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def start_manager(folder: Path, stack: ExitStack, app_wrappers: str = "None") -> Cluster:
    """Start a control plane that runs no pods, with the definitions that a manager has.

    `app_wrappers` is the setting of the webhook, here and of members.
    """
    options = Options(kwok=False, scheduler=False, crds=_crds("dispatcher", "memberclusters"))
    cluster = stack.enter_context(Cluster.start(folder, _with(app_wrappers, options)))
    cluster.process(components.KUBERAY).stop()  # its definitions alone are wanted
    _start_programs(cluster, "dispatcher", "DISPATCH", app_wrappers)
    return cluster


def start_member(folder: Path, stack: ExitStack, app_wrappers: str = "None") -> Cluster:
    """Start a control plane with KubeRay and a Muster that answers offers."""
    options = Options(crds=_crds("member", "gangoffers"))
    cluster = stack.enter_context(Cluster.start(folder, _with(app_wrappers, options)))
    _start_programs(cluster, "member", "GANG_OFFERS", app_wrappers)
    return cluster


def _crds(component: str, name: str) -> tuple[Path, ...]:
    return (MANIFESTS / component / "crds" / f"{name}.yaml",)


def _with(app_wrappers: str, options: Options) -> Options:
    return with_muster(options) if app_wrappers == "None" else with_app_wrappers(options)


def _start_programs(cluster: Cluster, component: str, setting: str, app_wrappers: str) -> None:
    settings = {setting: "true"}
    if app_wrappers != "None":
        settings |= {"APP_WRAPPERS": "true"}
    found = start_muster(
        cluster, settings=settings, app_wrappers=app_wrappers, components=[component]
    )
    if app_wrappers != "None":
        found.start_wrapper()
        wait_app_wrappers_trusted(cluster)


def admit_dispatcher(member: Cluster, namespace: str) -> None:
    """Let the account of the dispatcher act in a namespace of a member, and wrap objects there."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    for name in (ACCOUNT, WRAPPED):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        body = {"metadata": {"name": name}, "roleRef": role, "subjects": [account]}
        member.api.create(f"{_RBAC}/namespaces/{namespace}/rolebindings", body)


def join(manager: Cluster, name: str, kubeconfig: bytes, **spec: Any) -> None:
    """Write the Secret and the MemberCluster of a member."""
    data = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
    secret = {"metadata": {"name": f"member-{name}"}, "data": data}
    manager.api.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
    body = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "MemberCluster",
        "metadata": {"name": name, "labels": {"fleet": "gpu"}},
        "spec": {"kubeconfigSecret": {"name": f"member-{name}"}, **spec},
    }
    manager.api.create(MEMBERS, body)


def connected(manager: Cluster, name: str) -> Json:
    """The condition Connected of a MemberCluster; empty while there is none."""
    found = manager.api.get(f"{MEMBERS}/{name}").get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == "Connected"), {})


def kubeconfig_of(member: Cluster) -> bytes:
    """The kubeconfig of the account, with its authority in it: one that names files is refused."""
    path = member.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    found = yaml.safe_load(path.read_text())
    (entry,) = found["clusters"]
    authority = Path(entry["cluster"].pop("certificate-authority")).read_bytes()
    entry["cluster"]["certificate-authority-data"] = base64.b64encode(authority).decode()
    return yaml.safe_dump(found).encode()
