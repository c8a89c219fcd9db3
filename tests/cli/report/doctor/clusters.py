"""A cluster that is well, as doctor sees it, and changes of it."""

import base64
import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cli.report.doctor.checks import examine
from cli.report.doctor.examined import (
    ConfigMap,
    Deployment,
    EndpointSlice,
    Examined,
    Lease,
    PolicyBinding,
    RayObject,
    SchedulerPod,
    ServerVersion,
    TlsSecret,
    WebhookConfiguration,
)
from cli.report.doctor.findings import State
from cli.report.snapshot import Unread
from kube.objects.core import Namespace
from kube.objects.crds.definition import Definition
from kube.objects.crds.muster import gang_crd, gang_queue_crd
from kube.objects.queues.queue import GangQueue

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAMESPACE = "muster-system"
CONFIGURATION = "kind: KubeSchedulerConfiguration\nextenders:\n- urlPrefix: https://muster-extender"


def secret(data: Json, name: str = "muster-webhook-tls", made_by: str = "muster") -> Json:
    labels = {"app.kubernetes.io/part-of": made_by} if made_by else {}
    return {"metadata": {"name": name, "labels": labels}, "data": data}


def certificate(begins: datetime, ends: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "muster")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


GOOD = certificate(NOW - timedelta(days=1), NOW + timedelta(days=300))
AGED = certificate(NOW - timedelta(days=300), NOW + timedelta(days=9))
ENDED = certificate(NOW - timedelta(days=300), NOW - timedelta(days=1))


def deployment(
    name: str,
    *,
    namespace: str = NAMESPACE,
    available: int = 2,
    image: str = "muster:0.1.0",
    env: Sequence[Json] = (),
) -> Json:
    container = {"name": name.removeprefix("muster-"), "image": image, "env": list(env)}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": available},
    }


def slice_of(service: str, *, ready: bool = True) -> Json:
    return {
        "metadata": {
            "name": f"{service}-abc",
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": service},
        },
        "endpoints": [{"conditions": {"ready": ready}}],
    }


def webhook(
    name: str, policy: str, bundle: str = GOOD, alone: Sequence[str] = ("kube-system", NAMESPACE)
) -> Json:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": alone}
    return {
        "name": name,
        "failurePolicy": policy,
        "clientConfig": {"caBundle": bundle},
        "namespaceSelector": {"matchExpressions": [expression]},
    }


def established(definition: Json) -> Json:
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    return {**copy.deepcopy(definition), "status": status}


def lease(age: float, holder: str = "one") -> Json:
    renewed = (NOW - timedelta(seconds=age)).isoformat()
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "muster-coordinator", "namespace": NAMESPACE}, "spec": spec}


def gang_queue(name: str, quota: Json, team: str = "team") -> Json:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": team}}
    return {"metadata": {"name": name}, "spec": {"quota": quota, "namespaceSelector": selector}}


def namespace(name: str, **labels: str) -> Json:
    named = {"kubernetes.io/metadata.name": name}
    return {"metadata": {"name": name, "labels": {**named, **labels}}}


def ray_object(name: str, within: str, **meta: Json) -> Json:
    return {"metadata": {"name": name, "namespace": within, **meta}}


RAY: Json = {
    "metadata": {"name": "rayclusters.ray.io"},
    "spec": {"versions": [{"name": "v1", "served": True}]},
}
WELL: Mapping[str, tuple[type[Any], list[Json]]] = {
    "version": (ServerVersion, [{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}]),
    "definitions": (
        Definition,
        [RAY, established(gang_crd()), established(gang_queue_crd())],
    ),
    "configurations": (
        WebhookConfiguration,
        [
            {
                "metadata": {"name": "muster-webhook"},
                "webhooks": [
                    webhook("gate.muster.dev", "Fail"),
                    webhook("hold.muster.dev", "Ignore"),
                ],
            }
        ],
    ),
    "bindings": (PolicyBinding, []),
    "endpoints": (EndpointSlice, [slice_of("muster-webhook"), slice_of("muster-extender")]),
    "secrets": (
        TlsSecret,
        [secret({"tls.crt": GOOD})],
    ),
    "leases": (Lease, [lease(3)]),
    "deployments": (
        Deployment,
        [deployment(f"muster-{name}") for name in ("coordinator", "webhook", "certs", "extender")],
    ),
    "queues": (GangQueue, [gang_queue("research", {"nvidia.com/gpu": 80})]),
    "namespaces": (
        Namespace,
        [namespace("team"), namespace("kube-system"), namespace(NAMESPACE)],
    ),
    "ray_clusters": (RayObject, [ray_object("train", "team")]),
    "schedulers": (
        SchedulerPod,
        [{"spec": {"containers": [{"image": "kube-scheduler:v1.37.2"}]}}],
    ),
    "config_maps": (
        ConfigMap,
        [{"metadata": {"name": "scheduler"}, "data": {"config.yaml": CONFIGURATION}}],
    ),
}


def seen(**changed: Any) -> Examined:
    """A cluster that is well, but for what is given: objects as JSON, or what could not be read."""
    found: dict[str, Any] = {
        name: changed[name]
        if isinstance(changed.get(name), Unread)
        else tuple(msgspec.convert(each, kind) for each in changed.get(name, objects))
        for name, (kind, objects) in WELL.items()
    }
    others = {"pod_groups": changed.get("pod_groups", False)}
    return Examined(now=NOW.timestamp(), release="0.1.0", namespace=NAMESPACE, **found, **others)


def states(examined: Examined) -> dict[str, State]:
    findings = examine(examined).findings
    found = {each.check: each.state for each in findings}
    assert len(found) == len(findings), "two findings of one name"
    return found


def without(name: str, at: int) -> list[Json]:
    found = copy.deepcopy(WELL[name][1])
    del found[at]
    return found


def definitions(change: str) -> list[Json]:
    found = copy.deepcopy(WELL["definitions"][1])
    if change == "schema":
        version = found[1]["spec"]["versions"][0]
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["queue"]
    elif change == "newer":
        version = found[1]["spec"]["versions"][0]
        properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["future"] = {"type": "string"}
    elif change == "established":
        found[1]["status"] = {"conditions": [{"type": "Established", "status": "False"}]}
    else:
        found[0 if change == "ray" else 1]["spec"]["versions"][0]["served"] = False
    return found


def webhooks(*found: Json) -> list[Json]:
    return [{"metadata": {"name": "muster-webhook"}, "webhooks": list(found)}]


HOLD = webhook("hold.muster.dev", "Ignore")
