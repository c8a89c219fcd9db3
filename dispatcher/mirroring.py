"""Works out the status of an object on the manager from its copy on a member. Pure.

The status of a RayJob has no conditions, and that of an AppWrapper has only those of its
generation, so only their Gangs show where they run.
"""

from dataclasses import dataclass
from typing import Any

from dispatcher.reading import Copy, Original, parsed
from kube.gang.nested import RAY_JOB
from kube.gang.sent import WRAPPER_RESOURCES
from kube.objects.clusters.dispatch import JOB_COMPLETE, GangDispatch
from kube.ray.ray_owner import ENDED

DISPATCHED = "muster.dev/Dispatched"
"""Type of the condition that names the cluster."""

ON_CLUSTER, ON_NO_CLUSTER = "OnCluster", "OnNoCluster"

SETTLES = 0.3
"""Seconds without another change after which the status of a copy is told."""

LONGEST = 1.0
"""The most seconds for which what is told may be old, whatever changes."""

Json = dict[str, Any]


@dataclass(slots=True)
class Settling:
    """The status of a copy that the original does not show yet. Times are monotonic seconds."""

    status: Json | None = None
    since: float = 0.0
    """Since when what is told is old."""
    changed_at: float = 0.0

    def due(self, status: Json, now: float) -> float:
        """Return when the status of now is to be told."""
        if self.status is None:
            self.since = now
        if status != self.status:
            self.status, self.changed_at = status, now
        return min(self.changed_at + SETTLES, self.since + LONGEST)

    def end(self) -> None:
        """Note that the original shows the right status."""
        self.status = None


def status_of(original: Original, copy: Copy, cluster: str) -> Json:
    """Return the status of a copy as that of its original."""
    found = parsed(copy.status)
    observed = found.pop("observedGeneration", None)
    if original.kind in WRAPPER_RESOURCES:
        return found
    found["observedGeneration"] = _observed(original, copy, observed)
    if original.kind == RAY_JOB:
        return found
    since = copy.metadata.creation_timestamp or ""
    found["conditions"] = [
        *(each for each in found.get("conditions") or () if each.get("type") != DISPATCHED),
        _condition("True", ON_CLUSTER, f"it runs on cluster {cluster}", since),
    ]
    return found


def status_without_copy(original: Original, message: str, now: str) -> Json | None:
    """Return the status of an original whose copy is gone; None where it never had one."""
    known = parsed(original.status)
    if original.kind == RAY_JOB:
        return {"message": message} if known else None
    before = _condition_in(known)
    if before is None:
        return None
    same = before.get("status") == "False"
    since = str(before.get("lastTransitionTime")) if same else now
    return {
        "observedGeneration": known.get("observedGeneration") or 0,
        "conditions": [_condition("False", ON_NO_CLUSTER, message, since)],
    }


def status_at_end(original: Original, dispatch: GangDispatch) -> Json | None:
    """Return the status of a RayJob whose copy is gone; None where its end is told already."""
    known = parsed(original.status)
    if known.get("jobDeploymentStatus") in ENDED:
        return None
    state = "Complete" if dispatch.end == JOB_COMPLETE else "Failed"
    return {**known, "jobDeploymentStatus": state, "message": dispatch.message}


def differs(original: Original, status: Json) -> bool:
    """Say whether an original does not have a status yet."""
    return parsed(original.status) != status


def _observed(original: Original, copy: Copy, observed: int | None) -> int:
    """Return the generation of the original that its copy was last looked at in.

    The copy counts generations of its own.
    """
    is_seen = observed is not None and observed >= copy.metadata.generation
    if is_seen and copy.sent == original.wishes.text():
        return original.metadata.generation
    return int(parsed(original.status).get("observedGeneration") or 0)


def _condition_in(status: Json) -> Json | None:
    found = (each for each in status.get("conditions") or () if each.get("type") == DISPATCHED)
    return next(found, None)


def _condition(status: str, reason: str, message: str, since: str) -> Json:
    return {
        "type": DISPATCHED,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
