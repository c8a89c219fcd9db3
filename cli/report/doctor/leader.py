"""The check of `muster doctor` for the coordinator that leads."""

from collections.abc import Iterator
from datetime import datetime

from cli.report.doctor.examined import Examined, Lease
from cli.report.doctor.findings import Finding, fail, ok, unread
from cli.report.doctor.installation import is_testbed, named
from cli.report.snapshot import Unread
from kube.objects.names import LEASE_NAME, STOPPED

PATIENCE = 2.0
"""How many durations of a Lease may pass without a renewal: clocks differ."""


def check_leader(seen: Examined) -> Iterator[Finding]:
    """Say whether a coordinator leads: without one nothing is decided."""
    check, found = "leader", named(seen.leases, LEASE_NAME)
    remedy = f"kubectl -n {seen.namespace} logs deployment/muster-coordinator"
    if is_testbed(seen):
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
