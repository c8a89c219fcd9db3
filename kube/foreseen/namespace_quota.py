"""Judges pods that do not exist yet against the ResourceQuotas of their namespace, all together.

The API server admits pods one by one, so that of a gang that asks for too much some are created.
What it counts of a pod is in pkg/quota/v1/evaluator/core of Kubernetes. A quota with a scope that
is not known here counts no pods, as there: where it does count them KubeRay says so, while a gang
that waited for it would wait for ever.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kube.codec.fields import ByResource, quantity, read_amounts
from kube.foreseen.amounts import Side, all_containers, pod_total
from kube.foreseen.gang import Foreseen, ForeseenPodSet
from kube.objects.admission import ResourceQuota, ScopeRequirement
from kube.objects.base import Quantities
from kube.objects.pod_templates import (
    TemplateAffinity,
    TemplateAffinityTerm,
    TemplateContainer,
    TemplateResources,
    TemplateSpec,
)
from scheduling.model.amounts import CPU, MEMORY, PODS
from scheduling.model.quantity import (
    MAX_AMOUNT,
    BadQuantity,
    allocatable_amount,
    request_amount,
)

EXCEEDED = "exceeded quota: "
"""How the API server begins to say that a ResourceQuota has no room for an object."""

_EXCEEDED = re.compile(rf"{EXCEEDED}([^,]+), requested: (.+?), used: ")

_REQUESTS, _LIMITS = "requests.", "limits."
_NATIVE = (CPU, MEMORY, "ephemeral-storage")  # a quota may name these without a prefix

# A quota of one of these admits no container that is silent about it.
_TO_BE_SAID = tuple(f"{side}{name}" for side in ("", _REQUESTS, _LIMITS) for name in (CPU, MEMORY))


@dataclass(frozen=True, slots=True)
class QuotaShortage:
    """A ResourceQuota that does not suffice: amounts are those of the core, `used` without them."""

    quota: str
    resource: str
    needed: int
    hard: int
    used: int

    @property
    def message(self) -> str:
        """Say what is short, in numbers."""
        needed, left = (shown(self.resource, n) for n in (self.needed, self.hard - self.used))
        of = shown(self.resource, self.hard)
        return (
            f"ResourceQuota {self.quota}: the gang needs {needed} of {self.resource}; "
            f"{left} of {of} are left"
        )


@dataclass(frozen=True, slots=True)
class QuotaUnmet:
    """A ResourceQuota that admits no pod like these, or of which it is not known what is used."""

    quota: str
    message: str


QuotaRefusal = QuotaShortage | QuotaUnmet


@dataclass(frozen=True, slots=True)
class Scoped:
    """What the scopes of quotas ask of a pod."""

    terminating: bool
    best_effort: bool
    priority_class: str
    crosses_namespaces: bool


Charges = Mapping[Scoped | None, Mapping[str, int]]
"""What quotas count of pods, by what their scopes ask of these; under None of other objects."""


Amounts = Mapping[tuple[str, str], int]
"""Amounts by the name of a ResourceQuota and a resource that it bounds."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of a resource a ResourceQuota admits, and how much of that is used."""

    hard: int
    used: int


def bounds_of(quotas: Iterable[ResourceQuota]) -> dict[tuple[str, str], Bound]:
    """Return what quotas bound, as far as it is known what is used of it."""
    found = {}
    for quota in quotas:
        for resource, text in quota.status.used.items():
            hard = _hard(quota, resource)
            if hard is not None:
                found[quota.metadata.name, resource] = Bound(hard, _used(resource, text))
    return found


def counted(charges: Charges, quotas: Iterable[ResourceQuota]) -> Counter[tuple[str, str]]:
    """Return what each quota counts of charges, by what it bounds."""
    found: Counter[tuple[str, str]] = Counter()
    for quota in quotas:
        for of, amounts in charges.items():
            if _applies(quota, of):
                bounded = {*quota.spec.hard, *quota.status.hard} & amounts.keys()
                found.update({(quota.metadata.name, each): amounts[each] for each in bounded})
    return +found


def exceeded(refusal: str) -> dict[tuple[str, str], int]:
    """Return what a ResourceQuota had no room for, by the words of the API server; else nothing."""
    found = _EXCEEDED.search(refusal)
    if found is None:
        return {}
    asked = (each.partition("=") for each in found[2].split(","))
    return {(found[1], resource): _used(resource, text) for resource, _, text in asked}


def charges_of(found: Foreseen) -> Charges:
    """Add up what quotas count of all pods of a gang."""
    charges: dict[Scoped | None, Counter[str]] = {}
    for each in found.pod_sets:
        charges.setdefault(_scoped(each.pod.spec), Counter()).update(_needed([each]))
    if found.objects:
        charges[None] = _objects(found)
    return charges


def _objects(found: Foreseen) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, count in found.objects:
        total[name] += count
    return total


def namespace_quota(
    found: Foreseen, quotas: Iterable[ResourceQuota], claimed: Charges = MappingProxyType({})
) -> tuple[QuotaRefusal, ...]:
    """Return what keeps the pods of a gang from being created; nothing where all can be.

    `claimed` is what other pods take that are not created yet either.
    """
    scoped = [(_scoped(each.pod.spec), each) for each in found.pod_sets]
    return tuple(
        refusal
        for quota in sorted(quotas, key=lambda each: each.metadata.name)
        for refusal in _refusals(
            quota, found, [e for of, e in scoped if _applies(quota, of)], claimed
        )
    )


def _refusals(
    quota: ResourceQuota, found: Foreseen, pod_sets: list[ForeseenPodSet], claimed: Charges
) -> Iterator[QuotaRefusal]:
    name, bounded = quota.metadata.name, {*quota.spec.hard, *quota.status.hard}
    for fault in (fault for each in pod_sets for fault in _silent(each, bounded)):
        yield QuotaUnmet(name, f"ResourceQuota {name}: {fault}")
    others = [amounts for of, amounts in claimed.items() if _applies(quota, of)]
    asked = _needed(pod_sets)
    asked.update(_objects(found) if _applies(quota, None) else {})
    for resource, mine in sorted(asked.items()):
        needed = mine + sum(amounts.get(resource, 0) for amounts in others)
        if resource not in bounded:
            continue
        used, hard = quota.status.used.get(resource), _hard(quota, resource)
        if used is None:
            said = f"its status does not say yet how much {resource} is used"
            yield QuotaUnmet(name, f"ResourceQuota {name}: {said}")
        elif hard is not None and needed > hard - _used(resource, used):
            yield QuotaShortage(name, resource, needed, hard, _used(resource, used))


# ---- what pods need


def _needed(pod_sets: Iterable[ForeseenPodSet]) -> Counter[str]:
    """Add up what all pods are charged with."""
    needed: Counter[str] = Counter()
    for each in pod_sets:
        for resource, amount in _charged(each.pod.spec).items():
            needed[resource] += amount * each.count
    return needed


def _charged(spec: TemplateSpec) -> ByResource:
    """Return what a pod is charged with, by the names that quotas use."""
    overhead = read_amounts(spec.overhead, "spec.overhead")
    asked, most = Counter(pod_total(spec, Side.REQUESTS)), Counter(pod_total(spec, Side.LIMITS))
    asked.update(overhead)
    most.update({name: amount for name, amount in overhead.items() if most[name]})
    charged = {f"{_REQUESTS}{name}": amount for name, amount in asked.items()}
    charged |= {name: n for name, n in asked.items() if _is_native(name)}
    charged |= {f"{_LIMITS}{name}": n for name, n in most.items() if name in _NATIVE}
    return {**charged, PODS: 1, "count/pods": 1}


def _is_native(name: str) -> bool:
    return name in _NATIVE or name.startswith("hugepages-")


def _silent(pod_set: ForeseenPodSet, bounded: Iterable[str]) -> Iterator[str]:
    """Name a resource that the quota counts and a container says nothing about."""
    spec = pod_set.pod.spec
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        return
    for resource in sorted({*bounded} & {*_TO_BE_SAID}):
        for each, _field in all_containers(spec):
            if _base(resource) not in _said(each, resource):
                container = f"container {each.name} of {pod_set.name}"
                yield f"{container} must say {resource}, which the quota counts"


def _said(container: TemplateContainer, resource: str) -> Quantities:
    own = container.resources
    return own.limits if resource.startswith(_LIMITS) else own.requests


# ---- amounts of a quota


def _base(resource: str) -> str:
    return resource.removeprefix(_REQUESTS).removeprefix(_LIMITS)


def _hard(quota: ResourceQuota, resource: str) -> int | None:
    """Return the lower of the two bounds, while the status is behind; None where it is no bound."""
    written = (side.hard.get(resource) for side in (quota.spec, quota.status))
    read = [_bound(resource, text) for text in written if text is not None]
    return min((each for each in read if each is not None), default=None)


def _bound(resource: str, text: object) -> int | None:
    """Read a bound; one beyond 64 bits is none."""
    try:
        return allocatable_amount(_base(resource), str(text))
    except BadQuantity:
        return None


def _used(resource: str, text: object) -> int:
    """Read what is used; what cannot be read is more than any bound."""
    try:
        return request_amount(_base(resource), str(text))
    except BadQuantity:
        return MAX_AMOUNT


def shown(resource: str, amount: int) -> str:
    """Write an amount as a quota writes it."""
    return quantity(_base(resource), amount)


# ---- scopes


def _scoped(spec: TemplateSpec) -> Scoped:
    return Scoped(
        terminating=spec.active_deadline_seconds is not None,
        best_effort=_is_best_effort(spec),
        priority_class=spec.priority_class_name,
        crosses_namespaces=any(_crosses(term) for term in _terms(spec)),
    )


def _terms(spec: TemplateSpec) -> Iterator[TemplateAffinityTerm]:
    """Yield all that a pod says about other pods, wishes included."""
    affinity = spec.affinity or TemplateAffinity()
    for each in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if each is not None:
            yield from each.required
            yield from (wish.term for wish in each.preferred)


def _crosses(term: TemplateAffinityTerm) -> bool:
    """Say whether a term names namespaces, even that of the pod."""
    return bool(term.namespaces) or term.namespace_selector is not None


def _applies(quota: ResourceQuota, pod: Scoped | None) -> bool:
    """Say whether a quota counts such pods: all its scopes must hold; None: other objects."""
    selector = quota.spec.scope_selector
    if pod is None:
        return not quota.spec.scopes and selector is None
    named = (ScopeRequirement(scope, "Exists") for scope in quota.spec.scopes)
    return all(
        _holds(each, pod) for each in (*named, *(selector.match_expressions if selector else ()))
    )


def _holds(scope: ScopeRequirement, pod: Scoped) -> bool:
    if scope.scope_name == "PriorityClass":
        return _holds_of_class(scope, pod.priority_class)
    asked = {
        "Terminating": pod.terminating,
        "NotTerminating": not pod.terminating,
        "BestEffort": pod.best_effort,
        "NotBestEffort": not pod.best_effort,
        "CrossNamespacePodAffinity": pod.crosses_namespaces,
    }
    return asked.get(scope.scope_name, False)


def _holds_of_class(scope: ScopeRequirement, name: str) -> bool:
    match scope.operator:
        case "In":
            return bool(name) and name in scope.values
        case "NotIn":
            return name not in scope.values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
    return False


def _is_best_effort(spec: TemplateSpec) -> bool:
    """Say whether neither a container nor the pod says anything about CPU and memory."""
    said = (each.resources for each, _field in all_containers(spec))
    return not any(_says(each) for each in (*said, *((spec.resources,) if spec.resources else ())))


def _says(found: TemplateResources) -> bool:
    both = read_amounts(found.requests, "requests"), read_amounts(found.limits, "limits")
    return any(amounts.get(name) for amounts in both for name in (CPU, MEMORY))
