"""Compiles conditions: "and" and "or" pass over errors where the rest decides."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kube.devices.cel.faults import CelError, NotReadable, OverBudget
from kube.devices.cel.functions import DYN, fits
from kube.devices.cel.scope import Code, Run, Scope


def junction(operands: list[Code], decisive: bool) -> Code:  # noqa: FBT001 - && and || are one
    """Compile && (whose operands decide by false) or ||."""
    if not all(fits("bool", kind) for _, kind in operands):
        raise CelError("no such overload of && or ||")
    runs = [run for run, _ in operands]

    def result(scope: Scope) -> bool:
        return _decided(runs, scope, decisive)

    return result, "bool"


def _decided(runs: Sequence[Run], scope: Scope, decisive: bool) -> bool:  # noqa: FBT001
    doubt = Doubt()
    for run in runs:
        if doubt.settles(run, scope, decisive):
            return decisive
    doubt.tell()
    return not decisive


class Doubt:
    """What failed while nothing decided: what we cannot read weighs more than an error."""

    def __init__(self) -> None:
        self._fault: Exception | None = None

    def settles(self, run: Run, scope: Scope, decisive: bool) -> bool:  # noqa: FBT001
        """Evaluate an operand, and say whether it decides."""
        try:
            value = run(scope)
            if type(value) is not bool:
                raise CelError("no such overload of && or ||")
        except OverBudget:
            raise
        except (CelError, NotReadable) as fault:
            if not isinstance(self._fault, NotReadable):
                self._fault = fault
            return False
        return value is decisive

    def tell(self) -> None:
        """Raise what failed, if anything did."""
        if self._fault is not None:
            raise self._fault


def _conditional(operands: list[Code]) -> Code:
    (test, kind), (first, one), (second, other) = operands
    if not fits("bool", kind) or not fits(one, other):
        raise CelError("no such overload of ?:")

    def result(scope: Scope) -> Any:
        value = test(scope)
        if type(value) is not bool:
            raise CelError("no such overload of ?:")
        return first(scope) if value else second(scope)

    return result, one if one == other else DYN


LOGIC: Final[dict[str, Callable[[list[Code]], Code]]] = {
    "&&": lambda operands: junction(operands, decisive=False),
    "||": lambda operands: junction(operands, decisive=True),
    "?:": _conditional,
}
