"""Reads a PodDisruptionBudget, and counts the evictions that it still allows."""

from dataclasses import dataclass

from kube.codec.observed_pod import ObservedPod
from kube.codec.selectors import selector
from kube.objects.policy import PodDisruptionBudget
from scheduling.model.constraints import Requirement
from scheduling.model.labels import selects


@dataclass(frozen=True, slots=True)
class Budget:
    """How many ready pods of those that it selects may be evicted now."""

    namespace: str
    name: str
    selector: tuple[Requirement, ...]
    allowed: int

    def counts(self, pod: ObservedPod) -> bool:
        """Say whether the eviction of a pod uses the budget up."""
        mine = pod.ready and pod.namespace == self.namespace
        return mine and selects(self.selector, dict(pod.kind[1]))


def budget_of(found: PodDisruptionBudget) -> Budget:
    """Read a budget."""
    meta, allowed = found.metadata, max(0, found.status.disruptions_allowed)
    return Budget(meta.namespace, meta.name, selector(found.spec.selector), allowed)
