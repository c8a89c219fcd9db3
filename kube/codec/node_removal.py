"""Detects whether an autoscaler, or a deletion, is about to remove a node.

Names are those of Cluster Autoscaler (utils/taints) and of Karpenter (pkg/apis, v1 and v1beta1).
A taint counts whatever its effect and its value, as it does to Cluster Autoscaler itself.
"""

from kube.objects.core import Node
from scheduling.model.node import Removal

CERTAIN = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "cloud.google.com/impending-node-termination",
    }
)
"""Taints of nodes that are being drained: Cluster Autoscaler's, Karpenter's from 1.0 on and its
v1beta1's, and that of GKE's termination handler."""

POSSIBLE = frozenset({"DeletionCandidateOfClusterAutoscaler"})
"""Taints of nodes that go unless pods come to need them."""

VOLUNTARY_DISRUPTION = "karpenter.sh/voluntary-disruption"
"""The annotation by which Karpenter up to v1alpha5 marked its candidates."""


def removal(found: Node) -> Removal:
    """Say whether the node is taken away: its deletion waits only for finalizers."""
    keys = {taint.key for taint in found.spec.taints}
    if found.metadata.deletion_timestamp or keys & CERTAIN:
        return Removal.CERTAIN
    if keys & POSSIBLE or VOLUNTARY_DISRUPTION in found.metadata.annotations:
        return Removal.POSSIBLE
    return Removal.NONE
