"""Which pods have room on a node and are not bound to it yet?

Pods that mind each other's company must mind those too. A seat whose pod does not exist at the
moment is nobody's company: what the pod will be is not known before it is there.
"""

from collections.abc import Iterator

from coordinator.view import GangView
from kube.observed import ObservedPod
from scheduling.company import Promised


def due(view: GangView) -> Iterator[Promised]:
    """List the pods of a gang that are on their way, each on its node."""
    for each in view.standing:
        for pod, node in each.seated:
            yield _promised(pod, node)
        for pod in each.settled:
            if not pod.holds:
                yield _promised(pod, pod.settled_on)


def _promised(pod: ObservedPod, node: str) -> Promised:
    shape = pod.member.shape if pod.member is not None else None
    strict = shape.strict if shape is not None else ()
    return Promised(frozenset((pod.kind,)), node, pod.anti_affinity, strict)
