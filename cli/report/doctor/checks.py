"""The checks of `muster doctor`: each says of one thing how it is, and what to do about it."""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from cryptography import x509

from cli.report.doctor.examined import (
    Deployment,
    Examined,
    Lease,
    Looked,
    TlsSecret,
    Webhook,
    WebhookConfiguration,
)
from cli.report.doctor.findings import Finding, State, fail, ok, unknown, unread, warn
from cli.report.doctor.kubernetes import check_kubernetes, check_scheduler
from cli.report.doctor.quota_gaps import check_quota_gaps
from cli.report.snapshot import Unread
from kube.objects.base import Slim
from kube.objects.crds.definition import Definition, lacks, served_schema, some
from kube.objects.crds.muster import written
from kube.objects.names import CERT_MANAGERS, LEASE_NAME, PART_OF, STOPPED

T = TypeVar("T")
Json = dict[str, Any]

COORDINATOR: Final = "muster-coordinator"
CERTS: Final = "muster-certs"
EXTENDER: Final = "muster-extender"
WEBHOOKS: Final = "muster-webhook"
TLS_SECRET: Final = "muster-webhook-tls"  # noqa: S105 - the name of a Secret
GATE_POLICY: Final = "muster-gate"
"""The MutatingAdmissionPolicy of an installation without a webhook."""
CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"
POLICIES: Final[Mapping[str, str]] = {"gate.muster.dev": "Fail", "hold.muster.dev": "Ignore"}
EXTENDER_SECRET: Final = "muster-extender-tls"  # noqa: S105 - likewise
LEAST_DAYS = 21
"""Days that a certificate should last: they are renewed 30 days before their end."""

PATIENCE = 2.0
"""How many durations of a Lease may pass without a renewal: clocks differ."""

APPLY: Final = "kubectl apply -k overlay, with the manifests of this release"

OWN_NAMESPACE: Final = "name ../manifests/own-namespace under transformers of the overlay"

SYSTEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "Kueue": ("kueue-controller-manager",),
    "Volcano": ("volcano-scheduler", "volcano-controllers"),
    "YuniKorn": ("yunikorn-scheduler", "yunikorn-admission-controller"),
    "KAI": ("kai-scheduler-default", "kai-scheduler", "kai-operator", "binder"),
    "MCAD": ("mcad-controller",),
    "CodeFlare's AppWrapper": ("appwrapper-controller-manager", "codeflare-operator-manager"),
}
"""Deployments of other systems that admit gangs, by their usual names."""

KAI_NAMESPACE: Final = "kai-scheduler"


class DoctorReport(Slim, frozen=True):
    """All findings, in the order of the checks."""

    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether anything has failed."""
        return any(each.state is State.FAIL for each in self.findings)


Check = Callable[[Examined], Iterator[Finding]]


def examine(seen: Examined) -> DoctorReport:
    """Make all checks."""
    return DoctorReport(tuple(finding for check in CHECKS for finding in check(seen)))


def _named(found: Looked[T], name: str) -> T | Unread | None:
    """Return the object of a name; None where there is none."""
    if isinstance(found, Unread):
        return found
    return next((each for each in found if each.metadata.name == name), None)  # type: ignore[attr-defined]


# ---- programs


def check_kuberay(seen: Examined) -> Iterator[Finding]:
    """Say whether KubeRay is there, in a version that Muster reads."""
    check = "KubeRay"
    found = _named(seen.definitions, "rayclusters.ray.io")
    if isinstance(found, Unread):
        yield unread(check, found)
    elif found is None:
        yield fail(check, "there is no definition rayclusters.ray.io", "install KubeRay")
    elif not any(each.served and each.name == "v1" for each in found.spec.versions):
        yield fail(check, "rayclusters.ray.io does not serve v1", "install KubeRay 1.4 or newer")
    else:
        yield ok(check, "rayclusters.ray.io serves v1")


def check_programs(seen: Examined) -> Iterator[Finding]:
    """Say whether Muster's programs run, all of one release."""
    if _is_testbed(seen):
        yield ok("programs", "processes beside the API server, as on a testbed: no Deployments")
        return
    if isinstance(seen.deployments, Unread):
        yield unread("programs", seen.deployments)
        return
    mine = {
        each.metadata.name: each
        for each in seen.deployments
        if each.metadata.namespace == seen.namespace
    }
    for name in _needed(seen):
        yield _program(name, mine.get(name), seen.namespace)
    yield from _releases(mine.values(), seen.release)


def _needed(seen: Examined) -> Iterator[str]:
    """Name the programs of this installation, beside which there may be others."""
    yield COORDINATOR
    if _is_gated_by_policy(seen):
        return
    yield WEBHOOKS
    if not _of_others(seen):
        yield CERTS


def _is_testbed(seen: Examined) -> bool:
    """Say whether Muster's programs are processes beside the API server, and in no Deployment."""
    found = _named(seen.configurations, WEBHOOKS)
    return isinstance(found, WebhookConfiguration) and found.is_on_loopback


def _of_others(seen: Examined) -> bool:
    """Tell whether others, such as cert-manager, make the webhook's certificate."""
    found, asks = _named(seen.secrets, TLS_SECRET), _named(seen.configurations, WEBHOOKS)
    if isinstance(found, TlsSecret) and (PART_OF not in found.metadata.labels or _writer(found)):
        return True
    return isinstance(asks, WebhookConfiguration) and CERT_MANAGER in asks.metadata.annotations


def _writer(secret: TlsSecret) -> str:
    """Name the Certificate of cert-manager that a Secret is written for, whatever its labels."""
    return secret.metadata.annotations.get(CERT_MANAGERS, "")


def _is_gated_by_policy(seen: Examined) -> bool:
    """Say whether a policy gates pods, and no webhook is there to do so."""
    if isinstance(seen.bindings, Unread):
        return False
    bound = any(each.spec.policy_name == GATE_POLICY for each in seen.bindings)
    return bound and _named(seen.configurations, WEBHOOKS) is None


def _program(name: str, found: Deployment | None, namespace: str) -> Finding:
    if found is None:
        return fail(name, f"there is no Deployment {namespace}/{name}", APPLY)
    wanted = 1 if found.spec.replicas is None else found.spec.replicas
    available, said = found.status.available_replicas, f"of {wanted} pods are available"
    remedy = f"kubectl -n {namespace} describe pods -l app.kubernetes.io/name={name}"
    if not available:
        return fail(name, f"0 {said}", remedy)
    if available < wanted:
        return warn(name, f"{available} {said}", remedy)
    return ok(name, f"{available} {said}")


def _releases(found: Iterable[Deployment], release: str) -> Iterator[Finding]:
    """Say whether the programs are of one image, and this command of the same release."""
    mine = [each for each in found if each.metadata.name.startswith("muster-")]
    images = sorted({image for each in mine for image in each.images})
    tags = {image.rpartition(":")[2].removeprefix("v") for image in images}
    if len(images) > 1:
        said = f"the programs are of {len(images)} images: {', '.join(images)}"
        yield warn("release", said, "give all of them one image and tag in the overlay")
    elif any(tag[:1].isdigit() and tag != release for tag in tags):
        said = f"the programs are of {images[0]}, and this command is of {release}"
        yield warn("release", said, "install the command of the release that runs")
    elif images:
        yield ok("release", f"{images[0]}; this command is of {release}")


# ---- definitions


def check_definitions(seen: Examined) -> Iterator[Finding]:
    """Say whether the definitions are those of this release."""
    for wanted, parts in written():
        name = wanted["metadata"]["name"]
        found = _named(seen.definitions, name)
        if isinstance(found, Unread):
            yield unread(name, found)
        elif found is None:
            yield fail(name, "there is no such definition (CRD)", "kubectl apply -k manifests/crds")
        else:
            yield _definition(name, found, wanted, parts)


def _definition(name: str, found: Definition, wanted: Json, parts: tuple[str, ...]) -> Finding:
    remedy = "kubectl apply -k manifests/crds, of the release that runs"
    established = {each.type: each.status for each in found.status.conditions}.get("Established")
    if established != "True":
        return fail(name, "the API server does not serve it: not Established", remedy)
    version = wanted["spec"]["versions"][0]
    schema = served_schema(found, version["name"])
    if schema is None:
        return fail(name, f"version {version['name']} is not served", remedy)
    missing = lacks(found, wanted, *parts)
    if missing:
        said = f"it lacks what a coordinator writes: {some(missing)}; none of this release leads"
        return fail(name, said, remedy)
    place = _difference(schema, version["schema"]["openAPIV3Schema"])
    if place is not None:
        said = f"its schema is of another release than this command: they differ at {place}"
        return warn(name, said, remedy)
    return ok(name, f"{version['name']}, with the schema of this release")


def _difference(found: Any, wanted: Any, place: str = "") -> str | None:
    """Return the first place in which two schemas differ."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}):
            differs = _difference(found.get(key), wanted.get(key), f"{place}.{key}")
            if differs is not None:
                return differs
        return None
    return None if found == wanted else place or "."


# ---- webhooks and certificates


def check_webhooks(seen: Examined) -> Iterator[Finding]:
    """Say whether the API server asks the webhook, and can reach it, or gates pods by itself."""
    if _is_gated_by_policy(seen):
        yield ok("gates", f"MutatingAdmissionPolicy {GATE_POLICY} is bound, without a webhook")
        return
    found = _named(seen.configurations, WEBHOOKS)
    if isinstance(found, Unread):
        yield unread("webhooks", found)
        return
    if found is None:
        said = f"there is no MutatingWebhookConfiguration {WEBHOOKS}: no pod gets a gate"
        yield fail("webhooks", said, APPLY)
        return
    there = {each.name for each in found.webhooks}
    for name in sorted(POLICIES.keys() - there):
        yield fail(name, f"{WEBHOOKS} has no such webhook", APPLY)
    for each in found.webhooks:
        yield _webhook(each, seen.namespace)
    if not found.is_on_loopback:
        yield _endpoints("webhook endpoints", WEBHOOKS, seen)


def _webhook(found: Webhook, home: str) -> Finding:
    if not found.client_config.ca_bundle:
        remedy = f"see the log of muster-certs, which fills it; until then {_effect(found)}"
        return fail(found.name, "caBundle is empty: the API server trusts no certificate", remedy)
    wanted = POLICIES.get(found.name)
    if wanted is not None and found.failure_policy != wanted:
        said = f"failurePolicy is {found.failure_policy}; {wanted} is what Muster's manifests have"
        return warn(found.name, said, APPLY)
    if not found.leaves_alone(home):
        said = f"it is asked about namespace {home}, and what Muster needs would wait for Muster"
        return warn(found.name, said, f"{OWN_NAMESPACE}; {APPLY}")
    return ok(found.name, f"failurePolicy {found.failure_policy}, caBundle is set")


def _effect(found: Webhook) -> str:
    return "pods of Ray are refused" if found.failure_policy == "Fail" else "it is not asked"


def _endpoints(check: str, service: str, seen: Examined) -> Finding:
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


def check_certificate(seen: Examined) -> Iterator[Finding]:
    """Say how long the certificates last, or else the authority that the webhook's is of."""
    check = "certificate"
    if _is_gated_by_policy(seen):
        return
    found = _named(seen.secrets, TLS_SECRET)
    if _is_testbed(seen):
        yield from _authority(seen)
    elif found is None:
        yield fail(check, f"there is no Secret {TLS_SECRET}", f"see the log of {CERTS}")
    elif not isinstance(found, Unread):
        # A chain lasts as long as the link that ends first.
        yield _of_secret(check, found, seen)
    else:
        yield from _authority(seen)
    extender = _named(seen.secrets, EXTENDER_SECRET)
    if isinstance(extender, TlsSecret):
        yield _of_secret("extender certificate", extender, seen)
        yield from _restart(extender)


def _authority(seen: Examined) -> Iterator[Finding]:
    """Judge what the API server trusts; the certificate itself may not be read."""
    found = _named(seen.configurations, WEBHOOKS)
    if isinstance(found, Unread):
        yield unread("certificate", found)
    elif found is not None:
        for each in found.webhooks[:1]:
            # Of a bundle the last one counts: the others are of before.
            yield _lasting("certificate authority", each.client_config.ca_bundle, max, seen)


def _of_secret(check: str, secret: TlsSecret, seen: Examined) -> Finding:
    """Judge the certificate of a Secret, and say who writes it where that is not Muster."""
    found = _lasting(check, secret.data.get("tls.crt", ""), min, seen)
    writer = _writer(secret)
    if not writer:
        return found
    said = (
        f"{found.message}; cert-manager writes it (Certificate {writer}): {CERTS} leaves it alone"
    )
    remedy = found.remedy and f"kubectl -n {seen.namespace} describe certificate {writer}"
    return Finding(check, found.state, said, remedy)


def _lasting(
    check: str,
    encoded: str,
    which: Callable[[Iterable[datetime]], datetime],
    seen: Examined,
) -> Finding:
    remedy = f"see the log of {CERTS} (or of what makes it), which renews it 30 days before its end"
    found = _certificates(encoded)
    if not found:
        return fail(check, "it is no certificate in PEM", remedy)
    ends = which(each.not_valid_after_utc for each in found)
    begins = min(each.not_valid_before_utc for each in found)
    now = datetime.fromtimestamp(seen.now, UTC)
    if now < begins:
        return fail(check, f"not valid before {begins:%Y-%m-%d %H:%M} UTC", "set the clocks")
    days = (ends - now).total_seconds() / 86_400
    if days <= 0:
        return fail(check, f"it ended on {ends:%Y-%m-%d}: {_refused(check)}", remedy)
    said = f"it ends on {ends:%Y-%m-%d}, in {days:.0f} days"
    return ok(check, said) if days >= LEAST_DAYS else warn(check, said, remedy)


def _refused(check: str) -> str:
    extender = check.startswith("extender")
    return (
        "kube-scheduler calls the extender in vain" if extender else "all pods of Ray are refused"
    )


def _certificates(encoded: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(base64.b64decode(encoded, validate=True))
    except (ValueError, binascii.Error):
        return []


def _restart(secret: TlsSecret) -> Iterator[Finding]:
    """Say whether there is a new authority, which kube-scheduler reads only when it starts."""
    served = _certificates(secret.data.get("tls.crt", ""))[:1]
    newest = _certificates(secret.data.get("ca.crt", ""))[-1:]
    if "ca.key" not in secret.data or not served or not newest:
        return
    try:
        served[0].verify_directly_issued_by(newest[0])
    except Exception:  # noqa: BLE001 - the library raises a different type for each way to differ
        # The last day is left for the extender to go over to the new authority.
        day = served[0].not_valid_after_utc - timedelta(days=1)
        said = f"the extender has a new authority, and serves with it from {day:%Y-%m-%d} on"
        remedy = "until then copy the scheduler's files and restart it: docs/certificates.md"
        yield warn("extender authority", said, remedy)


# ---- leader, extender


def check_leader(seen: Examined) -> Iterator[Finding]:
    """Say whether a coordinator leads: without one nothing is decided."""
    check, found = "leader", _named(seen.leases, LEASE_NAME)
    remedy = f"kubectl -n {seen.namespace} logs deployment/muster-coordinator"
    if _is_testbed(seen):
        remedy = "python -m testbed status shows its process, and where its log is"
    if isinstance(found, Unread):
        yield unread(check, found)
    elif found is None or not found.spec.holder_identity:
        yield fail(check, f"no coordinator holds Lease {LEASE_NAME}", remedy)
    elif found.spec.holder_identity == STOPPED:
        said = "`muster release` or `muster uninstall` stopped all coordinators"
        again = f"to start Muster again: kubectl -n {seen.namespace} delete lease {LEASE_NAME}"
        yield fail(check, said, again)
    else:
        yield _fresh(check, found, remedy, seen.now)


def _fresh(check: str, found: Lease, remedy: str, now: float) -> Finding:
    holder, duration = found.spec.holder_identity, found.spec.lease_duration_seconds or 15
    try:
        renewed = datetime.fromisoformat(found.spec.renew_time or "").timestamp()
    except ValueError:
        return fail(check, f"{holder} never renewed Lease {LEASE_NAME}", remedy)
    age = max(0.0, now - renewed)
    if age > PATIENCE * duration:
        said = f"{holder} renewed Lease {LEASE_NAME} {age:.0f} s ago; it lasts {duration} s"
        return fail(check, said, remedy)
    return ok(check, f"{holder} leads")


def check_extender(seen: Examined) -> Iterator[Finding]:
    """Say whether the extender runs, and whether kube-scheduler is told of it."""
    if isinstance(seen.deployments, Unread):
        yield unread("extender", seen.deployments)
        return
    runs = any(
        (each.metadata.namespace, each.metadata.name) == (seen.namespace, EXTENDER)
        for each in seen.deployments
    )
    if runs:
        yield _endpoints("extender", EXTENDER, seen)
        yield _configured(seen)
    else:
        yield ok("extender", "not installed: nominations keep reserved room where they can")


def _configured(seen: Examined) -> Finding:
    check = "extender configured"
    remedy = "docs/extender.md says which lines kube-scheduler's configuration needs"
    if isinstance(seen.config_maps, Unread):
        return unread(check, seen.config_maps)
    texts = [text for each in seen.config_maps for text in each.data.values()]
    configurations = [each for each in texts if "KubeSchedulerConfiguration" in each]
    if any(EXTENDER in each for each in configurations):
        return ok(check, "a ConfigMap of kube-system tells kube-scheduler of it")
    if configurations:
        said = "kube-scheduler's configuration in kube-system does not name it"
        return warn(check, said, remedy)
    said = "kube-scheduler's configuration is in no ConfigMap of kube-system"
    return unknown(check, said, remedy)


# ---- others


def check_others(seen: Examined) -> Iterator[Finding]:
    """Name other systems that admit gangs: they may act on the same pods."""
    check = "other gang systems"
    if isinstance(seen.deployments, Unread):
        yield unread(check, seen.deployments)
        return
    found = sorted({name for each in seen.deployments for name in _system(each)})
    remedy = "docs/coexistence.md: opt no Ray cluster in to both"
    for name in found:
        yield warn(check, f"{name} runs here", remedy)
    if seen.pod_groups:
        said = "the API server serves PodGroups of scheduling.k8s.io (GenericWorkload)"
        yield warn(check, said, "give no pod of a gang spec.schedulingGroup")
    if not found and not seen.pod_groups:
        yield ok(check, "none runs here")


def _system(found: Deployment) -> Iterator[str]:
    meta = found.metadata
    for system, usual in SYSTEMS.items():
        is_mine = meta.name in usual
        if system == "KAI" and meta.name == "binder":
            is_mine = meta.namespace == KAI_NAMESPACE
        if is_mine:
            yield system


CHECKS: Final[tuple[Check, ...]] = (
    check_kubernetes,
    check_kuberay,
    check_programs,
    check_definitions,
    check_webhooks,
    check_certificate,
    check_leader,
    check_scheduler,
    check_extender,
    check_quota_gaps,
    check_others,
)
