"""The check of `muster doctor` for certificates: how long they last, and who writes them."""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from cli.report.doctor.examined import Examined, TlsSecret
from cli.report.doctor.findings import Finding, fail, ok, unread, warn
from cli.report.doctor.installation import (
    CERTS,
    TLS_SECRET,
    WEBHOOKS,
    certificate_of,
    is_gated_by_policy,
    is_testbed,
    named,
)
from cli.report.snapshot import Unread

EXTENDER_SECRET: Final = "muster-extender-tls"  # noqa: S105 - the name of a Secret

LEAST_DAYS = 21
"""Days that a certificate should last: they are renewed 30 days before their end."""


def check_certificate(seen: Examined) -> Iterator[Finding]:
    """Say how long the certificates last, or else the authority that the webhook's is of."""
    check = "certificate"
    if is_gated_by_policy(seen):
        return
    found = named(seen.secrets, TLS_SECRET)
    if is_testbed(seen):
        yield from _authority(seen)
    elif found is None:
        yield fail(check, f"there is no Secret {TLS_SECRET}", f"see the log of {CERTS}")
    elif not isinstance(found, Unread):
        # A chain lasts as long as the link that ends first.
        yield _of_secret(check, found, seen)
    else:
        yield from _authority(seen)
    extender = named(seen.secrets, EXTENDER_SECRET)
    if isinstance(extender, TlsSecret):
        yield _of_secret("extender certificate", extender, seen)
        yield from _restart(extender)


def _authority(seen: Examined) -> Iterator[Finding]:
    """Judge what the API server trusts; the certificate itself may not be read."""
    found = named(seen.configurations, WEBHOOKS)
    if isinstance(found, Unread):
        yield unread("certificate", found)
    elif found is not None:
        for each in found.webhooks[:1]:
            # Of a bundle the last one counts: the others are of before.
            yield _lasting("certificate authority", each.client_config.ca_bundle, max, seen)


def _of_secret(check: str, secret: TlsSecret, seen: Examined) -> Finding:
    """Judge the certificate of a Secret, and say who writes it where that is not Muster."""
    found = _lasting(check, secret.data.get("tls.crt", ""), min, seen)
    writer = certificate_of(secret)
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
