"""Lists the device claims still to be allocated for the pods of a gang and for its vacant slots."""

from collections.abc import Iterable, Iterator, Mapping

from kube.codec.devices.pod_claims import claims_to_come
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod, unallocated
from kube.devices.class_requests import claimed_on, to_be_claimed
from kube.devices.device_index import DeviceIndex
from reservation.slots import Slot
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

ByKind = Mapping[tuple[str, str], ObservedPod]
"""A pod by its pod set and shape."""


def claims_of(pod: ObservedPod, index: DeviceIndex, node: Node | None = None) -> Claims | None:
    """Return the claims still to be allocated for a pod on a node; None where one does not exist.

    Without a node the claims for extended resources are left out.
    """
    found = claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, index)
    if isinstance(found, ClaimNotReady):
        return None
    return (*unallocated(found), *to_be_claimed(pod, node, index))


def claims_of_slots(
    vacant: Mapping[Slot, int], alike: ByKind, index: DeviceIndex, nodes: Mapping[str, Node]
) -> Iterator[tuple[Slot, int, Claims | None]]:
    """Yield slots whose pods are to be allocated devices, and how many: they claim as `alike` do.

    None stands for claims that are not there.
    """
    for slot, count in vacant.items():
        pod = alike.get((slot.kind.pod_set, slot.kind.shape))
        if pod is not None and count > 0:
            yield slot, count, _of_another(pod, index, nodes.get(slot.node))


def by_kind(pods: Iterable[ObservedPod], index: DeviceIndex) -> ByKind:
    """Return one pod that may claim devices of each pod set and shape: it tells for its kind."""
    return {_kind(pod): pod for pod in pods if pod.claims or index.gives_any(pod.extended)}


def _of_another(pod: ObservedPod, index: DeviceIndex, node: Node | None) -> Claims | None:
    """Return what another pod like this one is to be allocated: its own claims, and shared ones."""
    asked = claims_to_come(pod.claims)
    found = claims_of_pod(pod.namespace, pod.name, pod.uid, asked, index)
    if isinstance(found, ClaimNotReady):
        return None
    meant = (each for each in asked if each.meant)
    own = tuple(
        claim.spec
        for each, claim in zip(meant, found, strict=True)
        if each.template or claim.allocation is None
    )
    return (*own, *claimed_on(pod, node, index))


def _kind(pod: ObservedPod) -> tuple[str, str]:
    member = pod.member
    return (member.pod_set, member.shape.key) if member and member.shape else ("", "")
