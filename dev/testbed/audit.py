"""Reads from an API server's audit log what service accounts of one namespace asked of it.

The log holds one line for each of their requests, without bodies, and nothing of other users. A
watch has its line when it begins, for an API server that is killed writes none at its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from testbed.rights import Asked, Uses

_LOG = "audit.log"
_POLICY = "audit-policy.json"


class _Object(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    verb: str
    user: _User
    request_uri: str = msgspec.field(default="", name="requestURI")
    user_agent: str = ""
    object_ref: _Object | None = None
    annotations: dict[str, str] = {}


class Auditor:
    """Has API servers log the requests of a namespace's accounts, and counts the rights used."""

    def __init__(self, namespace: str, uses: Uses) -> None:
        self._namespace = namespace
        self.uses = uses

    def flags(self, directory: Path) -> tuple[str, ...]:
        """Arguments of an API server that keeps its files in this directory."""
        policy = directory / _POLICY
        policy.write_text(json.dumps(audit_policy(self._namespace)))
        # Of one size for ever: a second file would not be read.
        return (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={directory / _LOG}",
            "--audit-log-maxsize=100000",
        )

    def take_in(self, directory: Path, *, refusals_expected: bool) -> None:
        """Count what was asked of the API server of a directory."""
        found = set(asked(directory))
        self.uses.take_in(found)
        if not refusals_expected:
            self.uses.refuse(found, directory.parent.name)


def audit_policy(namespace: str) -> dict[str, Any]:
    """The policy that logs the accounts of a namespace and nothing else."""
    groups = [f"system:serviceaccounts:{namespace}"]
    ours = {"level": "Metadata", "userGroups": groups, "omitStages": ["RequestReceived"]}
    rules = [ours, {"level": "None"}]
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}


def asked(directory: Path) -> Iterator[Asked]:
    """All requests so far, but for a line that is being written."""
    log = directory / _LOG
    decoder = msgspec.json.Decoder(_Line)
    if log.exists():
        with log.open("rb") as lines:
            yield from (_asked(decoder.decode(line)) for line in lines if line.endswith(b"\n"))


def _asked(line: _Line) -> Asked:
    account = line.user.username.rpartition(":")[2]
    # A 403 may come from admission too, for example in a namespace that is being deleted.
    allowed = line.annotations.get("authorization.k8s.io/decision") != "forbid"
    ref, verb, agent = line.object_ref, line.verb, line.user_agent
    if ref is None:
        path = line.request_uri.partition("?")[0]
        return Asked(account, verb, "", path, "", "", allowed, agent)
    resource = "/".join(filter(None, (ref.resource, ref.subresource)))
    return Asked(account, verb, ref.api_group, resource, ref.name, ref.namespace, allowed, agent)
