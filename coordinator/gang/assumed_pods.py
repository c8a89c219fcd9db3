"""Lists the pods that have room on a node by a placement and are not bound yet.

Pods that mind each other's company must mind those too, and a claim that is for one pod may be
theirs. A seat whose pod does not exist at the moment is nobody's company: what the pod will be is
not known before it is there.
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
    for each in view.standing:
        yield from each.seated
        for pod in each.settled:
            if not pod.holds:
                yield pod, pod.settled_on
