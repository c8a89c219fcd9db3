"""Finds pods of a gang that have no gate though Muster did not release them.

Muster's release takes the gate off and pins the pod. A pod without gate and pin was created before
the opt-in of its Ray cluster, was set free by an opt-out, or had its gate removed by others. One
that is bound stays where it is. One that is not bound has no room: where kube-scheduler finds none
for it, it is deleted, so that KubeRay makes it again, gated, and the gang is decided as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coordinator.gang.pods.pod_sets import PodSetStanding, Standing
from kube.codec.fields import created_at
from kube.codec.observed_pod import ObservedPod
from reservation.slots import is_released

LONGEST_PAUSE = 3600.0  # seconds

MADE_AGAIN = 10.0
"""Seconds within which KubeRay creates a deleted pod again; both stamps are of whole seconds."""

WHY = "(created before the opt-in, or the gate was removed)"


@dataclass(slots=True)
class Rounds:
    """When pods of one gang that Muster did not release may be deleted.

    They come back without gate where the webhook is gone. So that this does not go on and on, what
    is deleted together is a round, and from one round to the next twice as much time passes.
    """

    count: int = 0
    begun: float = float("-inf")

    def are_open(self, now: float, length: float) -> bool:
        """Say whether there is a round now, which is begun if it may be."""
        if now >= self.next_begin(length):
            self.count, self.begun = min(self.count + 1, 16), now
        return now < self.begun + length

    def next_begin(self, length: float) -> float:
        """When the next round may begin."""
        return self.begun + min(LONGEST_PAUSE, length * 2.0**self.count)


def not_released(each: PodSetStanding) -> Iterator[ObservedPod]:
    """The pods of a pod set that have no gate though Muster did not release them."""
    yield from (pod for pod in each.settled if not is_released(pod))
    yield from each.unpinned


def runs(standing: Standing) -> bool:
    """Whether a pod that Muster did not release is on a node."""
    return any(pod.node for each in standing for pod in not_released(each))


def leaves_out_pods(provisioned_since: float, pods: Iterable[ObservedPod]) -> bool:
    """Whether KubeRay called a Ray cluster provisioned when it saw only a part of its pods.

    A new leader does not know whether an earlier one deleted pods, after which KubeRay sees for a
    moment only those that run. A pod that is still gated, and was created before or just after
    KubeRay said so, was not among the pods that were ready. Where KubeRay gives no time (its
    conditions are switched off) this cannot be seen, and the statement counts.
    """
    gated = (pod.raw for pod in pods if pod.raw is not None)
    return any(created_at(pod.metadata) <= provisioned_since + MADE_AGAIN for pod in gated)


def removable(standing: Standing) -> Iterator[ObservedPod]:
    """The pods that Muster did not release, unless others hold them back or make room for them."""
    pods = (pod for each in standing for pod in not_released(each))
    return (pod for pod in pods if not pod.foreign_gates and not is_nominated(pod))


def is_nominated(pod: ObservedPod) -> bool:
    """Whether kube-scheduler evicts others to bind the pod: deleted, it would be for nothing."""
    return bool(pod.holds) and not pod.node


def hindrance(standing: Standing) -> str:
    """Say that the minimum waits for pods that Muster cannot decide; empty where it does not."""
    waits = [each for each in standing if each.missing and each.unpinned]
    if not waits:
        return ""
    on_nodes = sum(each.bound for each in standing)
    gated = sum(len(each.gated) for each in standing)
    total = sum(each.terms.count for each in standing)
    also = f" and {gated} gated" if gated else ""
    return f"{on_nodes} of {total} pods are bound{also}; {waiting(standing)}"


def waiting(standing: Standing) -> str:
    """Say how many pods that Muster did not release are not bound; empty where none is."""
    pods = [pod for each in standing for pod in each.unpinned]
    if not pods:
        return ""
    gates = sorted({gate for pod in pods for gate in pod.foreign_gates})
    wait = "waits" if len(pods) == 1 else "wait"
    by = f"other gates: {', '.join(gates)}" if gates else "kube-scheduler"
    return f"{_counted(pods)} not released by Muster {WHY} and {wait} for {by}"


def bound(standing: Standing) -> str:
    """Say how many pods that Muster did not release are bound; empty where none is."""
    pods = [pod for each in standing for pod in not_released(each) if pod.node]
    if not pods:
        return ""
    are = "is" if len(pods) == 1 else "are"
    return f"{_counted(pods)} not released by Muster {WHY} and {are} bound"


def _counted(pods: Sequence[ObservedPod]) -> str:
    return "1 pod was" if len(pods) == 1 else f"{len(pods)} pods were"
