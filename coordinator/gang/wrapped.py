"""Says how far the AppWrapper of a gang is, whose objects another program creates and deletes.

What the Gang records is all that the program `wrapper` goes by: a placement beside Waiting has the
wrapped objects created, Suspending has them deleted. What it does it writes into the phase of the
AppWrapper first.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from appwrapper import phases
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start import Phase
from kube.codec.fields import created_at
from kube.codec.observed_pod import ObservedPod
from kube.objects.ray import RayCluster, StandIn
from kube.ray.gang_terms import GangTerms, PodSetTerms
from scheduling.model.verdict import Reason

MINUTE = 60.0

MOST_ADDED = 2.0**31
"""That an AppWrapper can add to the priority of its pods, or take from it."""


def is_over(cluster: RayCluster) -> bool:
    """Say whether an AppWrapper asks for nothing any more: it succeeded, or failed for good."""
    if not isinstance(cluster, StandIn):
        return False
    return cluster.phase not in phases.QUEUED | phases.ACTIVE | phases.LEAVING


def phase_of(wrapped: StandIn, before: Phase) -> Phase:
    """Return the phase of the held start that an AppWrapper's own phase means.

    One that is to be deleted again is active until `wrapper` has seen that.
    """
    if is_over(wrapped):
        return Phase.NONE
    if wrapped.phase in phases.QUEUED:
        return Phase.WAITING
    leaves = wrapped.phase in phases.LEAVING or before is Phase.SUSPENDING
    return Phase.SUSPENDING if leaves else Phase.RESUMED


def came_back(wrapped: StandIn, before: Phase, now: Phase) -> str:
    """Say why an AppWrapper stopped that none asked to stop; empty where one did, or it did not."""
    stopped = before is Phase.RESUMED and now in (Phase.WAITING, Phase.SUSPENDING)
    if not stopped or wrapped.stopped_by_user:
        return ""
    return wrapped.said or "its objects could not be created, or were deleted again"


def is_being_created(cluster: RayCluster) -> bool:
    """Say whether objects of an AppWrapper are still to be created."""
    return isinstance(cluster, StandIn) and cluster.phase == phases.Phase.RESUMING


def trouble(wrapped: StandIn) -> str:
    """Say what stops the creation of its objects, where that is so."""
    return f": {wrapped.said}" if wrapped.said and is_being_created(wrapped) else ""


def hindrance(cluster: RayCluster, unforeseeable: str) -> NotReady | None:
    """Say what keeps an AppWrapper from asking for room, whatever room there is."""
    if not isinstance(cluster, StandIn):
        return None
    if cluster.stopped_by_user:
        return NotReady(Reason.SUSPENDED, "spec.suspend is true: the AppWrapper asks for no pods")
    if unforeseeable:
        return NotReady(Reason.PODS_REFUSED, f"its pods cannot be foreseen: {unforeseeable}")
    return None


def asks_for_no_pods(cluster: RayCluster) -> NotReady:
    """Say why a gang has no pods to ask for."""
    if not isinstance(cluster, StandIn):
        return NotReady(Reason.SUSPENDED, "the RayCluster is suspended: it asks for no pods")
    if is_over(cluster):
        said = f"the AppWrapper is {cluster.phase}: it asks for no pods"
        return NotReady(Reason.SUSPENDED, said)
    if cluster.spec.worker_group_specs:
        said = "all pods have succeeded, or are of a kind that Muster does not gate"
        return NotReady(Reason.SUSPENDED, said)
    said = "no wrapped object has pods: there is nothing to wait for"
    return NotReady(Reason.NOT_REQUIRED, said)


def added_priority(cluster: RayCluster, now: float) -> int:
    """Return what an AppWrapper adds to the priority of its pods (`now`: seconds since 1970).

    MCAD adds `priorityslope` for each second. Here it is added a minute at a time: each change is
    written to the Gang.
    """
    if not isinstance(cluster, StandIn):
        return 0
    minutes = max(0.0, now - created_at(cluster.metadata)) // MINUTE
    added = cluster.priority + cluster.priority_slope * minutes * MINUTE
    return int(max(-MOST_ADDED, min(MOST_ADDED, added)))


def rises(cluster: RayCluster) -> bool:
    """Say whether the priority of an AppWrapper changes with time."""
    return isinstance(cluster, StandIn) and cluster.priority_slope != 0


def without_succeeded(
    cluster: RayCluster, terms: GangTerms | None, pods: Iterable[ObservedPod]
) -> GangTerms | None:
    """Expect no more pods than are still to come: a Job replaces none that succeeded."""
    if terms is None or not isinstance(cluster, StandIn) or not cluster.completions:
        return terms
    done = Counter(pod.member.pod_set for pod in pods if pod.succeeded and pod.member is not None)
    if not done:
        return terms
    left = {name: most - done[name] for name, most in cluster.completions.items()}
    sets = tuple(_at_most(each, left.get(each.name, each.count)) for each in terms.pod_sets)
    return replace(terms, pod_sets=sets)


def with_added(
    cluster: RayCluster, terms: GangTerms | None, pods: Iterable[ObservedPod]
) -> GangTerms | None:
    """Expect the pods that exist beyond the number of the template, which have no place of right.

    Ray's autoscaler, a HorizontalPodAutoscaler and a rollout make more pods of an object than its
    AppWrapper says. A Job does not: what it makes beside those that failed is no more at a time.
    """
    if terms is None or not isinstance(cluster, StandIn):
        return terms
    alive = Counter(pod.member.pod_set for pod in pods if pod.alive and pod.member is not None)
    sets = tuple(
        each if each.name in cluster.completions else _at_least(each, alive[each.name])
        for each in terms.pod_sets
    )
    return replace(terms, pod_sets=sets)


def _at_least(terms: PodSetTerms, pods: int) -> PodSetTerms:
    """Expect so many pods, in whole replicas, where any are expected at all."""
    replicas = -(-pods // max(terms.hosts, 1))
    more = replicas * max(terms.hosts, 1)
    return replace(terms, count=max(terms.count, more)) if terms.count else terms


def _at_most(terms: PodSetTerms, most: int) -> PodSetTerms:
    most = max(0, most)
    return replace(terms, count=min(terms.count, most), minimum=min(terms.minimum, most))
