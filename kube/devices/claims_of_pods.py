"""Finds the claims of a pod, or says why kube-scheduler does not look at the pod yet.

kube-controller-manager makes claims from templates for gated pods as well; until it has, the gang
is not gathered.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kube.codec.devices.pod_claims import MOST_CLAIMS, PodClaim, claims_to_come
from kube.codec.fields import shortened
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_index import MOST_TEMPLATES, DeviceIndex
from scheduling.model.devices.resource_claim import ClaimSpec, ResourceClaim


@dataclass(frozen=True, slots=True)
class ClaimNotReady:
    """Why a pod waits for a claim; `permanent` where the pod itself would have to be another."""

    message: str
    permanent: bool = False


PodClaims = tuple[ResourceClaim, ...] | ClaimNotReady
"""The claims of a pod in the order in which devices are allocated for them, or what is missing."""


def claims_of_pod(
    namespace: str, pod: str, uid: str, asked: tuple[PodClaim, ...], index: DeviceIndex
) -> PodClaims:
    """Return the claims of a pod; the first that is not ready says why."""
    if len(asked) > MOST_CLAIMS:
        return ClaimNotReady(f"pod {pod} has more than {MOST_CLAIMS} claims", permanent=True)
    found: list[ResourceClaim] = []
    for each in asked:
        if not each.meant:
            continue
        claim = _claim(namespace, uid, each, index)
        if isinstance(claim, ClaimNotReady):
            message = f"pod {pod}, claim {shortened(each.name)}: {claim.message}"
            return ClaimNotReady(message, claim.permanent)
        found.append(claim)
    return tuple(found)


def with_names(pod: ObservedPod, index: DeviceIndex) -> list[tuple[PodClaim, ResourceClaim]]:
    """Return the claims of a pod by how it names them, also those that are yet to be made.

    There are none where one of them is not there.
    """
    asked = claims_to_come(pod.claims)
    found = claims_of_pod(pod.namespace, pod.name, pod.uid, asked, index)
    meant = [each for each in asked if each.meant]
    return [] if isinstance(found, ClaimNotReady) else list(zip(meant, found, strict=True))


def unallocated(claims: Iterable[ResourceClaim]) -> tuple[ClaimSpec, ...]:
    """Return what is still to be allocated, in the order in which that is done."""
    return tuple(each.spec for each in claims if each.allocation is None)


def _claim(
    namespace: str, uid: str, asked: PodClaim, index: DeviceIndex
) -> ResourceClaim | ClaimNotReady:
    if not asked.claim:
        template = index.templates.get((namespace, asked.template)) if asked.to_come else None
        made = f"{uid}/{asked.name}"  # in no name of an object
        if template is not None:
            return ResourceClaim(namespace, made, made, template.spec, owner=uid)
        return _not_made(namespace, asked, index)
    name = shortened(asked.claim)
    claim = index.claims.get((namespace, asked.claim))
    if claim is None:
        return ClaimNotReady(f"ResourceClaim {name} does not exist")
    if claim.deleted:
        return ClaimNotReady(f"ResourceClaim {name} is being deleted")
    if asked.template and claim.owner != uid:
        return ClaimNotReady(f"ResourceClaim {name} was not made for this pod")
    return claim


def _not_made(namespace: str, asked: PodClaim, index: DeviceIndex) -> ClaimNotReady:
    if not asked.template:
        said = "it names neither a ResourceClaim nor a ResourceClaimTemplate"
        return ClaimNotReady(said, permanent=True)
    template = shortened(asked.template)
    if (namespace, asked.template) in index.templates:
        said = (
            f"its ResourceClaim is not made yet from ResourceClaimTemplate {template} "
            "(see Events FailedResourceClaimCreation of the pod)"
        )
    elif index.has_all_templates(namespace):
        said = f"ResourceClaimTemplate {template} does not exist"
    else:
        said = (
            f"ResourceClaimTemplate {template} does not exist, or is one of more than "
            f"{MOST_TEMPLATES} in the namespace (delete those not in use)"
        )
    return ClaimNotReady(said)
