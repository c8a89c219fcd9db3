"""Finds gangs that preemption must not serve: host ports, or pods that may depend on its victims.

The search judges the gang beside existing pods, with the pods of the victims still among them. That
is sound where existing pods can only keep a pod out. Where an existing pod can let another pod in,
the gang might be refused once that existing pod is gone.
"""

from scheduling.filters.inter_pod_affinity import counts_existing
from scheduling.model.gang import PendingGang
from scheduling.state.pod_index import ExistingPods

PORTS = "no running gang is stopped for it: it asks for host ports"
AFFINITY = (
    "no running gang is stopped for it: its pod affinity or topology spread constraints count pods "
    "that exist, and these might be the ones to end"
)


def why_not(gang: PendingGang, existing: ExistingPods | None) -> str:
    """Return why nothing can be taken for a gang, whatever it is; empty where something may."""
    if any(group.shape.ports for group in gang.minimum):
        return PORTS
    if existing is None or not gang.has_inter_pod_constraints:
        return ""
    counts = any(
        counts_existing(group.shape, gang.pod_priority, existing) for group in gang.minimum
    )
    return AFFINITY if counts else ""
