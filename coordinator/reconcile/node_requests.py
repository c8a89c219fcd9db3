"""Requests nodes from an autoscaler for a gang that lacks room, if its queue says so.

One ProvisioningRequest carries the request. It is deleted once the gang has its place, or wants
none.
"""

from collections.abc import Sequence

from coordinator.gang.demand import NotReady
from coordinator.gang.node_requests import (
    ASK_AFTER,
    FOR_ROOM,
    Step,
    Wanted,
    WantedPods,
    next_step,
    put_off,
    request_name,
    wanted_pods,
)
from coordinator.gang.source import opt_in_of
from coordinator.messages.actions import Action, AskedPods, AskForNodes, DropNodeRequest
from coordinator.reconcile.look import Look
from kube.codec.provisioning import NodeRequest
from kube.foreseen.gang import is_foreseen
from kube.objects.pod_templates import TemplatePod
from kube.objects.queues.queue import Provisioning
from kube.ray.ray_cluster import Answer, is_terminating
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Reason

_NOT_SET_UP = (
    "its queue asks for nodes, and this coordinator is not set up to: "
    "MUSTER_COORDINATOR_PROVISIONING is not true (manifests/provisioning)"
)


def request_nodes(look: Look) -> None:
    """Ask for nodes, or take back that they were asked for, as the last verdict has it."""
    calls, found = look.view.node_request, look.scene.cache.node_requests
    rules = _rules(look)
    if found.allowed is None:
        return
    if rules is not None and not found.allowed:
        calls.text = _NOT_SET_UP if _is_short_of_room(look) else ""
        return
    seen = _seen(look)
    if not found.listed or _is_open(look):
        if not seen and not calls.writing:
            look.scene.node_quota.drop(look.view.key)  # else it may hold others up for ever
        return
    asks = _asks(look, rules) if rules is not None else None
    if asks is None and not seen and calls.refused_since is None:
        calls.text, calls.again_at = "", None
        look.scene.node_quota.drop(look.view.key)
        return
    _go_on(look, asks, seen)


def _go_on(look: Look, asks: Wanted | None, seen: Sequence[NodeRequest]) -> None:
    calls = look.view.node_request
    step = _within_quota(look, next_step(asks, seen, look.scene.moment.wall))
    calls.text = step.text
    if calls.attempts.refusal and step.ask:
        calls.text = f"nodes could not be asked for: {calls.attempts.refusal}"
    _note_time(look, step, asks)
    look.actions += _writes(look, step, asks)


def _rules(look: Look) -> Provisioning | None:
    """Return how the gang's queue has nodes asked for, if it does; of an offer, with leave."""
    offered = look.source.offered
    if offered is not None and not offered.may_stop_gangs(look.scene.moment.wall):
        return None
    terms = look.view.understood.terms
    queue = look.scene.queues.objects.get(terms.queue) if terms is not None else None
    return queue.spec.provisioning if queue is not None else None


def _seen(look: Look) -> Sequence[NodeRequest]:
    gang = look.view.record.gang
    uid = gang.metadata.uid if gang is not None else ""
    return look.scene.cache.node_requests.of(look.view.key, uid)


def _is_open(look: Look) -> bool:
    """Say whether it will be known in a moment what the gang waits for: until then all stays.

    A leader that is new has asked no cycle yet, and KubeRay replaces a gated pod that is deleted.
    """
    view, asked = look.view, look.view.queueing.asked
    if _has_left(look) or view.reservation.placement is not None:
        return False
    if not view.looked_at or isinstance(asked, PendingGang):
        return view.queueing.refusal is None
    return isinstance(asked, NotReady) and asked.reason is Reason.GANG_INCOMPLETE


def _has_left(look: Look) -> bool:
    """Say whether the gang is at its end, or none of ours."""
    opted_in = opt_in_of(look.source, look.scene.cache).answer is not Answer.NO
    return is_terminating(look.source.metadata) or not opted_in


def _is_short_of_room(look: Look) -> bool:
    """Say whether the last verdict on the gang is one that more nodes can change."""
    view, refusal = look.view, look.view.queueing.refusal
    if refusal is None or refusal.reason not in FOR_ROOM or not view.asks_for_minimum:
        return False
    return view.eviction.whole is None and not _has_left(look)


def _asks(look: Look, rules: Provisioning) -> Wanted | None:
    """Return what is to be asked for now; a request that is there is not taken back meanwhile."""
    view, calls = look.view, look.view.node_request
    asked = view.queueing.asked
    if not _is_short_of_room(look) or not isinstance(asked, PendingGang):
        calls.refused_since = None
        return None
    if calls.refused_since is None:
        calls.refused_since = look.now
    if look.now < calls.refused_since + ASK_AFTER and not _seen(look):
        return None
    pods = wanted_pods(asked.minimum, view.survey.standing)
    return Wanted(rules, pods) if pods else None


def _within_quota(look: Look, step: Step) -> Step:
    """Put a request off for which the quota has no room beside those of others.

    One that cannot be written leaves the quota to others until it is tried again.
    """
    quota, asked = look.scene.node_quota, look.view.queueing.asked
    fails = bool(step.ask) and look.now < look.view.node_request.attempts.not_before
    if not isinstance(asked, PendingGang) or fails or not (step.ask or step.waits):
        quota.drop(look.view.key)
        return step
    if step.waits:
        quota.asked(asked)
        return step
    if quota.ask(asked):
        return step
    return put_off(step, asked.queue, look.scene.moment.wall + quota.turn(asked))


def _note_time(look: Look, step: Step, asks: Wanted | None) -> None:
    calls = look.view.node_request
    calls.again_at = None
    if step.again_at is not None:
        calls.again_at = look.now + max(0.0, step.again_at - look.scene.moment.wall) + 0.001
    elif asks is None and calls.refused_since is not None:
        calls.again_at = calls.refused_since + ASK_AFTER


def _writes(look: Look, step: Step, asks: Wanted | None) -> list[Action]:
    """Return the writes; of each request one is under way at a time, none soon after a fault."""
    view, calls = look.view, look.view.node_request
    if not look.scene.sighted or look.now < calls.attempts.not_before:
        return []
    dropped = [each for each in step.drop if each.name not in calls.writing]
    actions: list[Action] = [DropNodeRequest(view.key, each) for each in dropped]
    calls.writing.update(each.name for each in dropped)
    if step.ask and asks is not None:
        ask = _ask(look, asks, step.ask)
        if ask is not None and ask.name not in calls.writing:
            calls.writing.add(ask.name)
            actions.append(ask)
    return actions


def _ask(look: Look, asks: Wanted, attempt: int) -> AskForNodes | None:
    view, gang = look.view, look.view.record.gang
    if gang is None:
        return None
    pods = tuple(
        AskedPods(each.count, each.like.name, each.like.uid, each.labels, _foreseen(look, each))
        for each in asks.pods
    )
    rules = asks.rules
    return AskForNodes(
        gang=view.key,
        gang_uid=gang.metadata.uid,
        name=request_name(view.key.name, asks.mark, attempt),
        class_name=rules.class_name,
        parameters=dict(rules.parameters),
        asked=asks.mark,
        attempt=attempt,
        pods=pods,
    )


def _foreseen(look: Look, pods: WantedPods) -> TemplatePod | None:
    """Return what a pod is made of that does not exist yet; None of one that does."""
    found = look.view.held.expected.foresight.found
    if not is_foreseen(pods.like) or found is None:
        return None
    return next((each.pod for each in found.pod_sets if each.name == pods.pod_set), None)
