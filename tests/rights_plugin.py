"""Proves Muster's RBAC by the API servers' audit logs of a whole run of the tests.

Each control plane that a test starts logs what Muster's service accounts ask. A request that RBAC
refuses fails the run, but on a cluster whose options say that rights are taken away on purpose. In
a whole run, `make test-rights`, each verb on each resource that a role of manifests/ grants must
have been used, or stand in `RARE` with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kube.objects.names import DEFAULT_NAMESPACE
from testbed.audit import Auditor
from testbed.cluster import Cluster
from testbed.rights import Grant, Uses, grants_of

MANIFESTS = Path(__file__).parent.parent / "manifests"
WHOLE = "controlplane and (variant or not long)"
"""The expression of markers with which `make test-rights` runs what uses all rights."""

_OUTPUT = "rights"
_FAULTS = pytest.StashKey[list[str]]()


class Rare(NamedTuple):
    """What no test of `make test-rights` uses; `by_chance`: in one run or another."""

    role: str
    verb: str
    resource: str
    reason: str
    by_chance: bool = False

    def covers(self, grant: Grant) -> bool:
        """Tell whether a grant is meant."""
        resource = f"{grant.resource}.{grant.group}".removesuffix(".")
        role = grant.role.partition(" ")[2]
        return (self.role, self.verb, self.resource) == (role, grant.verb, resource)


_FINALIZERS = (
    "asked by the admission plugin OwnerReferencesPermissionEnforcement, which makes no request of "
    "it; tests/controlplane/app_wrappers/test_program.py creates nothing without it"
)

_RELEASES = (
    "no request has this verb: the admission policies ask whether an account holds it; "
    "tests/controlplane/test_attacks.py tries those that do not, and no pod is released without it"
)

_FORECASTS = (
    "no request has this verb: policy muster-gangs asks whether an account holds it; without it "
    "tests/controlplane/test_expected_starts.py would see no estimate"
)

_LISTS = (
    "asked where an API server has no streaming lists; tests/controlplane has such for the "
    "coordinator, whose reflector is the same"
)

_CLUSTERS = "it takes several control planes: tests/dispatcher, run by make test-clusters"

_DISPATCHER = (
    *(("dispatch list watch", "gangs.muster.dev"), ("patch", "gangs/status.muster.dev")),
    ("list watch", "gangqueues.muster.dev"),
    *(("list watch", "memberclusters.muster.dev"), ("patch", "memberclusters/status.muster.dev")),
    *(("list watch", f"{each}.ray.io") for each in ("rayclusters", "rayjobs", "rayservices")),
    *(("patch", f"{each}/status.ray.io") for each in ("rayclusters", "rayjobs", "rayservices")),
    ("create patch", "events"),
    *(
        ("get", "namespaces"),
        ("get", "secrets"),
        ("create get patch", "leases.coordination.k8s.io"),
    ),
)

_DEVICES = (
    "resourceslices",
    "deviceclasses",
    "resourceclaims",
    "resourceclaimtemplates",
    "devicetaintrules",
)

RARE = (
    Rare("muster-redis", "list", "rayclusters.ray.io", _LISTS),
    Rare("muster-coordinator", "list", "resourceslices.resource.k8s.io", _LISTS),
    Rare("muster-coordinator", "list", "resourceclaims.resource.k8s.io", _LISTS),
    Rare("muster-coordinator", "list", "resourceclaimtemplates.resource.k8s.io", _LISTS),
    Rare("muster-coordinator", "list", "devicetaintrules.resource.k8s.io", _LISTS),
    Rare("muster-coordinator-member", "list", "gangoffers.muster.dev", _LISTS),
    # Of all but templates kube-scheduler may make lists too, with the one account of both.
    *(
        Rare("muster-extender", "list", f"{each}.resource.k8s.io", _LISTS, True)
        for each in _DEVICES
    ),
    *(
        Rare("muster-dispatcher", verb, resource, _CLUSTERS)
        for verbs, resource in _DISPATCHER
        for verb in verbs.split()
    ),
    *(
        Rare("muster-dispatcher-member", verb, "leases.coordination.k8s.io", _CLUSTERS)
        for verb in ("create", "get", "patch")
    ),
    Rare("muster-dispatcher-member-identity", "get", "namespaces", _CLUSTERS),
    *(
        Rare("muster-dispatcher-member-identity", verb, "gangqueues.muster.dev", _CLUSTERS)
        for verb in ("list", "watch")
    ),
    Rare("muster-coordinator", "release", "gangs.muster.dev", _RELEASES),
    Rare("muster-forecaster", "forecast", "gangs.muster.dev", _FORECASTS),
    Rare("muster-wrapper", "update", "appwrappers/finalizers.workload.codeflare.dev", _FINALIZERS),
    Rare("muster-wrapper", "update", "appwrappers/finalizers.mcad.ibm.com", _FINALIZERS),
)


_SCHEDULER = "muster-scheduler"  # a kube-scheduler like that of the control plane

OF_KUBERNETES = (
    (_SCHEDULER, "system:kube-scheduler"),
    (_SCHEDULER, "system:volume-scheduler"),
    (_SCHEDULER, "extension-apiserver-authentication-reader"),
)
"""Accounts with a role that Kubernetes itself comes with. No other account may have one."""


def manifest_objects(root: Path = MANIFESTS) -> Iterator[dict[str, Any]]:
    """Every object below manifests/, of the base, the overlays and the components."""
    for path in sorted(root.rglob("*.yaml")):
        for each in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader):
            if isinstance(each, dict) and "kind" in each:
                yield each


def granted() -> frozenset[Grant]:
    """All that the manifests grant Muster's accounts."""
    return grants_of(manifest_objects(), DEFAULT_NAMESPACE, OF_KUBERNETES)


def faults(uses: Uses, *, whole: bool, rare: Iterable[Rare] = RARE) -> list[str]:
    """What is wrong with the rights, in lines; of a part of the tests only what was refused."""
    said = [f"refused: {each}" for each in sorted(uses.refused)]
    return [*said, *_unused(uses, list(rare))] if whole else said


def _unused(uses: Uses, rare: list[Rare]) -> list[str]:
    excused = {each for each in uses.grants for row in rare if row.covers(each)}
    unused = sorted(str(each) for each in uses.unused - excused)
    never = [row for row in rare if not row.by_chance]
    needless = sorted(
        str(each) for each in excused & uses.used if any(row.covers(each) for row in never)
    )
    return [
        *(f"no test used: {each}" for each in unused),
        *(f"used, so not rare: {each}" for each in needless),
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Have all clusters of this process audited."""
    Cluster.auditor = Auditor(DEFAULT_NAMESPACE, Uses(granted()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take in what a worker counted; one that crashed has counted nothing, and failed the run."""
    told = getattr(node, "workeroutput", {}).get(_OUTPUT)
    if told and Cluster.auditor:
        used, refused = told
        Cluster.auditor.uses.used.update(Grant(*each) for each in used)
        Cluster.auditor.uses.refused.update(refused)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which all tests passed and the rights were not right."""
    if Cluster.auditor is None:
        return
    uses, config = Cluster.auditor.uses, session.config
    if hasattr(config, "workerinput"):
        used = [tuple(each) for each in uses.used]
        config.workeroutput[_OUTPUT] = (used, list(uses.refused))  # type: ignore[attr-defined]
        return
    passed = session.exitstatus == pytest.ExitCode.OK
    found = faults(uses, whole=passed and is_whole(config.option, config.args_source))
    config.stash[_FAULTS] = found
    if found and passed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def is_whole(option: Any, source: pytest.Config.ArgsSource) -> bool:
    """Tell whether it is the run of `make test-rights`, and nothing was left out."""
    failed_before = getattr(option, "lf", False)  # of a plugin that can be left out
    chosen = (option.keyword, option.deselect, option.ignore, option.ignore_glob, failed_before)
    everywhere = source == pytest.Config.ArgsSource.TESTPATHS
    return everywhere and option.markexpr == WHOLE and not any(chosen) and not option.collectonly


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show it, above the line that counts the tests."""
    found = config.stash.get(_FAULTS, [])
    if found:
        terminalreporter.section("rights of Muster's service accounts", red=True)
        for line in found:
            terminalreporter.write_line(line)
