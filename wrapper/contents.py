"""Reduces the spec of an AppWrapper to its items and the terms it runs on.

Templates are not kept: they are read again when an item is created. Thousands may wait.
"""

from dataclasses import dataclass

from appwrapper.completion import Completion
from appwrapper.spec.retries import Patience
from kube.objects.app_wrapper import AppWrapperStatus, SchedulingSpec


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """An object of the AppWrapper's namespace."""

    api_version: str
    kind: str
    name: str

    def __str__(self) -> str:
        """Name it as people do."""
        return f"{self.kind} {self.name}"


_NO_TERMS = SchedulingSpec()
_USUAL = Patience()


@dataclass(frozen=True, slots=True)
class Contents:
    """The items in order, and the terms. With a `fault` there is nothing that could be created.

    `scheduling` has the terms of MCAD's generation (`is_mcad`), `patience` those of CodeFlare's.
    `pods` is how many all items are to have, `needed` how many of them must run at once, `notices`
    what its user should know besides.
    """

    items: tuple[Reference, ...] = ()
    fault: str = ""
    notices: tuple[str, ...] = ()
    suspended: bool = False
    is_mcad: bool = False
    pods: int = 0
    needed: int = 0
    priority: int = 0
    scheduling: SchedulingSpec = _NO_TERMS
    patience: Patience = _USUAL

    @property
    def minimum(self) -> int:
        """How many pods are to run or to have succeeded; 0: no matter how many."""
        return self.scheduling.min_available or 0


COMPLETED = "muster.dev/Completed"
"""The condition of an item that is deleted after its end: whether it had completed, or failed."""


def ends_noted(status: AppWrapperStatus) -> dict[Reference, Completion]:
    """Return how items ended, as far as that is written down."""
    return {
        Reference(each.api_version, each.kind, each.name): _END[condition.status]
        for each in status.component_status
        for condition in each.conditions
        if condition.type == COMPLETED and condition.status in _END
    }


_END = {"True": Completion.SUCCEEDED, "False": Completion.FAILED}
