"""Makes the claims of devices that kube-controller-manager would make for foreseen pods."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from kube.codec.observed_pod import ObservedPod
from kube.devices.claim_quota import charges_of_claim
from kube.devices.device_index import DeviceIndex
from kube.foreseen.namespace_quota import bounds_of, counted
from kube.objects.admission import ResourceQuota
from scheduling.model.devices.resource_claim import ClaimSpec, Classes, ResourceClaim


class WithClaims(NamedTuple):
    """Pods whose claims were made, and these claims."""

    pods: tuple[ObservedPod, ...]
    claims: tuple[ResourceClaim, ...] = ()


def with_claims(pods: Iterable[ObservedPod], index: DeviceIndex) -> WithClaims:
    """Make the claims of each pod whose templates are there; others stay without."""
    found = [_with_claims(pod, index) for pod in pods]
    claims = (claim for each in found for claim in each.claims)
    return WithClaims(tuple(pod for each in found for pod in each.pods), tuple(claims))


def _with_claims(pod: ObservedPod, index: DeviceIndex) -> WithClaims:
    asked, made = [], []
    for each in pod.claims:
        template = index.templates.get((pod.namespace, each.template))
        if template is None:
            asked.append(each)
            continue
        name, uid = f"{pod.name}-{each.name}", f"{pod.uid}-{each.name}"
        asked.append(each._replace(claim=name))
        made.append(ResourceClaim(pod.namespace, name, uid, template.spec, owner=pod.uid))
    return WithClaims((replace(pod, claims=tuple(asked)) if made else pod,), tuple(made))


def over_quota(
    specs: Iterable[ClaimSpec], classes: Classes, quotas: Iterable[ResourceQuota]
) -> str:
    """Name the first quota without room for all of these claims; "" where there is none such."""
    charges: Counter[str] = Counter()
    for spec, count in Counter(specs).items():
        of_one = charges_of_claim(spec, classes)
        charges += Counter({name: amount * count for name, amount in of_one.items()})
    known = list(quotas)
    bounds = bounds_of(known)
    for (quota, resource), needed in sorted(counted({None: charges}, known).items()):
        bound = bounds.get((quota, resource))
        if bound is not None and bound.used + needed > bound.hard:
            left = f"{max(0, bound.hard - bound.used)} of {bound.hard} {resource} left"
            return f"ResourceQuota {quota} has {left}, and the claims of all pods need {needed}"
    return ""
