"""Checks the claims that pods of a gang share, and holds pods back until such a claim is allocated.

kube-scheduler allocates the devices for the first pod that it takes, and all other pods use the
same ones. So one pod is released first, and the rest once the claim shows its devices.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping

from coordinator.cluster.devices import Devices
from coordinator.gang.demand import NotReady
from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, PodClaims
from scheduling.model.devices.resource_claim import ResourceClaim
from scheduling.model.verdict import Reason

MOST_CONSUMERS = 256
"""Pods that one claim may be reserved for: kube-scheduler does not count them, and the API server
refuses the next one when it is to be bound."""

Key = tuple[str, str]


def shared_by(claims: Iterable[ResourceClaim], devices: Devices) -> tuple[str, ...]:
    """Name the claims that are not allocated and that other pods use as well."""
    unallocated = (each for each in claims if each.allocation is None)
    return tuple(each.name for each in unallocated if devices.users(each) > 1)


def cannot_be_shared(
    standing: Standing,
    found: Mapping[str, PodClaims],
    given: Container[str],
    devices: Devices,
) -> NotReady | None:
    """Name a claim that too many pods use, or that pods share in a way that is not foreseen.

    `given` are the pods by uid that some nodes give devices for extended resources as well.
    """
    known = {uid: each for uid, each in found.items() if not isinstance(each, ClaimNotReady)}
    waiting = Counter(each.key for claims in known.values() for each in claims)
    blocked = Counter(key for each in standing for pod in each.blocked for key in _named(pod))
    ahead = {key for each in standing for pod in _ahead(each) for key in _named(pod)}
    for uid, claims in known.items():
        shared = [each for each in claims if each.allocation is None and devices.users(each) > 1]
        for each in claims:
            users = devices.users(each)
            if users > MOST_CONSUMERS:
                said = f"{users} pods use ResourceClaim {each.name}; allowed: {MOST_CONSUMERS}"
                return NotReady(Reason.MISCONFIGURED, said)
            if each not in shared:
                continue
            if each.key in ahead:
                said = f"ResourceClaim {each.name} is not allocated yet; pods that share it wait"
                return NotReady(Reason.GANG_INCOMPLETE, said)
            if users > waiting[each.key] + blocked[each.key]:
                return _not_supported(each, users, "not by pods of this gang alone")
        if shared and (uid in given or not _are_all_shared(claims, shared, waiting)):
            why = "some of these pods claim more than they share"
            return _not_supported(shared[0], devices.users(shared[0]), why)
    return None


def _are_all_shared(
    claims: Iterable[ResourceClaim], shared: list[ResourceClaim], waiting: Mapping[Key, int]
) -> bool:
    """Say whether a pod shares all that is to be allocated for it, with the same pods."""
    unallocated = [each for each in claims if each.allocation is None]
    return unallocated == shared and len({waiting[each.key] for each in shared}) == 1


def _not_supported(claim: ResourceClaim, users: int, why: str) -> NotReady:
    said = f"{users} pods use ResourceClaim {claim.name}, which is not allocated yet, {why}"
    remedy = "give each pod its own by a template"
    return NotReady(Reason.UNSUPPORTED, f"not supported by Muster; {said} ({remedy})")


def _ahead(each: PodSetStanding) -> Iterable[ObservedPod]:
    """Yield pods that were released, or are to be."""
    return (*each.settled, *each.unpinned, *(pod for pod, _ in each.with_slot))


def _named(pod: ObservedPod) -> Iterable[Key]:
    return ((pod.namespace, each.claim) for each in pod.claims if each.claim)


# ---- the order of release


def late_sharers(standing: Standing, sent: Collection[str], devices: Devices) -> frozenset[str]:
    """Return the pods with a slot that wait until a claim shows what another was given."""
    if not any(pod.claims for each in standing for pod, _ in each.with_slot):
        return frozenset()
    begun = {
        key
        for each in standing
        for pod in _ahead(each)
        if pod.uid in sent or not pod.gated
        for key in _named(pod)
    }
    late = set()
    for pod in (pod for each in standing for pod, _ in each.free if pod.uid not in each.early):
        keys = {key for key in _named(pod) if pod.uid not in sent and _is_open(key, devices)}
        if keys & begun:
            late.add(pod.uid)
        begun |= keys
    return frozenset(late)


def _is_open(key: Key, devices: Devices) -> bool:
    claim = devices.index.claims.get(key)
    return claim is not None and claim.allocation is None
