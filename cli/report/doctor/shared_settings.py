"""The check of `muster doctor` for settings that several programs must have alike."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cli.report.doctor.examined import Container, Examined
from cli.report.doctor.findings import Finding, ok, unknown, unread, warn
from cli.report.snapshot import Unread

CHECK: Final = "shared settings"
_TRUE: Final = frozenset(("1", "on", "t", "true", "y", "yes"))


def _switch(text: str) -> str:
    return json.dumps(text.lower() in _TRUE)


def _names(text: str) -> str:
    """Put names in order; what is no list of names is left as it is, and its program says so."""
    try:
        return json.dumps(sorted(set(json.loads(text))))
    except (ValueError, TypeError):
        return text


@dataclass(frozen=True, slots=True)
class Shared:
    """A setting of several programs: its default, how its text is read, where it is explained."""

    name: str
    programs: tuple[str, ...]
    default: str
    read: Callable[[str], str]
    page: str


SHARED: Final = (
    Shared(
        "FEATURE_GATES_OFF",
        ("coordinator", "extender"),
        "[]",
        _names,
        "docs/gpus.md, Feature gates of kube-scheduler",
    ),
    Shared("APP_WRAPPERS", ("coordinator", "extender"), "false", _switch, "docs/extender.md"),
    Shared("DISPATCH", ("coordinator", "webhook"), "false", _switch, "docs/clusters.md"),
)


def check_shared_settings(seen: Examined) -> Iterator[Finding]:
    """Say which settings differ between programs that must have them alike."""
    if isinstance(seen.deployments, Unread):
        yield unread(CHECK, seen.deployments)
        return
    containers = _containers(seen)
    findings = [each for shared in SHARED for each in _judged(shared, containers)]
    yield from findings
    if containers and not findings:
        yield ok(CHECK, "the same wherever two programs need the same")


def _containers(seen: Examined) -> list[Container]:
    """List containers of Muster, also of an extender beside kube-scheduler in its own pod."""
    deployments = () if isinstance(seen.deployments, Unread) else seen.deployments
    mine = [each for each in deployments if each.metadata.namespace == seen.namespace]
    beside = () if isinstance(seen.schedulers, Unread) else seen.schedulers
    specs = (*(each.spec.template.spec for each in mine), *(each.spec for each in beside))
    return [container for spec in specs for container in spec.containers]


def _judged(shared: Shared, containers: Sequence[Container]) -> Iterator[Finding]:
    found = {
        f"MUSTER_{program.upper()}_{shared.name}": each
        for program in shared.programs
        for each in containers
        if program in (each.name, *each.words)
    }
    said = {variable: _said(shared, variable, each) for variable, each in found.items()}
    hidden = [variable for variable, value in said.items() if value is None]
    if len(said) > 1 and hidden:
        message = f"{', '.join(hidden)} cannot be seen: the value is not in the Deployment itself"
        yield unknown(shared.name, message, f"compare {' with '.join(said)}: {shared.page}")
    elif len(set(said.values())) > 1:
        message = ", and ".join(f"{variable} is {value}" for variable, value in said.items())
        yield warn(shared.name, message, f"give both the same value: {shared.page}")


def _said(shared: Shared, variable: str, container: Container) -> str | None:
    """Return what a container is given, or the default; None where it stands elsewhere."""
    given = [each.value for each in container.env if each.name.upper() == variable]
    if not given:
        return None if container.env_from else shared.read(shared.default)
    return None if given[-1] is None else shared.read(given[-1])
