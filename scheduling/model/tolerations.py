"""Tolerations, judged on one taint, of a node or of a device."""

from collections.abc import Iterable

from scheduling.model.constraints import Toleration
from scheduling.model.node import Taint


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
