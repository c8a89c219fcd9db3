"""The scope of an evaluation: variables by name, and the steps that are left."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kube.devices.cel.faults import OverBudget
from kube.devices.cel.functions import Type

Scope: TypeAlias = Mapping[str, Any]
"""Variables by name, and the budget under a name that no variable has."""

BUDGET: Final = " budget"
Run: TypeAlias = Callable[[Scope], Any]
Code: TypeAlias = tuple[Run, Type]


class Budget:
    """Steps that are left: one for each node of the tree, and for each character made."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take some; OverBudget where there are not as many."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget("more steps than one evaluation is given")
