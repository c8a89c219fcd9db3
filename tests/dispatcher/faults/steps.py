"""The steps of the protocol as requests: each is seen on the way of one client to a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.faults.calls import is_release
from tests.faults.proxied import Call, Match

Json = dict[str, Any]

MANAGER = "manager"
"""From the dispatcher to the manager's API server."""
MEMBER = "member"
"""From the dispatcher to the API server of a member."""
INSIDE = "inside"
"""From the coordinator of a member to its API server."""


@dataclass(frozen=True)
class Step:
    """One request of the protocol."""

    name: str
    way: str
    match: Match
    needs_new_term: bool = False
    """Whether a leader makes it once."""


def _operations(call: Call, collection: str) -> Iterator[Json]:
    """Yield the operations of a patch of one object of a collection, or of its status."""
    if call.method == "PATCH" and f"/{collection}/" in call.path and isinstance(call.content, list):
        yield from call.content


def _record(call: Call) -> Json:
    """Return what is written as Gang.status.dispatch; empty where nothing is."""
    found = (each for each in _operations(call, "gangs") if each["path"] == "/status/dispatch")
    return next((each["value"] for each in found), {})


def _phase(call: Call, collection: str) -> str:
    """Return what is written as the phase of an object; empty where nothing is."""
    for each in _operations(call, collection):
        if each["path"] == "/status/phase":
            return str(each.get("value", ""))
        if each["path"] == "/status" and "phase" in each.get("value", ()):
            return str(each["value"]["phase"])
    return ""


def _sets(call: Call, path: str) -> bool:
    return any(each["path"] == path and each["op"] != "test" for each in _offer_patch(call))


def _offer_patch(call: Call) -> Iterator[Json]:
    return _operations(call, "gangoffers")


def _lets_go(call: Call) -> bool:
    written = (each for each in _offer_patch(call) if each["path"] == "/metadata/finalizers")
    return any(each["op"] != "test" and not each["value"] for each in written)


def _makes(call: Call, collection: str) -> bool:
    return call.method == "POST" and call.path.endswith(f"/{collection}")


def _removes(call: Call, collection: str) -> bool:
    return call.method == "DELETE" and f"/{collection}/" in call.path


def _mirrors(call: Call) -> bool:
    return call.method == "PATCH" and "/rayclusters/" in call.path and call.path.endswith("/status")


def _reads(call: Call) -> bool:
    return call.method == "GET" and "/gangoffers/" in call.path


def _asked(call: Call, *, again: bool) -> bool:
    found = _record(call)
    return found.get("phase") == "Asked" and (found["attempt"] > 1) is again


STARTING = (
    Step("recorded", MANAGER, lambda call: _asked(call, again=False)),
    Step("asked", MEMBER, lambda call: _makes(call, "gangoffers")),
    Step("offered", INSIDE, lambda call: _phase(call, "gangoffers") == "Offered"),
    Step("chosen", MANAGER, lambda call: _record(call).get("phase") == "Offered"),
    Step("term", MEMBER, lambda c: c.is_write and "/leases" in c.path, needs_new_term=True),
    Step("accepted", MEMBER, lambda call: _sets(call, "/spec/acceptedBy")),
    Step("started", INSIDE, lambda call: _phase(call, "gangoffers") == "Started"),
    Step("told", MANAGER, lambda call: _record(call).get("phase") == "Started"),
    Step("copied", MEMBER, lambda call: _makes(call, "rayclusters")),
    Step("released", INSIDE, is_release),
    Step("running", INSIDE, lambda call: _phase(call, "gangs") == "Running"),
    Step("mirrored", MANAGER, _mirrors),
)
"""From the creation of a Ray object until it runs."""

MOVING = (
    Step("withdrawn", MEMBER, lambda call: _removes(call, "gangoffers")),
    Step("removed", INSIDE, lambda call: _removes(call, "rayclusters")),
    Step("read", MEMBER, _reads),
    Step("forgotten", INSIDE, _lets_go),
    Step("ended", MANAGER, lambda call: _record(call).get("phase") == "Closed"),
    Step("again", MANAGER, lambda call: _asked(call, again=True)),
)
"""From the drain of its member until it runs on another."""

RETURNING = (Step("closed", INSIDE, lambda call: _phase(call, "gangoffers") == "Closed"),)
"""From the deletion of its copy on the member until it runs again; a withdrawn offer just goes."""
