"""Decodes PodDisruptionBudgets."""

from kube.objects.base import LabelSelector, ObjectMeta, OrNull, Part, Slim


class BudgetSpec(Slim, frozen=True):
    """Which pods a budget is of."""

    selector: LabelSelector | None = None


class BudgetStatus(Slim, frozen=True):
    """What its controller counted last, less what was evicted since."""

    disruptions_allowed: int = 0


class PodDisruptionBudget(Slim, frozen=True):
    """How many pods of those that it selects may be evicted."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class BudgetList(Part, frozen=True):
    """One page of a list of them."""

    items: OrNull[tuple[PodDisruptionBudget, ...]] = ()
