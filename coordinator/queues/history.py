"""Reads off a gang's record since when a condition is true, in seconds since 1970."""

from coordinator.gang.view import GangView
from kube.codec.fields import moment_of


def began(view: GangView) -> float | None:
    """Return when the gang was admitted, as its record says it; now where that is to be written."""
    return since(view, "Admitted") or view.reservation.admitted_at


def since(view: GangView, kind: str) -> float | None:
    """Return since when a condition of the gang's record is true; None where it is not."""
    for condition in view.record.gang.status.conditions if view.record.gang else ():
        if condition.type == kind and condition.status == "True":
            return moment_of(condition.last_transition_time)
    return None
