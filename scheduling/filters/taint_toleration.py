"""TaintToleration: which nodes have only taints that a pod tolerates."""

from scheduling.model.amounts import Mask
from scheduling.model.constraints import Toleration
from scheduling.model.tolerations import tolerates
from scheduling.state.node_snapshot import NodeAttributes


def untainted(tolerations: tuple[Toleration, ...], traits: NodeAttributes) -> Mask:
    """Return the nodes all of whose taints are tolerated; PreferNoSchedule never refuses."""
    return traits.taints.where(
        lambda _, taints: all(
            taint.effect == "PreferNoSchedule" or tolerates(tolerations, taint) for taint in taints
        )
    )
