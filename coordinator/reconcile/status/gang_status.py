"""Works out a gang's status from its view.

It is worked out from the view alone; when it is written is another matter (`urgency.py`).
"""

from coordinator.gang.demand import NotReady
from coordinator.gang.eviction.endings import endings_json
from coordinator.gang.held_start.start import held_json
from coordinator.gang.pods import adoption
from coordinator.gang.pods.pod_sets import PodSetStanding
from coordinator.gang.setbacks.below_minimum import breaks_json
from coordinator.gang.setbacks.late_starts import late_starts_json
from coordinator.gang.setbacks.refused_releases import refused_releases_json
from coordinator.gang.together import ALONE, together_json
from coordinator.gang.view import GangView
from coordinator.reconcile.status.conditions import conditions
from coordinator.reconcile.status.message import Explained, explain
from coordinator.reconcile.status.placement import placement_json, places_json
from coordinator.reconcile.status.still_gated import short
from coordinator.record.status import filled
from coordinator.record.urgency import (
    ADMITTED,
    QUEUED,
    RUNNING,
    Status,
)
from kube.codec.placement import shortage_to_status
from kube.foreseen.gang import is_foreseen
from reservation.slots import is_released
from scheduling.model.verdict import Reason


def status_of(view: GangView, not_ready: NotReady | None, *, epoch: int, stamp: str) -> Status:
    """The whole status; `stamp` (RFC 3339) dates the conditions that changed."""
    said = explain(view, not_ready)
    ready, total = _counted(view)
    status: Status = {
        "phase": said.phase,
        "epoch": epoch,
        "decided": view.reservation.decided,
        "position": view.queueing.position if said.phase == QUEUED else 0,
        "ready": f"{ready}/{total}",
        "readyPods": ready,
        "totalPods": total,
        "reason": said.reason,
        "message": said.message,
        "podSets": [_pod_set_status(view, each, said) for each in view.survey.standing],
        "conditions": conditions(view, said, stamp),
    }
    placed = view.reservation
    if placed.placement is not None:
        status["placement"] = placement_json(placed.placement, placed.epoch, placed.queue)
    if view.queueing.planned is not None:
        status["planned"] = places_json(view.queueing.planned)
    status["dispatchAfter"] = placed.closed
    status["evictions"] = endings_json(view.eviction.endings)
    status["lateStarts"] = late_starts_json(view.late_starts)
    status["held"] = held_json(view.held)
    status["refusedReleases"] = refused_releases_json(view.refused_releases)
    status["breaks"] = breaks_json(view.breaks)
    placed_with = placed.together if placed.placement is not None else ALONE
    status["together"] = together_json(view.together.group, placed_with)
    return filled(status)


def _counted(view: GangView) -> tuple[int, int]:
    """Count the pods that are ready, and all; by the RayCluster alone where it is misconfigured."""
    if view.understood.terms is None and view.understood.read is not None:
        return view.survey.ready, sum(
            each.count for each in view.understood.read.source.pod_sets_wanted
        )
    total = sum(each.terms.count for each in view.survey.standing)
    if view.understood.dispatched is not None:
        return total if view.understood.provisioned else 0, total
    return sum(each.ready for each in view.survey.standing), total


def _pod_set_status(view: GangView, each: PodSetStanding, gang: Explained) -> Status:
    refusal = view.queueing.refusal or view.queueing.left_out
    refused = {r.pod_set: r for r in refusal.pod_sets} if refusal else {}
    said = refused.get(each.terms.name)
    reason, message = _why_gated(each, gang)
    if view.queueing.refusal and said:
        reason, message = view.queueing.refusal.reason, _fit_text(said.fit, said.wanted)
    return filled(
        {
            "name": each.terms.name,
            "count": each.terms.count,
            "minimum": each.terms.minimum,
            "gated": sum(not is_foreseen(pod) for pod in each.gated),
            "released": sum(is_released(pod) for pod in each.settled),
            "notReleased": sum(1 for _ in adoption.not_released(each)),
            "bound": each.bound,
            "ready": each.ready,
            "kept": each.kept,
            "reason": reason,
            "message": message,
            "shortage": shortage_to_status(said) if said and said.fit < said.wanted else {},
        }
    )


def _why_gated(each: PodSetStanding, gang: Explained) -> tuple[str, str]:
    """Say why gated pods of a pod set wait: for what the gang waits for, or for their own sake."""
    if gang.phase not in (ADMITTED, RUNNING) or gang.reason == Reason.TERMINATING:
        return (gang.reason, "") if each.gated else ("", "")
    mine = next((waits for waits in gang.waits if waits.pod_set == each.terms.name), None)
    return (mine.reason, short(mine.message)) if mine is not None else ("", "")


def _fit_text(fit: int, wanted: int) -> str:
    return f"{fit} of {wanted} fit"
