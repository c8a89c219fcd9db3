"""Finds the ResourceQuota that has no room for the claims that Kubernetes will make for pods."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from kube.devices.claim_quota import charges_of_claim
from kube.devices.device_index import DeviceIndex
from kube.foreseen.gang import Foreseen
from kube.foreseen.namespace_quota import bounds_of, counted
from kube.objects.admission import ResourceQuota
from scheduling.model.devices.resource_claim import ClaimSpec, Classes

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


def with_claims(found: Foreseen, namespace: str, index: DeviceIndex) -> Foreseen:
    """Return a gang with the claims of its pods among the objects that quotas count."""
    charges: Counter[str] = Counter()
    for each in found.pod_sets:
        for claim in each.pod.spec.resource_claims:
            template = index.templates.get((namespace, claim.resource_claim_template_name or ""))
            of_one = charges_of_claim(template.spec, index.classes) if template else Counter()
            charges += Counter({name: amount * each.count for name, amount in of_one.items()})
    return replace(found, objects=(*found.objects, *charges.items())) if charges else found


def claim_over_quota(spec: ClaimSpec, classes: Classes, quotas: Collection[ResourceQuota]) -> str:
    """Name the first quota without room for one more such claim; "" where there is none such."""
    return charges_over_quota(charges_of_claim(spec, classes), quotas, "the claim needs")


def charges_over_quota(
    charges: Mapping[str, int],
    quotas: Collection[ResourceQuota],
    who: str,
    before: Mapping[str, int] = _NOTHING,
) -> str:
    """Name the first quota without room for these charges, once those of `before` are counted."""
    bounds, earlier = bounds_of(quotas), counted({None: before}, quotas)
    for (quota, resource), needed in sorted(counted({None: charges}, quotas).items()):
        bound = bounds.get((quota, resource))
        used = bound.used + earlier[quota, resource] if bound is not None else 0
        if bound is not None and used + needed > bound.hard:
            left = f"{max(0, bound.hard - used)} of {bound.hard} {resource} left"
            return f"ResourceQuota {quota} has {left}, and {who} {needed}"
    return ""
