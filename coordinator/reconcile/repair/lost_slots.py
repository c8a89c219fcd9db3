"""Takes slots out of a placement that cannot be had any more, or that no pod comes for."""

from collections import Counter
from dataclasses import replace

from coordinator.gang import repair
from coordinator.gang.claims.shared import late_sharers
from coordinator.gang.claims.slots import compared, without_claims
from coordinator.gang.eviction.endings import covered
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.pods import kept_slots
from coordinator.gang.pods.kept_slots import Kept
from coordinator.gang.pods.pod_sets import NO_PLACEMENT
from coordinator.gang.pods.repairs import AwaitedDevices
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import call_back, gated, may_arrive
from coordinator.reconcile.terms import trimmed
from reservation.edits import with_homeless, without_nodes, without_slots
from reservation.release_order import is_ordered, wave_due
from reservation.replicas import slots_on_the_way
from reservation.slots import Slots, slot_of, slots_of, vacant_slots
from scheduling.model.placement import Placement


def drop_lost_slots(look: Look) -> StepResult:
    """Drop vacant slots on nodes that are gone or refuse, and those of waves that went by."""
    placement = look.view.reservation.placement
    look.view.repairs.devices = AwaitedDevices()
    left = _still_of_use(look, placement) if placement is not None else None
    if left is None or left == placement:
        return NOTHING_DONE
    look.view.reservation.placement = trimmed(look, left)
    return SURVEY_AGAIN


def _still_of_use(look: Look, placement: Placement) -> Placement:
    """What is left of a placement; a loss is looked at again while releases keep its slots."""
    view, pods, columns = look.view, look.pods, look.scene.cache.columns()
    avoided = look.scene.refusals.nodes(view.key.namespace)
    lost = repair.lost_nodes(view, pods, columns, avoided)
    view.repairs.lost_room |= bool(lost)
    left = without_nodes(placement, pods, lost) if lost else placement
    left = repair.without_terminating_slots(left, pods, columns)
    settled = view.repairs.settled
    left = repair.without_slots_taken_over(view, left, pods)
    left = repair.without_stalled(view, left, pods)
    left = _with_devices(look, left)
    kept = _with_releases(look, placement, left)
    if kept is not left:
        view.repairs.settled = settled
    return kept


def _with_devices(look: Look, placement: Placement) -> Placement:
    """What is left of a placement in waves, without slots whose devices went to other pods."""
    view, devices = look.view, look.scene.cache.devices
    if not devices.asks(view.key):
        return placement
    standing, sent = view.survey.standing, view.pod_writes.inflight
    unclaimed = without_claims(standing, devices)
    late = late_sharers(standing, sent, devices) | unclaimed.keys()
    view.repairs.devices = AwaitedDevices(late, next(iter(unclaimed.values()), ""))
    in_turn = is_ordered(placement) and wave_due(placement, look.pods)
    if not (in_turn or _was_foreseen_by_templates(look)):
        return placement
    nodes = look.scene.cache.nodes
    found = compared(standing, {*sent, *late}, devices, nodes, look.scene.devices_left)
    view.repairs.devices = replace(view.repairs.devices, pods=late | found.unsure)
    view.repairs.lost_room |= bool(found.gone)
    return without_slots(placement, found.gone) if found.gone else placement


def _was_foreseen_by_templates(look: Look) -> bool:
    """Say whether nothing started of a gang that had its place before it had claims.

    A template may be another one since.
    """
    is_resumed = look.view.held.phase is Phase.RESUMED
    return is_resumed and not any(each.settled for each in look.view.survey.standing)


def _with_releases(look: Look, before: Placement, left: Placement) -> Placement:
    """What is left of a placement, with the slots that releases of ours are on their way to.

    Not on nodes that are gone. One that is cordoned or too full now may take pods of others soon.
    Releases in doubt are called back: they would be sent again, to a node that refuses.
    """
    sent = may_arrive(look)
    if left is before or not sent:
        return left
    lost = slots_of(before) - slots_of(left)
    kept = lost & slots_on_the_way(sent, look.pods, vacant_slots(before, look.pods))
    back = Counter({s: n for s, n in kept.items() if s.node in look.scene.cache.nodes})
    call_back(look, (p for p in gated(look.pods) if slot_of(p, sent.get(p.uid, "")) in back))
    return without_slots(before, lost - back) if back else left


def keep_late_releases(look: Look) -> StepResult:
    """Give a pod its slot back whose release arrived after that was dropped: it goes there still.

    Until it is bound nothing else counts its room.
    """
    view, placement = look.view, look.view.reservation.placement
    ends = (covered(each, view.understood.terms, look.pods) for each in view.eviction.endings)
    leaves = view.pod_writes.leaving | {pod.uid for pods in ends for pod in pods}
    late = {pod.uid for pod in look.pods if pod.alive and not pod.node} - leaves
    if placement is None or not late:
        return NOTHING_DONE
    view.reservation.placement = with_homeless(placement, look.pods, late)
    return NOTHING_DONE if view.reservation.placement is placement else SURVEY_AGAIN


def drop_void_placement(look: Look) -> StepResult:
    """Drop the whole placement where it cannot start its gang and nothing was released.

    What an earlier leader may be releasing is fenced first.
    """
    if not repair.is_void(look.view) or may_arrive(look):
        return NOTHING_DONE
    look.view.reservation.placement = None
    return SURVEY_AGAIN


def end_kept_slots(look: Look) -> StepResult:
    """Drop the slots of lost pods when their time is over; not while a watch is down."""
    view, placement = look.view, look.view.reservation.placement
    if view.expects_pods:
        view.repairs.kept = Kept()
        return NOTHING_DONE  # no pod was lost
    slots = _note_kept_slots(look)
    over = view.repairs.kept.over(look.now)
    sighted = look.scene.sighted
    gone = kept_slots.ended(slots, over, view.survey.standing) if sighted else None
    if not gone or placement is None:
        return NOTHING_DONE
    gone -= _of_unknown_releases(look, slots)
    if not gone:
        return NOTHING_DONE
    left = without_slots(placement, gone)
    view.reservation.placement = trimmed(look, left) if slots_of(left) else None
    return SURVEY_AGAIN


def _of_unknown_releases(look: Look, slots: Slots) -> Slots:
    """Those of the kept slots that a release by an earlier leader may still take."""
    sent = {uid: node for uid, node in may_arrive(look).items() if not node}
    return slots_on_the_way(sent, look.pods, slots)


def tell_kept_slots(look: Look) -> StepResult:
    """Note for the status which slots are kept now, and until when."""
    if look.view.repairs.kept.total:
        _note_kept_slots(look)
    return NOTHING_DONE


def _slot_patience(look: Look) -> float:
    """Seconds for which the slot of a lost pod is kept, as its queue or else the setting says."""
    patience = patience_of_queue(look)
    return min(patience, kept_slots.CERTAIN) if makes_no_pods(look) else patience


def makes_no_pods(look: Look) -> bool:
    """Say whether KubeRay can or will create no pods for the RayCluster as it is."""
    return look.view.understood.head_lost or look.source.makes_invalid_pods


def patience_of_queue(look: Look) -> float:
    """Seconds for which a gang may wait for the replacements of its lost pods."""
    said = look.timeouts.slot_seconds
    return look.scene.patience.slot if said is None else float(said)


def _note_kept_slots(look: Look) -> Slots:
    view = look.view
    placement = view.reservation.placement or NO_PLACEMENT
    slots = kept_slots.kept_slots(placement, view.survey.standing, look.pods)
    moment, patience = look.scene.moment, _slot_patience(look)
    view.repairs.kept = view.repairs.kept.going_on(slots, moment, patience)
    return slots
