"""Finds the device claims of waiting pods, and adds them to the shapes of these pods.

A pod whose claims do not exist yet counts as not created. A shape gets the claims to be allocated
after the pod's release, and the nodes that reach the devices allocated before.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.cluster.devices import Devices
from coordinator.gang.claims.class_quota import without_room
from coordinator.gang.claims.shared import cannot_be_shared, shared_by
from coordinator.gang.demand import NotReady
from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, PodClaims, claims_of_pod, unallocated
from kube.devices.class_requests import class_requests
from kube.foreseen.claim_quota import claim_over_quota
from kube.objects.admission import ResourceQuota
from scheduling.model.constraints import NodeTerm
from scheduling.model.devices.class_requests import ClassRequests, class_claims
from scheduling.model.devices.features import Features
from scheduling.model.devices.resource_claim import ResourceClaim
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import with_claims
from scheduling.model.shape.restrictions import Claims
from scheduling.model.verdict import Reason
from scheduling.state.node_snapshot import NodeAttributes

Given = Mapping[str, str]
"""Resources that some nodes give by devices, and the class of each."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides beside devices: the nodes, the quotas of the namespace.

    `charges_coming` says what these are still to count of pods that have a node.
    """

    nodes: NodeAttributes
    quotas: Collection[ResourceQuota] = ()
    charges_coming: Callable[[], Counter[str]] = Counter


@dataclass(frozen=True, slots=True)
class Claimed:
    """A gang whose pods that wait have their claims; `hindrance` says why others are left out."""

    standing: Standing
    hindrance: NotReady | None = None


def claimed(standing: Standing, devices: Devices, surroundings: Surroundings) -> Claimed:
    """Give the pods that wait their claims, and leave those out whose claims are not ready."""
    given = {} if devices.unsupported else devices.given_on(surroundings.nodes)
    waiting = [pod for each in standing for pod in each.waiting]
    asking = [pod for pod in waiting if pod.claims or _is_given(pod, given)]
    if not asking:
        return Claimed(standing)
    unknown = _not_known(devices)
    found, hindrance = (
        _judged(standing, asking, given, devices, surroundings)
        if unknown is None
        else ({pod.uid: ClaimNotReady(unknown.message) for pod in asking}, unknown)
    )
    return Claimed(tuple(_with_claims(each, found, given, devices) for each in standing), hindrance)


def _judged(
    standing: Standing,
    asking: Sequence[ObservedPod],
    given: Given,
    devices: Devices,
    surroundings: Surroundings,
) -> tuple[Mapping[str, PodClaims], NotReady | None]:
    """Return the claims of pods by uid, or why they have none, and what is said of the gang."""
    found = {pod.uid: _claims(pod, devices) for pod in asking}
    by_class = {pod.uid for pod in asking if _is_given(pod, given)}
    short = _over_quota(standing, asking, given, devices, surroundings)
    hindrance = (
        _first_not_ready(asking, found, devices, surroundings.quotas)
        or _cannot_be_used(asking, found, devices)
        or cannot_be_shared(standing, found, by_class, devices)
        or _several_kinds(standing, found, given, devices)
        or _listed_beside_claims(asking, surroundings.nodes, devices)
        or _not_ready([(pod, short[pod.uid]) for pod in asking if pod.uid in short])
    )
    return {**found, **short}, hindrance


def _is_given(pod: ObservedPod, given: Given) -> bool:
    return bool(given) and any(each.resource in given for each in pod.extended)


def _claims(pod: ObservedPod, devices: Devices) -> PodClaims:
    return claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, devices.index)


def _with_claims(
    each: PodSetStanding, found: Mapping[str, PodClaims], given: Given, devices: Devices
) -> PodSetStanding:
    if not any(pod.uid in found for pod in each.waiting):
        return each
    ready = (pod for pod in each.waiting if not isinstance(found.get(pod.uid), ClaimNotReady))
    pods = tuple(_given(pod, found.get(pod.uid, ()), given, devices) for pod in ready)
    return replace(each, waiting=pods)


def _given(pod: ObservedPod, claims: PodClaims, given: Given, devices: Devices) -> ObservedPod:
    by_class = class_requests(pod.extended, given) if given else ()
    if isinstance(claims, ClaimNotReady) or pod.member is None or not (claims or by_class):
        return pod
    shape = pod.member.shape
    if shape is None:
        return pod
    reached, shared = tuple(_reached_from(claims)), shared_by(claims, devices)
    return _in_shape(pod, with_claims(shape, unallocated(claims), reached, shared, by_class))


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
    refusal = _not_ready(missing)
    if refusal is None or refusal.reason is Reason.MISCONFIGURED:
        return refusal
    lacks = _lacks_quota(missing[0][0], devices, quotas)
    return replace(refusal, message=f"{refusal.message}; {lacks}") if lacks else refusal


def _not_ready(missing: Sequence[tuple[ObservedPod, ClaimNotReady]]) -> NotReady | None:
    if not missing:
        return None
    _, first = min(missing, key=lambda each: not each[1].permanent)
    more = len(missing) - 1
    others = f" (and {more} more {'pod' if more == 1 else 'pods'})" if more else ""
    reason = Reason.MISCONFIGURED if first.permanent else Reason.GANG_INCOMPLETE
    return NotReady(reason, f"{first.message}{others}")


def _over_quota(
    standing: Standing,
    asking: Iterable[ObservedPod],
    given: Given,
    devices: Devices,
    surroundings: Surroundings,
) -> Mapping[str, ClaimNotReady]:
    """Find the pods for whose extended resources kube-scheduler could make no claim."""
    if not (given and surroundings.quotas):
        return {}
    claims = {pod.uid: _by_class(pod, given) for pod in asking}
    before = surroundings.charges_coming()
    return without_room(standing, claims, devices.index, surroundings.quotas, before)


def _by_class(pod: ObservedPod, given: Given) -> Claims:
    asked = class_requests(pod.extended, given)
    return class_claims(asked, frozenset(each.resource for each in asked))


def _listed_beside_claims(
    asking: Iterable[ObservedPod], nodes: NodeAttributes, devices: Devices
) -> NotReady | None:
    """Name what pods with claims ask for that a class gives and a node lists.

    kube-scheduler makes an empty claim there, whose write it then gives up: the pod is never bound
    (patchPodExtendedResourceClaimStatus of plugin DynamicResources, Kubernetes 1.36 and 1.37).
    """
    classes = devices.index.classes_of_resources
    asked = {tuple(each.resource for each in pod.extended) for pod in asking if pod.claims}
    for names in ([n for n in each if n in classes] for each in asked):
        if names and any(all(map(node.allocatable.get, names)) for node in nodes.nodes):
            said = (
                f"not supported by Muster; pods with resourceClaims that ask for {names[0]}: a "
                "DeviceClass gives it and some nodes list it, where kube-scheduler cannot bind "
                "such pods (ask for it by claim)"
            )
            return NotReady(Reason.UNSUPPORTED, said)
    return None


def _lacks_quota(pod: ObservedPod, devices: Devices, quotas: Collection[ResourceQuota]) -> str:
    """Say why the first claim of a pod that is not made is refused, if a ResourceQuota does."""
    unmade = next((each for each in pod.claims if each.template and not each.claim), None)
    if unmade is None:
        return ""
    template = devices.index.templates.get((pod.namespace, unmade.template))
    if template is None:
        return ""
    return claim_over_quota(template.spec, devices.index.classes, quotas)


def _cannot_be_used(
    asking: Iterable[ObservedPod], found: Mapping[str, PodClaims], devices: Devices
) -> NotReady | None:
    """Name a claim that was allocated, and that it is not known of whether one more pod gets it."""
    for pod in asking:
        claims = found[pod.uid]
        for each in () if isinstance(claims, ClaimNotReady) else claims:
            why = _why_not_used(pod, each, devices.index.features)
            if why:
                said = f"not supported by Muster; ResourceClaim {each.name} was {why}"
                return NotReady(Reason.UNSUPPORTED, said)
    return None


def _why_not_used(pod: ObservedPod, claim: ResourceClaim, features: Features) -> str:
    given = claim.allocation
    if given is None:
        return ""
    if given.unsupported:
        return f"given devices with {', '.join(given.unsupported)} (claim other devices)"
    if not features.dates_allocations or given.is_dated or pod.uid in claim.reserved_for:
        return ""
    return (
        "allocated by a kube-scheduler before 1.36, and later ones add no pod to it (make it anew)"
    )


def _several_kinds(
    standing: Standing, found: Mapping[str, PodClaims], given: Given, devices: Devices
) -> NotReady | None:
    """Name a group whose pods are equal and claim different things: slots do not tell them apart.

    A template that was made anew gives the later pods other claims.
    """
    first: dict[tuple[str, str, str], tuple[Claims, tuple[str, ...], ClassRequests]] = {}
    for pod in (pod for each in standing for pod in each.waiting):
        claims, member = found.get(pod.uid, ()), pod.member
        if isinstance(claims, ClaimNotReady) or member is None or member.shape is None:
            continue
        kind = member.pod_set, member.replica, member.shape.key
        by_class = class_requests(pod.extended, given) if given else ()
        claimed = unallocated(claims), shared_by(claims, devices), by_class
        if first.setdefault(kind, claimed) != claimed:
            said = (
                f"not supported by Muster; the pods of group {member.pod_set} have claims with "
                "different specs: its ResourceClaimTemplate was made anew (delete these pods)"
            )
            return NotReady(Reason.UNSUPPORTED, said)
    return None
