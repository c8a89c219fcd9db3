"""Counts the steps of an evaluation."""

from kube.devices.cel.faults import OverBudget


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
