"""Finds waiting pods whose claims, once kube-scheduler makes them, would exceed a ResourceQuota.

kube-scheduler makes a claim where a pod asks for extended resources and its node offers them as
devices. It does so only after the pod's release: if the quota refused the claim then, the pod would
wait on its node for ever. The quota charges the claim beside the pod; amounts that it already
counted for the pod are not counted twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from coordinator.gang.pods.pod_sets import Standing
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from kube.devices.claim_quota import REQUESTS, charges_of_claim
from kube.devices.claims_of_pods import ClaimNotReady
from kube.devices.class_requests import claimed_on, to_be_claimed
from kube.devices.device_index import DeviceIndex
from kube.foreseen.claim_quota import charges_over_quota
from kube.objects.admission import ResourceQuota
from reservation.claims import by_kind
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from scheduling.model.shape.restrictions import Claims

WHO = "the claim that kube-scheduler makes for its extended resources needs"


def without_room(
    standing: Standing,
    claims: Mapping[str, Claims],
    index: DeviceIndex,
    quotas: Collection[ResourceQuota],
    before: Counter[str],
) -> Mapping[str, ClaimNotReady]:
    """Return the pods that wait for whose claims (by uid) there is no room, the minimum first.

    `before` is what the quotas are still to count of pods on their way.
    """
    charged, found = +before, dict[str, ClaimNotReady]()
    for pod in _in_order(standing) if quotas else ():
        charges = _charges(pod, claims.get(pod.uid, ()), index)
        lacks = charges_over_quota(charges, quotas, WHO, charged)
        if lacks:
            found[pod.uid] = ClaimNotReady(f"pod {pod.name}: {lacks}")
        else:
            charged += charges
    return found


def _in_order(standing: Standing) -> Iterator[ObservedPod]:
    """Yield the pods that wait: those that the minimum lacks before the others."""
    for each in standing:
        yield from each.waiting[: each.missing]
    for each in standing:
        yield from each.waiting[each.missing :]


def charges_coming(
    views: Iterable[tuple[GangKey, GangView]],
    namespace: str,
    index: DeviceIndex,
    nodes: Mapping[str, Node],
) -> Counter[str]:
    """Return what quotas of a namespace are still to count of pods that have a node."""
    found: Counter[str] = Counter()
    for key, view in views:
        if key.namespace == namespace:
            for pod, node in _on_their_way(view):
                found += _charges(pod, to_be_claimed(pod, nodes.get(node), index), index)
    return found


def charges_of_placement(
    standing: Standing, placement: Placement, index: DeviceIndex, nodes: Mapping[str, Node]
) -> Counter[str]:
    """Return what quotas will count of pods that wait, once they are released to these nodes."""
    alike = by_kind((pod for each in standing for pod in each.waiting), index)
    found: Counter[str] = Counter()
    for each in placement.assignments:
        pod = alike.get((each.pod_set, each.shape))
        if pod is None:
            continue
        for name, count in each.nodes:
            charges = _charges(pod, claimed_on(pod, nodes.get(name), index), index)
            found += Counter({key: amount * count for key, amount in charges.items()})
    return found


def _on_their_way(view: GangView) -> Iterator[tuple[ObservedPod, str]]:
    for each in view.survey.standing:
        yield from each.with_slot
        yield from ((pod, pod.settled_on) for pod in each.settled)


def _charges(pod: ObservedPod, claims: Claims, index: DeviceIndex) -> Counter[str]:
    of_pod = {f"{REQUESTS}{name}": amount for name, amount in pod.used}
    found: Counter[str] = Counter()
    for each in claims:
        found += charges_of_claim(each, index.classes, of_pod)
    return found
