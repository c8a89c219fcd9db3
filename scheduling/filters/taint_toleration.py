"""TaintToleration: which nodes have only taints that a pod tolerates."""

from collections.abc import Iterable

from scheduling.model.amounts import Mask
from scheduling.model.constraints import Toleration
from scheduling.model.node import Taint
from scheduling.state.node_snapshot import NodeAttributes


def untainted(tolerations: tuple[Toleration, ...], traits: NodeAttributes) -> Mask:
    """Return the nodes all of whose taints are tolerated; PreferNoSchedule never refuses."""
    return traits.taints.where(
        lambda _, taints: all(
            taint.effect == "PreferNoSchedule" or tolerates(tolerations, taint) for taint in taints
        )
    )


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Say whether one of the tolerations covers the taint (ToleratesTaint of k8s.io/api).

    Lt and Gt never do: their feature gate TaintTolerationComparisonOperators is off in 1.36.
    """
    return any(
        each.effect in ("", taint.effect)
        and each.key in ("", taint.key)
        and (
            each.operator == "Exists"
            or (each.operator in ("", "Equal") and each.value == taint.value)
        )
        for each in tolerations
    )
