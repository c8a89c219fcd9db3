"""Counts the requests that the API server gets for the work, by client.

From an audit log at Metadata level, in a run of its own: writing it costs time.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

Row = tuple[str, str, str, int]
"""User agent, verb, resource (with its subresource), status code."""

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources: [{group: coordination.k8s.io}]
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
"""


class _Object(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    subresource: str = ""


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    verb: str
    user_agent: str = ""
    object_ref: _Object = _Object()
    response_status: _Answer = _Answer()


class AuditLog:
    """The log of one API server; `flags` make it write one."""

    def __init__(self, directory: Path) -> None:
        self._policy = directory / "audit-policy.yaml"
        self._policy.write_text(POLICY)
        self._log = directory / "audit.log"
        self._read_to = 0
        self.counted: Counter[Row] = Counter()

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of the API server."""
        return (
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self._log}",
            "--audit-log-mode=blocking-strict",
        )

    def skip(self) -> None:
        """Count from here on."""
        self._read_to = self._log.stat().st_size if self._log.exists() else 0

    def stop(self) -> None:
        """Count into `counted` what came since the last `skip`, watches left out."""
        with self._log.open("rb") as log:
            log.seek(self._read_to)
            lines = log.read().splitlines()
        decoder = msgspec.json.Decoder(_Line)
        requests = (line for line in map(decoder.decode, lines) if line.verb != "watch")
        self.counted = Counter(_row(line) for line in requests)


def _row(line: _Line) -> Row:
    ref = line.object_ref
    what = f"{ref.resource}/{ref.subresource}" if ref.subresource else ref.resource
    return (_who(line.user_agent), line.verb, what, line.response_status.code)


def _who(user_agent: str) -> str:
    """The program without its version and platform."""
    return user_agent.split("/", 1)[0] or "driver"
