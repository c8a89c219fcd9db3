"""Drops slots from a placement that its pods cannot use any more."""

from collections import Counter
from dataclasses import replace

from coordinator.gang import placement_faults
from coordinator.gang.claims.shared import late_sharers
from coordinator.gang.claims.slots import compared, without_claims
from coordinator.gang.eviction.endings import covered
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.pods.repairs import AwaitedDevices
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import call_back, gated, may_arrive
from coordinator.reconcile.terms import trimmed
from reservation.edits import with_homeless, without_nodes, without_slots
from reservation.release_order import is_ordered, wave_due
from reservation.replicas import slots_on_the_way
from reservation.slots import slot_of, slots_of, vacant_slots
from scheduling.model.placement import Placement


def drop_unusable_slots(look: Look) -> StepResult:
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
    lost = placement_faults.lost_nodes(view, pods, columns, avoided)
    view.repairs.lost_room |= bool(lost)
    left = without_nodes(placement, pods, lost) if lost else placement
    left = placement_faults.without_terminating_slots(left, pods, columns)
    settled = view.repairs.settled
    left = placement_faults.without_slots_taken_over(view, left, pods)
    left = placement_faults.without_stalled(view, left, pods)
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
    if not placement_faults.is_void(look.view) or may_arrive(look):
        return NOTHING_DONE
    look.view.reservation.placement = None
    return SURVEY_AGAIN
