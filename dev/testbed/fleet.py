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
from testbed.muster import CRDS, NAMESPACE, start_muster, with_muster
from testbed.options import Options

ACCOUNT = "muster-dispatcher-member"
"""The account on a member, and its ClusterRole."""

MEMBERS = "/apis/muster.dev/v1alpha1/memberclusters"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def start_manager(folder: Path, stack: ExitStack) -> Cluster:
    """Start a control plane that runs no pods, with the definitions that a manager has."""
    crds = (*CRDS, MANIFESTS / "dispatcher" / "crds" / "memberclusters.yaml")
    bare = Options(kwok=False, scheduler=False, crds=crds)
    cluster = stack.enter_context(Cluster.start(folder, bare))
    cluster.process(components.KUBERAY).stop()  # its definitions alone are wanted
    start_muster(cluster, settings={"DISPATCH": "true"}, components=["dispatcher"])
    return cluster


def start_member(folder: Path, stack: ExitStack) -> Cluster:
    """Start a control plane with KubeRay and a Muster that answers offers."""
    options = Options(crds=(MANIFESTS / "member" / "crds" / "gangoffers.yaml",))
    cluster = stack.enter_context(Cluster.start(folder, with_muster(options)))
    start_muster(cluster, settings={"GANG_OFFERS": "true"}, components=["member"])
    return cluster


def admit_dispatcher(member: Cluster, namespace: str) -> None:
    """Let the account of the dispatcher act in a namespace of a member."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT}
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    body = {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [account]}
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
