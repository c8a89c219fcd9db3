"""Finds where a placement no longer holds, and what to do about it.

Between the verdict and the last bind, nodes die, are cordoned, shrink, or lose their room to pods
of others. A slot that no pod was released to is decided anew. A pod that was released to a node
which cannot take it any more is deleted: a pin cannot be taken back, and KubeRay makes a new
pod, gated. A gang that stays torn for too long gives everything back.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from coordinator.gang.pods.adoption import is_nominated
from coordinator.gang.pods.pod_sets import ready_for_release
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from reservation.edits import without_slots
from reservation.release_order import wave_due, without_passed, without_waiting
from reservation.replicas import Replica, named_replicas
from reservation.slots import is_released, vacant_slots
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.state.node_snapshot import NodeSnapshot

Avoided = Mapping[str, tuple[str, ...]]
"""Shape -> nodes on which kube-scheduler refused a pod of it."""


def lost_nodes(
    view: GangView, pods: list[ObservedPod], columns: NodeSnapshot, avoided: Avoided
) -> set[str]:
    """The nodes that cannot take what is still vacant on them, or are to be avoided for it.

    A vacant slot without a pod is only asked whether its node exists: what the pod that is to
    come tolerates is not known before it is there.
    """
    if view.reservation.placement is None or not any(each.vacant for each in view.survey.standing):
        return set()
    vacant = {slot.node for slot in vacant_slots(view.reservation.placement, pods)}
    gone = {node for node in vacant if node not in columns.index}
    with_slot = (each for pod_set in view.survey.standing for each in pod_set.with_slot)
    refused = {
        node
        for pod, node in with_slot
        if not node_accepts(pod, node, columns) or node in avoided.get(_shape_key(pod), ())
    }
    return gone | refused


def without_terminating_slots(
    placement: Placement, pods: list[ObservedPod], columns: NodeSnapshot
) -> Placement:
    """What is left of a placement without the vacant slots of replicas that end on a lost node.

    KubeRay may make the next replica beside one that still ends, under another name. It takes over
    the slots of all hosts or none, so it waits in vain for those of which one is on such a node.
    """
    named = named_replicas(placement)
    if not named:
        return placement
    members = ((pod, _replica_of(pod)) for pod in pods if not pod.terminal)
    mine = [(pod, replica) for pod, replica in members if replica in named]
    alive = {replica for pod, replica in mine if pod.alive}
    hanging = {replica for pod, replica in mine if pod.settled_on and _barred(pod, columns)} - alive
    if not hanging:
        return placement
    vacant = vacant_slots(placement, pods)
    gone = Counter({slot: n for slot, n in vacant.items() if slot.kind[:2] in hanging})
    return without_slots(placement, gone) if gone else placement


def _replica_of(pod: ObservedPod) -> Replica:
    member = pod.member
    return (member.pod_set, member.replica) if member is not None else ("", "")


def _shape_key(pod: ObservedPod) -> str:
    shape = pod.member.shape if pod.member is not None else None
    return shape.key if shape is not None else ""


def node_accepts(pod: ObservedPod, node: str, columns: NodeSnapshot) -> bool:
    """Whether, as far as can be seen, a node that keeps room for a pod takes it."""
    shape = pod.member.shape if pod.member is not None else None
    if shape is None or node not in columns.index:
        return False
    if not bool(feasible(shape, columns)[columns.index[node]]):
        return False
    return not overfull(shape, node, columns, pod.priority)


def overfull(shape: PodShape, node: str, columns: NodeSnapshot, priority: int) -> bool:
    """Whether more is reserved on the node than it has, of something that the shape needs.

    The pod's own reservation is among what is used, so a node that is exactly full is fine. What
    the node lists none of it may give by devices.
    """
    at = columns.index[node]
    room, listed = FreeCapacity.of(columns).for_priority(priority), columns.nodes[at].allocatable
    names = (n for n, _ in shape.requests if listed.get(n) or n not in columns.claimable)
    lefts = map(room.left, names)
    return any(left is None or left[at] < 0 for left in lefts)


def without_slots_taken_over(
    view: GangView, placement: Placement, pods: list[ObservedPod]
) -> Placement:
    """What is left of a placement that is released in steps when a released pod of it was lost.

    The steps were planned for a gang of which nothing is bound. The successor of a lost pod of an
    earlier step is decided anew, beside the bound pods; so is all that waits in a gang that ran. A
    leader does not know what was lost before its term, and assumes that something was.
    """
    settled = frozenset(pod.uid for pod in pods if pod.settled_on and not pod.terminal)
    lost = view.repairs.settled is None or view.repairs.settled - settled
    view.repairs.settled = settled
    if not lost:
        return placement
    passed = without_waiting if view.survey.ran else without_passed
    return passed(placement, pods)


def without_stalled(view: GangView, placement: Placement, pods: list[ObservedPod]) -> Placement:
    """What is left of a placement whose later steps wait for a surplus pod that never comes.

    The minimum does not wait for surplus: it is decided anew beside those that are bound.
    """
    if not _is_stalled(view) or _waits_for_others(view, placement, pods):
        return placement
    return without_waiting(placement, pods)


def _waits_for_others(view: GangView, placement: Placement, pods: list[ObservedPod]) -> bool:
    """Whether gangs that were placed with this one have pods in an earlier wave."""
    due = view.together.due_beside
    return due is not None and due < wave_due(placement, pods)


def _is_stalled(view: GangView) -> bool:
    """Whether a step of the release waits for pods that cannot come, though the minimum can."""
    if not any(each.early for each in view.survey.standing) or _lacks(view):
        return False
    on_their_way = any(not pod.node for each in view.survey.standing for pod in each.settled)
    return not on_their_way and not ready_for_release(view.survey.standing)


def stranded(
    view: GangView, columns: NodeSnapshot, now: float, patience: float
) -> Iterator[ObservedPod]:
    """Released pods that will not get onto their node.

    Where the node is gone or refuses the pod's kind this is certain; where kube-scheduler says
    that it does not fit, room may yet come back, so it is given `patience` seconds.
    """
    for pod_set in view.survey.standing:
        for pod in pod_set.settled:
            if pod.node or not pod.settled_on:
                view.repairs.stuck_since.pop(pod.uid, None)
            elif _barred(pod, columns) or is_stuck(view, pod, now, patience):
                yield pod


def unplaceable(view: GangView, now: float, patience: float) -> list[ObservedPod]:
    """Pods that Muster did not release and that kube-scheduler has found no node for in `patience`.

    The time of one that it makes room for begins when it does so no longer.
    """
    pods = [pod for each in view.survey.standing for pod in each.unpinned]
    for pod in filter(is_nominated, pods):
        view.repairs.stuck_since.pop(pod.uid, None)
    others = (pod for pod in pods if not is_nominated(pod))
    return [pod for pod in others if is_stuck(view, pod, now, patience)]


def _barred(pod: ObservedPod, columns: NodeSnapshot) -> bool:
    shape = pod.member.shape if pod.member is not None else None
    at = columns.index.get(pod.settled_on)
    return at is None or (shape is not None and not bool(feasible(shape, columns)[at]))


def is_stuck(view: GangView, pod: ObservedPod, now: float, patience: float) -> bool:
    """Whether kube-scheduler has said for `patience` seconds that it has no node for a pod."""
    if not pod.unschedulable:
        view.repairs.stuck_since.pop(pod.uid, None)
        return False
    return now >= view.repairs.stuck_since.setdefault(pod.uid, now) + patience


def is_torn(view: GangView) -> bool:
    """Whether a gang that never ran whole has a part on its way or on its nodes, and not the rest.

    Whoever released that part: what began without us is given back too, if it never ran.
    """
    unbound = any(pod_set.bound < pod_set.terms.minimum for pod_set in view.survey.standing)
    return (
        unbound and not view.survey.ran and any(pod_set.settled for pod_set in view.survey.standing)
    )


def is_refused(view: GangView) -> bool:
    """Whether a gang of which nothing is released has a pod whose release is refused."""
    if view.reservation.placement is None or any(
        pod_set.settled for pod_set in view.survey.standing
    ):
        return False
    return view.gives_up or bool(release_refusals(view))


def release_refusals(view: GangView) -> list[str]:
    """What the API server said against releases that it refused, each text once."""
    gated = (pod.uid for pod_set in view.survey.standing for pod in pod_set.gated)
    tried = (
        view.pod_writes.attempts[uid].refusal for uid in gated if uid in view.pod_writes.attempts
    )
    return sorted({refusal for refusal in tried if refusal})


def released(view: GangView) -> Iterator[ObservedPod]:
    """The pods that were released to a node."""
    for pod_set in view.survey.standing:
        yield from (pod for pod in pod_set.settled if is_released(pod))


def is_hindered(view: GangView) -> bool:
    """Whether more pods of a gang that does not run would only make a larger part of it."""
    runs = view.survey.ran and any(pod_set.settled for pod_set in view.survey.standing)
    return not runs and _lacks(view)


def is_void(view: GangView) -> bool:
    """Whether a placement that nothing was released for cannot start its gang as a whole.

    One that ran keeps its slots while its pods are made again, as long as it has them all. So does
    one whose RayCluster was just resumed, until its pods have come.
    """
    if view.reservation.placement is None or view.released_any or view.expects_pods:
        return False
    return any(pod_set.missing for pod_set in view.survey.standing) or (
        not view.survey.ran and _lacks(view)
    )


def _lacks(view: GangView) -> bool:
    return any(pod_set.lacks for pod_set in view.survey.standing)
