"""Builds the claim that kube-scheduler makes for extended resources that DeviceClasses provide.

kube-scheduler makes one claim for all of them, once it has chosen the pod's node: until then no
object tells of it.
"""

from collections.abc import Iterable, Mapping

from kube.codec.devices.extended_requests import ExtendedRequest
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_index import DeviceIndex
from scheduling.model.devices.class_requests import ClassRequest, ClassRequests, class_claims
from scheduling.model.devices.resource_claim import DeviceRequest, Request
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims


def class_requests(asked: Iterable[ExtendedRequest], classes: Mapping[str, str]) -> ClassRequests:
    """Return the requests of the claim for a pod; `classes` give resources, by their names."""
    return tuple(
        ClassRequest(
            each.resource,
            Request(each.name, DeviceRequest(each.name, classes[each.resource], count=each.number)),
        )
        for each in asked
        if each.resource in classes
    )


def to_be_claimed(pod: ObservedPod, node: Node | None, index: DeviceIndex) -> Claims:
    """Return the claim that kube-scheduler is still to make for a pod on a node.

    A pod that is bound names its claim: without one it was given nothing by devices.
    """
    is_given_none = bool(pod.node) and not pod.extended_claim
    if not pod.extended or is_given_none or _is_claimed(pod, index):
        return ()
    return claimed_on(pod, node, index)


def claimed_on(pod: ObservedPod, node: Node | None, index: DeviceIndex) -> Claims:
    """Return the claim that kube-scheduler makes for a pod like this one on a node."""
    asked = class_requests(pod.extended, index.classes_of_resources) if pod.extended else ()
    if node is None or not asked:
        return ()
    names = (each.resource for each in asked)
    return class_claims(asked, frozenset(name for name in names if not node.allocatable.get(name)))


def _is_claimed(pod: ObservedPod, index: DeviceIndex) -> bool:
    """Say whether the claim was made, and is allocated: it is, before the pod is bound."""
    claim = index.claims.get((pod.namespace, pod.extended_claim)) if pod.extended_claim else None
    return claim is not None and claim.owner == pod.uid and claim.allocation is not None
