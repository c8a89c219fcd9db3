"""Says which ResourceQuota has no room for claims that kube-controller-manager is to make."""

from collections import Counter
from collections.abc import Collection, Iterable

from kube.devices.claim_quota import charges_of_claim
from kube.foreseen.namespace_quota import bounds_of, counted
from kube.objects.admission import ResourceQuota
from scheduling.model.devices.resource_claim import ClaimSpec, Classes

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
    bounds = bounds_of(quotas)
    for (quota, resource), needed in sorted(counted({None: charges}, quotas).items()):
        bound = bounds.get((quota, resource))
        if bound is not None and bound.used + needed > bound.hard:
            left = f"{max(0, bound.hard - bound.used)} of {bound.hard} {resource} left"
            return f"ResourceQuota {quota} has {left}, and {who} {needed}"
    return ""
