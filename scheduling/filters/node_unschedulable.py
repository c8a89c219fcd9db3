"""NodeUnschedulable: which nodes are not cordoned, or whose cordon is tolerated."""

from scheduling.model.amounts import Mask
from scheduling.model.constraints import Toleration
from scheduling.model.node import Taint
from scheduling.model.tolerations import tolerates
from scheduling.state.node_snapshot import NodeAttributes

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""What a pod must tolerate to run on a cordoned node (plugin NodeUnschedulable)."""


def uncordoned(tolerations: tuple[Toleration, ...], traits: NodeAttributes) -> Mask:
    """Return the nodes that are not cordoned, or all where that is tolerated."""
    may_enter = tolerates(tolerations, UNSCHEDULABLE_TAINT)
    return traits.taints.where(lambda cordoned, _: may_enter or not cordoned)
