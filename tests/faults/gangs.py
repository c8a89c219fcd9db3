"""How do the fault tests name the requests that a fault is for?"""

from __future__ import annotations

from tests.faults.proxy import Call, Match

_JSON_PATCH = "PATCH"


def is_release(call: Call) -> bool:
    """Whether the request takes our gate off a pod."""
    if call.method != _JSON_PATCH or "/pods/" not in call.path:
        return False
    return any(op["op"] == "remove" for op in call.content)


def is_placement(call: Call) -> bool:
    """Whether the request writes a placement."""
    if call.method != _JSON_PATCH or "/gangs/" not in call.path:
        return False
    return any("placement" in (op.get("value") or ()) for op in call.content)


def touches_pod(name: str) -> Match:
    """Match the release of one pod."""
    return lambda call: is_release(call) and call.path.endswith(f"/pods/{name}")


def is_lease(call: Call) -> bool:
    """Whether the request is one of the election's."""
    return "/leases/" in call.path or call.path.endswith("/leases")


def not_lease(call: Call) -> bool:
    """Match all but the election's requests."""
    return not is_lease(call)
