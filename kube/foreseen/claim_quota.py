"""Says which ResourceQuota has no room for claims that Kubernetes is to make for pods."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kube.devices.claim_quota import charges_of_claim
from kube.foreseen.namespace_quota import bounds_of, counted
from kube.objects.admission import ResourceQuota
from scheduling.model.devices.resource_claim import ClaimSpec, Classes

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})

ONE_CLAIM, ALL_CLAIMS = "the claim needs", "the claims of all pods need"


def claims_over_quota(
    specs: Iterable[ClaimSpec], classes: Classes, quotas: Collection[ResourceQuota], who: str
) -> str:
    """Name the first quota without room for all of these claims; "" where there is none such.

    `who` begins what is said of them: ONE_CLAIM or ALL_CLAIMS.
    """
    if not quotas:
        return ""
    charges: Counter[str] = Counter()
    for spec, count in Counter(specs).items():
        of_one = charges_of_claim(spec, classes)
        charges += Counter({name: amount * count for name, amount in of_one.items()})
    return charges_over_quota(charges, quotas, who)


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
