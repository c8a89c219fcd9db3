"""Reads the API server's audit log: the requests of Muster, and whether they were allowed."""

import json
from collections.abc import Iterator
from pathlib import Path

from testbed.muster import NAMESPACE
from tests.controlplane.rayclusters import Json

_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:"
PROGRAMS = ("muster-coordinator", "muster-webhook", "muster-wrapper")


class Audit:
    """The audit log of one API server, of Muster's requests alone."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "audit.log"
        self._policy = directory / "audit-policy.json"
        self._policy.write_text(json.dumps(_policy()))

    @property
    def apiserver_args(self) -> tuple[str, ...]:
        """What makes the API server write the log."""
        return (f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}")

    def requests(self) -> Iterator[Json]:
        """All requests so far, but for a line that is being written."""
        if self._log.exists():
            for line in self._log.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    yield json.loads(line)

    def forbidden(self) -> list[str]:
        """The requests that RBAC refused, in words."""
        return sorted({_words(each) for each in self.requests() if _decision(each) == "forbid"})

    def verbs(self, program: str) -> set[str]:
        """The verbs that a program has used."""
        return {each["verb"] for each in self.requests() if _program(each) == program}


def _policy() -> Json:
    users = [_ACCOUNT + program for program in PROGRAMS]
    ours = {"level": "Metadata", "users": users, "omitStages": ["RequestReceived"]}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [ours, {"level": "None"}],
    }


def _decision(request: Json) -> str:
    # A 403 may come from admission too, for example in a namespace that is being deleted.
    return str(request.get("annotations", {}).get("authorization.k8s.io/decision", ""))


def _program(request: Json) -> str:
    return str(request["user"]["username"]).removeprefix(_ACCOUNT)


def _words(request: Json) -> str:
    what = request.get("objectRef", {})
    return f"{_program(request)}: {request['verb']} {what.get('resource', request['requestURI'])}"
