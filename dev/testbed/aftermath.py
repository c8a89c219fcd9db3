"""Reports on a cluster after a failure: its objects, and the ends of its programs' logs.

For the report of a failure, which must say enough where the machine can no longer be looked at,
and stay readable: the newest of everything, in so many lines of so many characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from testbed.errors import TestbedError

LINES = 25
"""Of each list of objects, and of the log of a program of Muster."""
LINES_OF_OTHERS = 6
"""Of the log of any other program: etcd has seldom much to say."""
WIDTH = 300
CUT = " [...]"

_KINDS = ("gangs", "rayclusters", "pods", "events", "nodes")
_MUSTER = ("coordinator", "webhook", "extender", "lagging", "certs")
_ASKED = ("-A", "-o", "wide", "--sort-by=.metadata.creationTimestamp", "--request-timeout=5s")

Kubectl = Callable[..., str]
"""Told the arguments, returns what kubectl prints."""


def what_is_there(kubectl: Kubectl) -> str:
    """The newest objects of each kind that matters, as kubectl prints them."""
    return "\n".join(_listed(kubectl, kind) for kind in _KINDS)


def _listed(kubectl: Kubectl, kind: str) -> str:
    try:
        header, *rows = kubectl("get", kind, *_ASKED).splitlines() or [f"no {kind}"]
    except TestbedError as error:
        return _narrow(f"{kind}: {error}")
    return "\n".join(map(_narrow, [header, *rows[-LINES:]]))


def ends_of_logs(folder: Path) -> str:
    """The last lines of each log; Muster's own programs come last and longest."""
    logs = sorted(folder.glob("*.log"), key=lambda path: (_is_ours(path), path.name))
    return "\n".join(line for path in logs for line in _end(path))


def _end(path: Path) -> Iterator[str]:
    lines = path.read_text(errors="replace").splitlines()
    shown = LINES if _is_ours(path) else LINES_OF_OTHERS
    yield f"--- {path.name}, the last {min(shown, len(lines))} of {len(lines)} lines"
    yield from map(_narrow, lines[-shown:])


def _is_ours(path: Path) -> bool:
    return path.stem.startswith(_MUSTER)


def _narrow(line: str) -> str:
    return line if len(line) <= WIDTH else line[:WIDTH] + CUT


def brief(things: Sequence[str]) -> str:
    """Some things, a line each, and the rest as a number; for the message of an error."""
    rest = [f"and {len(things) - LINES} more"] if len(things) > LINES else []
    return "\n".join([*map(_narrow, things[:LINES]), *rest]) or "nothing"
