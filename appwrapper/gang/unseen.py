"""Says why an AppWrapper can be sent to no other cluster."""

from appwrapper.gang.stand_in import StandIn
from kube.ray.gang_terms import Problem

_ALLOWED = "kinds of which the pods are found in the object: of others none knows when they ended"


def problems(found: StandIn) -> tuple[Problem, ...]:
    """Name the objects whose pods cannot be labelled, so that their end is not seen."""
    return tuple(Problem("spec", where, _ALLOWED) for where in found.unseen)
