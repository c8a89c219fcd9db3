"""Lists the pods that have room on a node by a placement and are not bound yet.

Inter-pod constraints count them as they count existing pods, and a claim that only one pod may use
may be theirs. A slot whose pod does not exist is not listed: what the pod will be is not known yet.
"""

from collections.abc import Iterator

from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from scheduling.state.pod_index import AssumedPods


def assumed_pods(view: GangView) -> Iterator[AssumedPods]:
    """List the pods of a gang that are on their way, each on its node."""
    for pod, node in _on_their_way(view):
        shape = pod.member.shape if pod.member is not None else None
        strict = shape.pinned_spread if shape is not None else ()
        yield AssumedPods(frozenset((pod.kind,)), node, pod.anti_affinity, strict)


def assumed_claims(view: GangView) -> Iterator[tuple[str, str]]:
    """List the claims, by namespace and name, of pods of a gang that are on their way."""
    for pod, _ in _on_their_way(view):
        for mount in pod.mounts:
            yield pod.namespace, mount.claim


def _on_their_way(view: GangView) -> Iterator[tuple[ObservedPod, str]]:
    for each in view.survey.standing:
        yield from each.with_slot
        for pod in each.settled:
            if not pod.holds:
                yield pod, pod.settled_on
