"""Finds the claims of devices of pods that wait, and gives them to their shapes.

A pod whose claims are not there yet is as good as not created. What is given to a shape is what is
to be allocated once the pod is released, and the nodes that reach what was allocated before.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from coordinator.cluster.devices import Devices
from coordinator.gang.claims.shared import cannot_be_shared, shared_by
from coordinator.gang.demand import NotReady
from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, PodClaims, claims_of_pod, unallocated
from kube.foreseen.claim_quota import ONE_CLAIM, claims_over_quota
from kube.objects.admission import ResourceQuota
from scheduling.model.constraints import NodeTerm
from scheduling.model.devices.resource_claim import ClaimSpec, ResourceClaim
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import with_claims
from scheduling.model.verdict import Reason


@dataclass(frozen=True, slots=True)
class Claimed:
    """A gang whose pods that wait have their claims; `hindrance` says why others are left out."""

    standing: Standing
    hindrance: NotReady | None = None


def claimed(
    standing: Standing, devices: Devices, quotas: Collection[ResourceQuota] = ()
) -> Claimed:
    """Give the pods that wait their claims, and leave those out whose claims are not ready."""
    asking = [pod for each in standing for pod in each.waiting if pod.claims]
    if not asking:
        return Claimed(standing)
    unknown = _not_known(devices)
    if unknown is not None:
        none = dict.fromkeys((pod.uid for pod in asking), ClaimNotReady(unknown.message))
        return Claimed(tuple(_with_claims(each, none, devices) for each in standing), unknown)
    found = {pod.uid: _claims(pod, devices) for pod in asking}
    hindrance = (
        _first_not_ready(asking, found, devices, quotas)
        or _cannot_be_joined(asking, found)
        or cannot_be_shared(standing, found, devices)
        or _several_kinds(standing, found, devices)
    )
    return Claimed(tuple(_with_claims(each, found, devices) for each in standing), hindrance)


def _claims(pod: ObservedPod, devices: Devices) -> PodClaims:
    return claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, devices.index)


def _with_claims(
    each: PodSetStanding, found: Mapping[str, PodClaims], devices: Devices
) -> PodSetStanding:
    if not any(pod.uid in found for pod in each.waiting):
        return each
    ready = (pod for pod in each.waiting if not isinstance(found.get(pod.uid), ClaimNotReady))
    given = tuple(_given(pod, found.get(pod.uid, ()), devices) for pod in ready)
    return replace(each, waiting=given)


def _given(pod: ObservedPod, claims: PodClaims, devices: Devices) -> ObservedPod:
    if not claims or isinstance(claims, ClaimNotReady) or pod.member is None:
        return pod
    shape = pod.member.shape
    if shape is None:
        return pod
    shared = shared_by(claims, devices)
    return _in_shape(
        pod, with_claims(shape, unallocated(claims), tuple(_reached_from(claims)), shared)
    )


def _in_shape(pod: ObservedPod, shape: PodShape) -> ObservedPod:
    assert pod.member is not None
    return replace(pod, member=replace(pod.member, shape=shape))


def _reached_from(claims: Iterable[ResourceClaim]) -> Iterable[tuple[str, tuple[NodeTerm, ...]]]:
    """Yield the nodes that reach what claims were given, where not all do."""
    for each in claims:
        if each.allocation is not None and each.allocation.nodes is not None:
            yield each.name, each.allocation.nodes


# ---- why a gang waits for its claims


def _not_known(devices: Devices) -> NotReady | None:
    if devices.unsupported:
        return NotReady(Reason.UNSUPPORTED, f"not supported by Muster; {devices.unsupported}")
    if devices.unseen:
        return NotReady(Reason.GANG_INCOMPLETE, f"not all is read yet: {devices.unseen}")
    return None


def _first_not_ready(
    asking: Iterable[ObservedPod],
    found: Mapping[str, PodClaims],
    devices: Devices,
    quotas: Collection[ResourceQuota],
) -> NotReady | None:
    """Name the first claim that is not ready, those before the rest that never will be."""
    missing = [(pod, each) for pod in asking if isinstance(each := found[pod.uid], ClaimNotReady)]
    if not missing:
        return None
    pod, first = min(missing, key=lambda each: not each[1].permanent)
    more = len(missing) - 1
    others = f" (and {more} more {'pod' if more == 1 else 'pods'})" if more else ""
    if first.permanent:
        return NotReady(Reason.MISCONFIGURED, f"{first.message}{others}")
    lacks = _lacks_quota(pod, devices, quotas)
    refused = f"; {lacks}" if lacks else ""
    return NotReady(Reason.GANG_INCOMPLETE, f"{first.message}{others}{refused}")


def _lacks_quota(pod: ObservedPod, devices: Devices, quotas: Collection[ResourceQuota]) -> str:
    """Say why the first claim of a pod that is not made is refused, if a ResourceQuota does."""
    unmade = next((each for each in pod.claims if each.template and not each.claim), None)
    if unmade is None:
        return ""
    template = devices.index.templates.get((pod.namespace, unmade.template))
    specs = [template.spec] if template is not None else []
    return claims_over_quota(specs, devices.index.classes, quotas, ONE_CLAIM)


def _cannot_be_joined(
    asking: Iterable[ObservedPod], found: Mapping[str, PodClaims]
) -> NotReady | None:
    """Name a claim that kube-scheduler cannot reserve for one more pod."""
    for pod in asking:
        claims = found[pod.uid]
        for each in () if isinstance(claims, ClaimNotReady) else claims:
            given = each.allocation
            if given is not None and not given.is_dated and pod.uid not in each.reserved_for:
                said = (
                    f"not supported by Muster; ResourceClaim {each.name} was allocated by a "
                    "kube-scheduler before 1.36, and later ones add no pod to it (make it anew)"
                )
                return NotReady(Reason.UNSUPPORTED, said)
    return None


def _several_kinds(
    standing: Standing, found: Mapping[str, PodClaims], devices: Devices
) -> NotReady | None:
    """Name a group whose pods are equal and claim different things: slots do not tell them apart.

    A template that was made anew gives the later pods other claims.
    """
    first: dict[tuple[str, str, str], tuple[tuple[ClaimSpec, ...], tuple[str, ...]]] = {}
    for pod in (pod for each in standing for pod in each.waiting):
        claims, member = found.get(pod.uid, ()), pod.member
        if isinstance(claims, ClaimNotReady) or member is None or member.shape is None:
            continue
        kind = member.pod_set, member.replica, member.shape.key
        claimed = unallocated(claims), shared_by(claims, devices)
        if first.setdefault(kind, claimed) != claimed:
            said = (
                f"not supported by Muster; the pods of group {member.pod_set} have claims with "
                "different specs: its ResourceClaimTemplate was made anew (delete these pods)"
            )
            return NotReady(Reason.UNSUPPORTED, said)
    return None
