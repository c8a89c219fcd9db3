"""Says which ResourceQuota has no room for a claim that kube-controller-manager is to make."""

from collections.abc import Collection, Mapping

from kube.devices.claim_quota import charges_of_claim
from kube.foreseen.namespace_quota import bounds_of, counted
from kube.objects.admission import ResourceQuota
from scheduling.model.devices.resource_claim import Classes, ResourceClaimTemplate


def lacks_quota(
    template: ResourceClaimTemplate | None, classes: Classes, quotas: Collection[ResourceQuota]
) -> str:
    """Name the first quota without room for one claim more; "" where there is none such."""
    if template is None or not quotas:
        return ""
    charges: Mapping[str, int] = charges_of_claim(template.spec, classes)
    bounds = bounds_of(quotas)
    for (quota, resource), needed in sorted(counted({None: charges}, quotas).items()):
        bound = bounds.get((quota, resource))
        if bound is not None and bound.used + needed > bound.hard:
            left = f"{max(0, bound.hard - bound.used)} of {bound.hard} {resource} left"
            return f"ResourceQuota {quota} has {left}, and the claim needs {needed}"
    return ""
