"""The check of `muster doctor` for the extender, and for kube-scheduler's configuration of it."""

from collections.abc import Iterator
from typing import Final

from cli.report.doctor.examined import Examined
from cli.report.doctor.findings import Finding, ok, unknown, unread, warn
from cli.report.doctor.installation import check_endpoints
from cli.report.snapshot import Unread

EXTENDER: Final = "muster-extender"


def check_extender(seen: Examined) -> Iterator[Finding]:
    """Say whether the extender runs, and whether kube-scheduler's configuration names it."""
    if isinstance(seen.deployments, Unread):
        yield unread("extender", seen.deployments)
        return
    runs = any(
        (each.metadata.namespace, each.metadata.name) == (seen.namespace, EXTENDER)
        for each in seen.deployments
    )
    if runs:
        yield check_endpoints("extender", EXTENDER, seen)
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
