"""Checks for `muster doctor` which Kubernetes there is, and how its kube-scheduler is set."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cli.report.doctor.examined import Examined
from cli.report.doctor.findings import Finding, ok, unknown, unread, warn
from cli.report.snapshot import Unread

TESTED: Final[Mapping[int, str]] = {
    37: "1.37.2",
    36: "1.36.3",
    35: "1.35.4",
    34: "1.34.4",
    33: "1.33.13",
}
"""Minor version: the release of it that the tests ran on (docs/compatibility.md)."""

READ: Final = (32, 31)
"""Minor versions of which only the source of kube-scheduler was read, or what it sent recorded."""

FILTER_GATES: Final = (
    "InPlacePodVerticalScalingSchedulerPreemption",
    "InterPodAffinityHostnameFastPath",
)
"""Alpha gates of kube-scheduler with which a filter differs from what the verdict judges."""

_FLAG: Final = "--feature-gates"
_ALL_ALPHA: Final = "AllAlpha"
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")


def check_kubernetes(seen: Examined) -> Iterator[Finding]:
    """Say whether the tests of this release ran on this Kubernetes."""
    check = "Kubernetes"
    if isinstance(seen.version, Unread):
        yield unread(check, seen.version)
        return
    found = seen.version[0]
    minor = int("".join(filter(str.isdigit, found.minor)) or 0)
    if minor in TESTED:
        yield ok(check, f"{found.git_version}; tested on {TESTED[minor]}")
    else:
        how = "was read, and is not tested" if minor in READ else "is not tested"
        tested = f"1.{min(TESTED)} to 1.{max(TESTED)}"
        yield warn(check, f"{found.git_version} {how}", f"use Kubernetes {tested}")


def check_scheduler(seen: Examined) -> Iterator[Finding]:
    """Say which kube-scheduler binds, where its pods can be seen, and what is set there."""
    check = "kube-scheduler"
    if isinstance(seen.schedulers, Unread):
        yield unread(check, seen.schedulers)
        return
    containers = [each for pod in seen.schedulers for each in pod.spec.containers]
    images = sorted({each.image for each in containers if each.image})
    if not images:
        said = "its pods are not in kube-system, where a hosted control plane has none"
        yield unknown(check, said, "compare its version with that of the API server")
    else:
        yield ok(check, ", ".join(images))
    yield from _gates({gate for each in containers for gate in _on(each.words)})


def _gates(found: set[str]) -> Iterator[Finding]:
    if found:
        are = "is" if len(found) == 1 else "are"
        said = f"{', '.join(sorted(found))} {are} on: kube-scheduler may refuse pods once released"
        yield warn("kube-scheduler gates", said, f"switch it off in {_FLAG} of kube-scheduler")


def _on(words: Iterable[str]) -> Iterator[str]:
    """Name the gates that change a filter and are on; of the same gate the last word counts."""
    said = dict(_settings(words))
    for gate in FILTER_GATES:
        if said.get(gate, said.get(_ALL_ALPHA)) in _TRUE:
            yield gate


def _settings(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Read `--feature-gates=A=true,B=false`, or the same as two words."""
    before = ""
    for word in words:
        flag, _, value = word.partition("=")
        listed = value if flag == _FLAG else word if before == _FLAG else ""
        for each in listed.split(","):
            gate, _, setting = each.partition("=")
            yield gate.strip(), setting.strip()
        before = word
