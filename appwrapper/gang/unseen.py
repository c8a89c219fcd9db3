"""Says why an AppWrapper can be sent to no other cluster."""

from appwrapper.spec.wrapped import Wrapped
from kube.ray.gang_terms import Problem

_ALLOWED = "kinds of which the pods are found in the object: of others none knows when they ended"


def problems(wrapped: Wrapped) -> tuple[Problem, ...]:
    """Name the objects whose pods cannot be labelled, so that their end is seen by nobody."""
    unseen = (
        each.where for each in wrapped.items if any(one.path is None for one in each.pod_sets)
    )
    return tuple(Problem("spec", where, _ALLOWED) for where in unseen)
