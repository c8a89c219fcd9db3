"""Builds the checks of `muster doctor`: each reports one state, and what to do about it."""

from collections.abc import Callable, Iterator
from typing import Final

from cli.report.doctor.certificates import check_certificate
from cli.report.doctor.definitions import check_definitions
from cli.report.doctor.examined import Examined
from cli.report.doctor.extender import check_extender
from cli.report.doctor.findings import Finding, State
from cli.report.doctor.kubernetes import check_kubernetes, check_scheduler
from cli.report.doctor.leader import check_leader
from cli.report.doctor.other_systems import check_others
from cli.report.doctor.programs import check_kuberay, check_programs
from cli.report.doctor.quota_gaps import check_quota_gaps
from cli.report.doctor.shared_settings import check_shared_settings
from cli.report.doctor.webhooks import check_webhooks
from kube.objects.base import Slim


class DoctorReport(Slim, frozen=True):
    """All findings, in the order of the checks."""

    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether anything has failed."""
        return any(each.state is State.FAIL for each in self.findings)


Check = Callable[[Examined], Iterator[Finding]]
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
    check_shared_settings,
    check_quota_gaps,
    check_others,
)


def examine(seen: Examined) -> DoctorReport:
    """Make all checks."""
    return DoctorReport(tuple(finding for check in CHECKS for finding in check(seen)))
