"""The check of `muster doctor` for the webhooks, or the policy that gates pods without one."""

from collections.abc import Iterator, Mapping
from typing import Final

from cli.report.doctor.examined import Examined, Webhook
from cli.report.doctor.findings import Finding, fail, ok, unread, warn
from cli.report.doctor.installation import (
    APPLY,
    GATE_POLICY,
    WEBHOOKS,
    check_endpoints,
    is_gated_by_policy,
    named,
)
from cli.report.snapshot import Unread

POLICIES: Final[Mapping[str, str]] = {"gate.muster.dev": "Fail", "hold.muster.dev": "Ignore"}
OWN_NAMESPACE: Final = "name ../manifests/own-namespace under transformers of the overlay"


def check_webhooks(seen: Examined) -> Iterator[Finding]:
    """Say whether the API server asks the webhook, and can reach it, or gates pods by itself."""
    if is_gated_by_policy(seen):
        yield ok("gates", f"MutatingAdmissionPolicy {GATE_POLICY} is bound, without a webhook")
        return
    found = named(seen.configurations, WEBHOOKS)
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
        yield check_endpoints("webhook endpoints", WEBHOOKS, seen)


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
