"""Works out the priority of a gang from its pods and its requested PriorityClass.

A gang is as urgent as the least urgent of its pods. ResourceQuota guards which priority a pod may
have, and nothing guards the annotations of a RayCluster. So `muster.dev/priority-class` may put its
gang further back, and further ahead only by a class that the operator allows in its namespace.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kube.codec.observed_pod import ObservedPod
from kube.objects.core import PriorityClass
from kube.ray.gang_terms import bad_priority_class

EVERY_NAMESPACE = "*"
SETTING = "MUSTER_COORDINATOR_PRIORITY_CLASSES"
SYSTEM_PREFIX = "system-"  # classes that Kubernetes keeps for itself; messages do not propose them


@dataclass(frozen=True, slots=True)
class AllowedClasses:
    """By namespace, or `*` for every one, the classes that may raise a gang above its pods.

    In the namespaces of `adding`, or `*`, a gang's source may add to the priority of its pods.
    """

    by_namespace: Mapping[str, Collection[str]] = field(default_factory=dict)
    adding: Collection[str] = ()

    def within(self, namespace: str) -> frozenset[str]:
        """Return the classes that may raise gangs of the namespace."""
        places = (namespace, EVERY_NAMESPACE)
        return frozenset(name for place in places for name in self.by_namespace.get(place, ()))

    def adds_within(self, namespace: str) -> bool:
        """Say whether what sources of the namespace add to the priority counts."""
        return namespace in self.adding or EVERY_NAMESPACE in self.adding


@dataclass(frozen=True, slots=True)
class Asked:
    """A class that a gang names (empty: none), among those that exist and those it may use."""

    name: str
    namespace: str
    classes: Mapping[str, PriorityClass]
    allowed: frozenset[str]

    def priority(self, lowest: int | None) -> int:
        """Return the priority of the gang whose pods have this lowest one; None without pods."""
        least = lowest or 0
        found = self.classes.get(self.name)
        if found is None:
            return least
        return found.value if self.name in self.allowed else min(found.value, least)

    def problem(self, lowest: int | None) -> str:
        """Say why the class cannot be used, empty if it can.

        Without pods it is not known yet whether it would raise the gang.
        """
        if not self.name:
            return ""
        found = self.classes.get(self.name)
        raises = found is not None and lowest is not None and found.value > lowest
        if found is not None and (not raises or self.name in self.allowed):
            return ""
        above = lowest if raises else None
        usable = self._usable(lowest)
        return bad_priority_class(self.name, self.namespace, usable, above, SETTING).message

    def _usable(self, lowest: int | None) -> list[str]:
        """Return the classes to propose: allowed, or not above the pods; never the system's."""
        return [
            name
            for name, found in self.classes.items()
            if (name in self.allowed or (lowest is not None and found.value <= lowest))
            and not name.startswith(SYSTEM_PREFIX)
        ]


def lowest_priority(pods: Iterable[ObservedPod]) -> int | None:
    """Return the lowest priority among the pods of a gang that are there; None without any."""
    return min((pod.priority for pod in pods if pod.alive), default=None)
