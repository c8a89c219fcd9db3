"""The check of `muster doctor` for other systems that admit gangs."""

from collections.abc import Iterator, Mapping
from typing import Final

from cli.report.doctor.examined import Deployment, Examined
from cli.report.doctor.findings import Finding, ok, unread, warn
from cli.report.snapshot import Unread

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
