"""Compares the devices that kube-scheduler allocated with those foreseen, between release waves.

A wave is released once all pods before it are bound. By then their devices are known, and so is
whether the other pods of the gang still find theirs. A pod outside the gang may have taken some.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from coordinator.cluster.devices import Devices
from coordinator.gang.pods.pod_sets import Standing
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod
from reservation.claims import claims_of
from reservation.slots import Slots, slot_of
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

PodsByClaims = Counter[Claims]

DevicesLeft = Callable[[str, PodsByClaims], bool | None]
"""Says whether pods of a node still find their devices; None where it is not known yet, because
claims of pods that came before them are not seen allocated."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Slots for which there are no devices any more, and pods that wait until it is known."""

    gone: Slots
    unsure: frozenset[str]


def without_claims(standing: Standing, devices: Devices) -> Mapping[str, str]:
    """Return the pods with a slot whose claims are not made yet, and what is said of them.

    Released, such a pod would wait on its node for a claim that may be refused.
    """
    found = {}
    for pod in (pod for each in standing for pod, _ in each.free if pod.claims):
        claims = claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, devices.index)
        if isinstance(claims, ClaimNotReady):
            found[pod.uid] = claims.message
    return found


def compared(
    standing: Standing,
    gone_ahead: Collection[str],
    devices: Devices,
    nodes: Mapping[str, Node],
    left: DevicesLeft,
) -> Compared:
    """Judge the devices of the wave that is due, for all pods that are not `gone_ahead`."""
    due: defaultdict[str, list[ObservedPod]] = defaultdict(list)
    for each in standing:
        for pod, node in each.with_slot:
            asks = pod.claims or devices.index.gives_any(pod.extended)
            if asks and pod.uid not in each.early and pod.uid not in gone_ahead:
                due[node].append(pod)
    by_claims = {n: _by_claims(pods, devices, nodes.get(n)) for n, pods in due.items()}
    answers = {node: left(node, asked) for node, asked in by_claims.items()}
    lost = ((node, pod) for node, pods in due.items() if answers[node] is False for pod in pods)
    slots = Counter(slot for node, pod in lost if (slot := slot_of(pod, node)) is not None)
    unsure = (pod.uid for node, pods in due.items() if answers[node] is None for pod in pods)
    return Compared(slots, frozenset(unsure))


def _by_claims(pods: Collection[ObservedPod], devices: Devices, node: Node | None) -> PodsByClaims:
    return Counter(claims_of(pod, devices.index, node) or () for pod in pods)
