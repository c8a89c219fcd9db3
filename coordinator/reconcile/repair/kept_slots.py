"""Keeps the slot of a lost pod for its replacement, and drops it from the placement in the end."""

from coordinator.gang.pods import kept_slots
from coordinator.gang.pods.kept_slots import Kept
from coordinator.gang.pods.pod_sets import NO_PLACEMENT
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import may_arrive
from coordinator.reconcile.terms import trimmed
from reservation.edits import without_slots
from reservation.replicas import slots_on_the_way
from reservation.slots import Slots, slots_of


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
