"""Makes the claims of devices that kube-controller-manager would make for foreseen pods."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from kube.codec.observed_pod import ObservedPod
from kube.devices.device_index import DeviceIndex
from scheduling.model.devices.resource_claim import ResourceClaim


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
