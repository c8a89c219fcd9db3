"""Names the requests that a fault is for."""

from __future__ import annotations

import itertools
from typing import Any

from tests.faults.proxied import Call, Match

Json = dict[str, Any]


def either(*matches: Match) -> Match:
    """Match what one of several matches."""
    return lambda call: any(each(call) for each in matches)


def is_release(call: Call) -> bool:
    """Whether the request takes our gate off a pod."""
    if call.method != "PATCH" or "/pods/" not in call.path:
        return False
    return any(operation["op"] == "remove" for operation in call.content)


def releases_after(count: int) -> Match:
    """Match releases, but let the first ones pass."""
    return after(count, is_release)


def is_nomination(call: Call) -> bool:
    """Whether the request nominates a pod, or takes that back."""
    return call.method == "PATCH" and "/pods/" in call.path and call.path.endswith("/status")


def after(count: int, match: Match) -> Match:
    """Match what `match` does, but let the first ones pass."""
    seen = itertools.count()
    return lambda call: match(call) and next(seen) >= count


def is_placement(call: Call) -> bool:
    """Whether the request writes a placement."""
    if call.method != "PATCH" or "/gangs/" not in call.path:
        return False
    return any("placement" in (operation.get("value") or ()) for operation in call.content)


def is_resumption(call: Call) -> bool:
    """Whether the request resumes a held RayCluster."""
    return call.method == "PATCH" and "/rayclusters/" in call.path


def writes_of(gang: str, field: str) -> Match:
    """Match writes of a Gang's status that hold this field."""

    def matches(call: Call) -> bool:
        if call.method != "PATCH" or f"/gangs/{gang}/status" not in call.path:
            return False
        return any(_sets(operation, field) for operation in call.content)

    return matches


def _sets(operation: Json, field: str) -> bool:
    """Whether a step of a patch writes this field, by itself or with the whole status."""
    whole = operation["path"] == "/status" and field in operation["value"]
    return whole or (operation["op"] == "add" and operation["path"] == f"/status/{field}")


def of_other_pods(call: Call) -> bool:
    """Whether the request lists or watches the pods that are not of Ray clusters."""
    return "/pods?" in call.path and "notin" in call.path


def of_ray_pods(call: Call) -> bool:
    """Whether the request lists or watches the pods of Ray clusters."""
    return "/pods?" in call.path and "notin" not in call.path and "ray.io" in call.path


def makes_gang(call: Call) -> bool:
    """Whether it creates a Gang."""
    return call.method == "POST" and call.path.endswith("/gangs")


def of_lease(call: Call) -> bool:
    """Whether the request is one of the election's."""
    return "/leases" in call.path


def not_lease(call: Call) -> bool:
    """Whether the request is none of the election's."""
    return not of_lease(call)


def evictions_after(count: int) -> Match:
    """Match evictions that are no dry runs, but let the first ones pass."""
    return after(count, lambda call: call.path.endswith("/eviction"))


def suspends(call: Call) -> bool:
    """Whether the request suspends a RayJob, and is no dry run."""
    return _says_suspend(call) is True


def resumes(call: Call) -> bool:
    """Whether the request resumes a RayJob."""
    return _says_suspend(call) is False


def _says_suspend(call: Call) -> object:
    if call.method != "PATCH" or "/rayjobs/" not in call.path or "dryRun" in call.path:
        return None
    return call.content["spec"]["suspend"]
