"""Says how Muster is installed, by the objects that `muster doctor` looks at."""

from typing import Final, TypeVar

from cli.report.doctor.examined import Examined, Looked, TlsSecret, WebhookConfiguration
from cli.report.doctor.findings import Finding, fail, ok, unread
from cli.report.snapshot import Unread
from kube.objects.names import CERT_MANAGERS, PART_OF

T = TypeVar("T")
CERTS: Final = "muster-certs"
WEBHOOKS: Final = "muster-webhook"
TLS_SECRET: Final = "muster-webhook-tls"  # noqa: S105 - the name of a Secret

GATE_POLICY: Final = "muster-gate"
"""The MutatingAdmissionPolicy of an installation without a webhook."""
CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"
APPLY: Final = "kubectl apply -k overlay, with the manifests of this release"


def named(found: Looked[T], name: str) -> T | Unread | None:
    """Return the object of a name; None where there is none."""
    if isinstance(found, Unread):
        return found
    return next((each for each in found if each.metadata.name == name), None)  # type: ignore[attr-defined]


def is_testbed(seen: Examined) -> bool:
    """Say whether Muster's programs are processes beside the API server, and in no Deployment."""
    found = named(seen.configurations, WEBHOOKS)
    return isinstance(found, WebhookConfiguration) and found.is_on_loopback


def is_gated_by_policy(seen: Examined) -> bool:
    """Say whether a policy gates pods, and no webhook is there to do so."""
    if isinstance(seen.bindings, Unread):
        return False
    bound = any(each.spec.policy_name == GATE_POLICY for each in seen.bindings)
    return bound and named(seen.configurations, WEBHOOKS) is None


def is_certified_by_others(seen: Examined) -> bool:
    """Tell whether others, such as cert-manager, make the webhook's certificate."""
    found, asks = named(seen.secrets, TLS_SECRET), named(seen.configurations, WEBHOOKS)
    if isinstance(found, TlsSecret) and (
        PART_OF not in found.metadata.labels or certificate_of(found)
    ):
        return True
    return isinstance(asks, WebhookConfiguration) and CERT_MANAGER in asks.metadata.annotations


def certificate_of(secret: TlsSecret) -> str:
    """Name the Certificate of cert-manager that a Secret is written for, whatever its labels."""
    return secret.metadata.annotations.get(CERT_MANAGERS, "")


def check_endpoints(check: str, service: str, seen: Examined) -> Finding:
    """Say whether any pod of a service answers."""
    if isinstance(seen.endpoints, Unread):
        return unread(check, seen.endpoints)
    mine = [
        each
        for each in seen.endpoints
        if each.metadata.labels.get("kubernetes.io/service-name") == service
    ]
    ready = sum(each.ready for each in mine)
    if ready:
        pods = "1 pod is" if ready == 1 else f"{ready} pods are"
        return ok(check, f"{pods} ready behind Service {service}")
    remedy = f"kubectl -n {seen.namespace} describe pods -l app.kubernetes.io/name={service}"
    return fail(check, f"no pod is ready behind Service {service}", remedy)
