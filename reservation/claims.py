"""Says which devices are still to be allocated for the pods of a gang, and for its vacant slots."""

from collections.abc import Iterable, Iterator, Mapping

from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod, unallocated
from kube.devices.device_index import DeviceIndex
from reservation.slots import Slot
from scheduling.model.shape.restrictions import Claims


def claims_of(pod: ObservedPod, index: DeviceIndex) -> Claims | None:
    """Return what a pod is still to be allocated; None where a claim of it is not there."""
    found = claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, index)
    return None if isinstance(found, ClaimNotReady) else unallocated(found)


def claims_of_slots(
    vacant: Mapping[Slot, int], pods: Iterable[ObservedPod], index: DeviceIndex
) -> Iterator[tuple[Slot, int, Claims | None]]:
    """Yield slots whose pods are to be allocated devices, and how many: these are like `pods`.

    Of a pod set and shape one pod tells for all. None stands for claims that are not there.
    """
    alike = by_kind(pods)
    for slot, count in vacant.items():
        pod = alike.get((slot.kind.pod_set, slot.kind.shape))
        if pod is not None and count > 0:
            yield slot, count, _of_another(pod, index)


def by_kind(pods: Iterable[ObservedPod]) -> Mapping[tuple[str, str], ObservedPod]:
    """Return one pod with claims of each pod set and shape: it tells for others of its kind."""
    return {_kind(pod): pod for pod in pods if pod.claims}


def _of_another(pod: ObservedPod, index: DeviceIndex) -> Claims | None:
    """Return what another pod like this one is to be allocated: its own claims, and shared ones."""
    found = claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, index)
    if isinstance(found, ClaimNotReady):
        return None
    meant = (each for each in pod.claims if each.meant)
    return tuple(
        claim.spec
        for asked, claim in zip(meant, found, strict=True)
        if asked.template or claim.allocation is None
    )


def _kind(pod: ObservedPod) -> tuple[str, str]:
    member = pod.member
    return (member.pod_set, member.shape.key) if member and member.shape else ("", "")
