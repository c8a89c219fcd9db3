"""Bounds a search by steps, each one look at one device or at one mix of pods."""


class OutOfSteps(Exception):  # noqa: N818 # it ends a search from within, and never leaves the package
    """The steps are used up."""


class StepBudget:
    """The steps that are left to searches that share them."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Count steps; OutOfSteps once there are none."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps
