"""Nominates pods whose release lasts, and takes back what contradicts the placement.

kube-scheduler forgets gated pods when it starts, and notices them again when they are written. The
annotation says which kube-scheduler, by the holder of its Lease, was told of a nomination: so each
leader sees on the pod itself whether the field and the annotation are as they should be.
"""

from collections.abc import Iterator, Mapping

from coordinator.gang.nominations import (
    Guard,
    Nodes,
    beside_no_reservation,
    lasting,
    may_be_nominated,
    nominated_first,
    planned,
    rightful,
)
from coordinator.gang.pods.nominating import NOWHERE, HeldUp, PlannedTo, most_in_flight
from coordinator.gang.pods.pod_sets import releasable
from coordinator.messages.actions import NominatePod
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.codec.observed_pod import ObservedPod
from scheduling.model.gang import GangKey

PAUSE = 0.5
"""Seconds for which none of a gang is released before its pods are nominated."""

PAUSE_IN_LINE = 300.0
"""The same for a gang that waits for its turn to be released.

In a burst or backlog every gang waits so for kube-scheduler, which binds 45,000 pods in that time;
to nominate them all would take as long as to release them, and the line would move at half its
pace. If others take room of the gang meanwhile, nothing of it is bound yet, and its next wait is a
`PAUSE`.
"""


def nominate_pods(look: Look) -> StepResult:
    """Ask for the nominations that are missing, and for the end of those that are wrong."""
    state = look.view.nominating
    state.next_at = None
    if not look.scene.sighted or look.view.gives_up:
        return NOTHING_DONE
    if look.scene.guard is not Guard.NOMINATION or not _is_allowed(look):
        return take_back_nominations(look)
    return StepResult(list(_writes(look, _wanted(look))))


def take_back_nominations(look: Look) -> StepResult:
    """Have no gated pod nominated that has no slot any more."""
    state = look.view.nominating
    state.next_at = None
    state.planned_to = NOWHERE
    return StepResult(list(_writes(look, {})))


def awaits_nomination(look: Look) -> set[str]:
    """The uids of pods that are not released before kube-scheduler keeps their room."""
    if look.scene.guard is not Guard.NOMINATION or not _is_allowed(look):
        return set()
    first = nominated_first(look.view.survey.standing)
    return {uid for uid in first if not look.view.nominating.was_tried(uid)}


def in_the_way(misnominated: Mapping[GangKey, frozenset[str]], pod: ObservedPod, node: str) -> bool:
    """Whether a nomination that is being taken back could have a release refused.

    It may be of another pod to this node, or of this pod, which others would then find elsewhere.
    """
    return any(
        node in nodes or pod.nominated_to in nodes - {node} for nodes in misnominated.values()
    )


def _wanted(look: Look) -> Nodes:
    """The pods that should be nominated now, those for which room is being made included."""
    plan, state = planned(look.view), look.view.nominating
    open_to = beside_no_reservation(plan, look.scene.reserved)
    nodes = frozenset(open_to.values())
    state.planned_to = PlannedTo(nodes, frozenset(plan.values()) - nodes)
    state.moves = state.moves.followed(plan.values(), look.now)
    if look.now < state.moves.until:
        state.due_by(state.moves.until)
        open_to = _standing(look, open_to)
    return {**open_to, **lasting(look.view, held_up=_is_held_up(look))}


def _standing(look: Look, right: Nodes) -> Nodes:
    """Those of the nominations that are written already, or that are under way."""
    asked = {pod.uid: pod.nominated_to for pod in look.pods} | look.view.nominating.inflight
    return {uid: node for uid, node in right.items() if asked.get(uid) == node}


def _is_allowed(look: Look) -> bool:
    """Whether no gang counts the pods that would be nominated.

    A spread constraint sees those on the node under test and none of the others.
    """
    spread = look.scene.cache.is_spread_over(look.view.key.namespace)
    return not spread and may_be_nominated(look.view.survey.standing)


def _is_held_up(look: Look) -> bool:
    """Whether none of the gang was released for a time that pays for nominations."""
    view, state = look.view, look.view.nominating
    if not view.survey.durable or not releasable(view.survey.standing):
        state.held_up = None
        return False
    in_line = look.scene.window.has_in_line(view.key)
    released = sum(len(each.settled) for each in view.survey.standing)
    if state.held_up is None or state.held_up[1:] != (released, in_line):
        state.held_up = HeldUp(look.now, released, in_line)
    waits_long = in_line and not view.repairs.lost_room
    end = state.held_up.since + (PAUSE_IN_LINE if waits_long else PAUSE)
    if look.now < end:
        state.due_by(end)
    return look.now >= end


def _writes(look: Look, right: Nodes) -> Iterator[NominatePod]:
    view, state = look.view, look.view.nominating
    may_stand = _may_stand(look, right)
    state.mark_misnominated(frozenset(_misnominated(look, may_stand)), look.now)
    most, state.resumes_at = most_in_flight(len(look.pods)), 0
    awaited = nominated_first(view.survey.standing) if right else set()
    for pod in look.pods:
        if not pod.gated or pod.uid in state.inflight:
            continue
        node = "" if _contradicts(pod, may_stand) else right.get(pod.uid)
        if node is None or not _is_news(look, pod, node):
            continue
        state.aim(pod.uid, may_stand.get(pod.uid) or right.get(pod.uid, ""))
        if not state.may_write(pod.uid, node, most, look.now):
            continue
        at_leisure = node not in ("", pod.nominated_to) and pod.uid not in awaited
        if at_leisure and not _keeps_pace(look):
            continue
        state.ask(pod.uid, node, look.now)
        assert pod.raw is not None
        yield NominatePod(view.key, pod.raw, node, look.scene.scheduler)


def _keeps_pace(look: Look) -> bool:
    """Whether one more pod may be nominated in this second, of whichever gang."""
    pace = look.scene.pace
    if pace.spend(look.now):
        return True
    look.view.nominating.due_by(pace.next_second)
    return False


def _may_stand(look: Look, right: Nodes) -> Nodes:
    """Say which nominations may stay as they are; worked out only where there are any."""
    asked = look.view.nominating.inflight
    if not asked and not any(pod.nominated_to for pod in look.pods):
        return {}
    return rightful(look.view, right) if _is_allowed(look) else {}


def _contradicts(pod: ObservedPod, may_stand: Nodes) -> bool:
    return bool(pod.nominated_to) and pod.nominated_to != may_stand.get(pod.uid)


def _misnominated(look: Look, may_stand: Nodes) -> Iterator[str]:
    """The nodes where kube-scheduler counts pods of the gang that will not go there, or soon."""
    asked = look.view.nominating.inflight
    for pod in (each for each in look.pods if each.gated):
        nodes = pod.nominated_to, asked.get(pod.uid, "")
        yield from (node for node in nodes if node and node != may_stand.get(pod.uid))


def _is_news(look: Look, pod: ObservedPod, node: str) -> bool:
    """Whether the field is another one, or another kube-scheduler was told of it."""
    told = pod.member.told if pod.member is not None else ""
    forgotten = bool(node) and bool(look.scene.scheduler) and told != look.scene.scheduler
    return pod.nominated_to != node or forgotten
