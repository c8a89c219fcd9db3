"""Keeps the LimitRanges, RuntimeClasses and ResourceQuotas that govern the admission of pods.

They serve to foresee pods and claims that do not exist yet. A stale rule does no harm: the pods
then come otherwise than foreseen, or not at all, and the coordinator sees that.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

from kube.foreseen.admission import Admission
from kube.objects.admission import AdmissionRule, LimitRange, ResourceQuota, RuntimeClass
from kube.objects.core import PriorityClass

KINDS: tuple[type[AdmissionRule], ...] = (LimitRange, ResourceQuota, RuntimeClass)


class AdmissionRules:
    """The rules by kind, namespace and name.

    `edition` counts the changes of what pods are made of by them; what quotas have left changes
    with every pod. `unlisted` are the kinds that were never listed whole.
    """

    def __init__(self) -> None:
        self.edition = 0
        self.unlisted: set[type[AdmissionRule]] = set(KINDS)
        self._limits: defaultdict[str, dict[str, LimitRange]] = defaultdict(dict)
        self._quotas: defaultdict[str, dict[str, ResourceQuota]] = defaultdict(dict)
        self._runtimes: dict[str, RuntimeClass] = {}

    def put(self, rule: AdmissionRule) -> None:
        """Take in a rule."""
        namespace, name = rule.metadata.namespace, rule.metadata.name
        match rule:
            case LimitRange():
                self._limits[namespace][name] = rule
            case ResourceQuota():
                self._quotas[namespace][name] = rule
            case RuntimeClass():
                self._runtimes[name] = rule
        self._count(rule)

    def drop(self, rule: AdmissionRule) -> None:
        """Forget a rule; an unknown one is no matter."""
        namespace, name = rule.metadata.namespace, rule.metadata.name
        match rule:
            case LimitRange():
                _remove(self._limits, namespace, name)
            case ResourceQuota():
                _remove(self._quotas, namespace, name)
            case RuntimeClass():
                self._runtimes.pop(name, None)
        self._count(rule)

    def admission(self, namespace: str, priority_classes: Mapping[str, PriorityClass]) -> Admission:
        """Return what the pods of a namespace are admitted by."""
        limits = tuple(self._limits.get(namespace, {}).values())
        return Admission(limits, self._runtimes, priority_classes)

    def quotas(self, namespace: str) -> Collection[ResourceQuota]:
        """Return the ResourceQuotas of a namespace."""
        return self._quotas.get(namespace, {}).values()

    def _count(self, rule: AdmissionRule) -> None:
        if not isinstance(rule, ResourceQuota):
            self.edition += 1


def _remove(
    rules: dict[str, dict[str, LimitRange]] | dict[str, dict[str, ResourceQuota]],
    namespace: str,
    name: str,
) -> None:
    mine = rules.get(namespace, {})
    mine.pop(name, None)
    if not mine:
        rules.pop(namespace, None)
