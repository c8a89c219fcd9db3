"""Works out a gang's status from its view.

It is worked out from the view alone; when it is written is another matter (`urgency.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.cluster.bind_refusals import TEXT_LIMIT
from coordinator.gang import adoption
from coordinator.gang.below_minimum import breaks_json
from coordinator.gang.demand import NotReady, is_gathered
from coordinator.gang.eviction import endings_json
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.held_start.start import held_json
from coordinator.gang.late_starts import late_starts_json
from coordinator.gang.pod_sets import PodSetStanding, exist_in_words, is_ready
from coordinator.gang.repair import release_refusals
from coordinator.gang.setbacks import refused_releases_json
from coordinator.gang.view import GangView
from coordinator.reconcile.waiting import Waits, in_words, short, waiting
from coordinator.record.status import pruned
from coordinator.record.urgency import (
    ADMITTED,
    FAILED,
    FINISHED,
    GATHERING,
    PREEMPTING,
    QUEUED,
    RUNNING,
    Status,
)
from kube.codec.placement import placement_to_status, shortage_to_status
from kube.foreseen.gang import is_foreseen
from kube.ray.gang_terms import HEAD
from reservation.release_order import order_in_words
from reservation.slots import is_released, slots_of
from scheduling.model.holder import gang_holder
from scheduling.model.placement import Placement
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.model.verdict import MESSAGE_LIMIT, Reason
from scheduling.state.bounded_cache import while_alive

SAID_FIRST = MESSAGE_LIMIT - TEXT_LIMIT - 2  # characters, so that kube-scheduler's word fits in
SURPLUS_PLACED = "SurplusPlaced"
EVICTED = "Evicted"
HEADLESS = (
    "the head is lost and to be made again: without GCS fault tolerance all workers begin anew"
)
HEAD_NOT_REMADE = (
    "the head is lost, and KubeRay makes no other for a RayJob in SidecarMode: the job fails, no "
    "slot is kept, and nothing more of the gang is placed"
)


@dataclass(frozen=True, slots=True)
class Explained:
    """Phase, reason and message of a gang, as its user reads them.

    `waits` are the gated pods that wait though the gang has its place.
    """

    phase: str
    reason: str
    message: str
    waits: tuple[Waits, ...] = ()


def explain(view: GangView, not_ready: NotReady | None) -> Explained:
    """Say where the gang is and why, the hindrance nearest to its start first."""
    if view.understood.terminating and not_ready is not None:
        phase = view.record.written.get("phase", GATHERING)
        return Explained(phase, not_ready.reason, not_ready.message)
    said = _with_waiting(_explain(view, not_ready), view)
    over = said.reason in (Reason.RUNNING, Reason.RELEASE_REFUSED)
    past = () if over else (view.retreat.text, view.repairs.bind_refusal)
    stopped = _stopped_before(view) if _stopped_before(view) != said.message else ""
    past = (
        *past,
        _of_held_start(view, said),
        view.quota.text,
        view.eviction.text if said.phase != PREEMPTING else "",
        stopped,
        view.nodes.text if said.phase == QUEUED else "",
    )
    broken = view.understood.problem if view.understood.problem not in said.message else ""
    waits = view.owner_text if view.waits_for_room else ""
    also = [
        each
        for each in (broken, waits, view.repairs.kept_text, *_not_released(view, said), *past)
        if each
    ]
    rest = "; ".join(also)
    first = said.message[: max(SAID_FIRST, MESSAGE_LIMIT - 2 - len(rest))]
    message = f"{first}; {rest}" if rest else said.message
    return replace(said, message=message[:MESSAGE_LIMIT])


def _stopped_before(view: GangView) -> str:
    """Say of a gang that waits again why it was stopped; empty of others."""
    last = view.eviction.last
    waits_again = view.reservation.placement is None and view.eviction.whole is None
    return last.message if last is not None and waits_again else ""


def _of_held_start(view: GangView, said: Explained) -> str:
    """Say that the pods of a resumed gang are to come, or why it was suspended again."""
    if view.expects_pods:
        kind = gang_holder(view.key).kind
        return f"the {kind} was resumed, and {exist_in_words(view.survey.standing)}"
    return view.held.tries.text if view.held.tries.text != said.message else ""


def _not_released(view: GangView, said: Explained) -> tuple[str, ...]:
    """What is to be said of pods that Muster did not release, beside what was said already."""
    told = said.reason == Reason.NOT_RELEASED_BY_MUSTER
    return adoption.bound(view.survey.standing), "" if told else adoption.waiting(
        view.survey.standing
    )


def _with_waiting(said: Explained, view: GangView) -> Explained:
    """Say also of an admitted gang which of its pods keep their gate, and why."""
    if said.phase not in (ADMITTED, RUNNING):
        return said
    waits = waiting(view)
    news = [each for each in waits if each.message != said.message]
    message = f"{said.message}; {in_words(news, view)}" if news else said.message
    return replace(said, message=message, waits=waits)


def _explain(view: GangView, not_ready: NotReady | None) -> Explained:
    whole = view.eviction.whole
    if whole is not None:
        return Explained(PREEMPTING, whole.reason, view.eviction.text or whole.message)
    if view.reservation.placement is not None or view.survey.ran or _runs_unplaced(view):
        return _explain_admitted(view, not_ready)
    if not_ready is not None:
        return Explained(_phase_of_unready(view, not_ready), not_ready.reason, not_ready.message)
    if view.queueing.refusal is not None:
        return Explained(QUEUED, view.queueing.refusal.reason, view.queueing.refusal.message)
    awaited = "" if view.held.holds else "all pods exist; "
    return Explained(QUEUED, Reason.PENDING, f"{awaited}waiting for the next cycle")


def _phase_of_unready(view: GangView, not_ready: NotReady) -> str:
    if not_ready.is_final:
        return FINISHED
    if not_ready.reason is Reason.RETRIES_EXHAUSTED:
        return FAILED
    gathered = bool(view.survey.standing) and is_gathered(view.survey.standing)
    return QUEUED if gathered else GATHERING


def _runs_unplaced(view: GangView) -> bool:
    """Whether the gang was opted in when its pods ran already: nothing of it was ever decided."""
    settled = any(each.settled for each in view.survey.standing)
    return settled and not any(each.missing for each in view.survey.standing)


def _explain_admitted(view: GangView, not_ready: NotReady | None) -> Explained:
    phase = RUNNING if view.survey.ran else ADMITTED
    refusals = release_refusals(view)
    if refusals:
        return Explained(phase, Reason.RELEASE_REFUSED, refusals[0][:1024])
    if is_ready(view.survey.standing):
        return Explained(RUNNING, Reason.RUNNING, "the minimum is ready")
    if view.understood.terms is None:
        return Explained(phase, Reason.MISCONFIGURED, view.understood.problem)
    lack = _explain_lack(view, phase, not_ready)
    return lack if lack is not None else _explain_placed(view, phase)


def _explain_lack(view: GangView, phase: str, not_ready: NotReady | None) -> Explained | None:
    """Say what keeps an admitted gang from having all of its minimum on nodes."""
    if view.understood.head_lost:
        return Explained(phase, Reason.HEAD_LOST, HEAD_NOT_REMADE)
    hindrance = not_ready or view.queueing.refusal
    if view.repairs.below_text:
        cause = f"; {hindrance.message}" if hindrance is not None else ""
        return Explained(phase, Reason.BELOW_MINIMUM, f"{view.repairs.below_text}{cause}")
    if hindrance is not None and any(each.missing for each in view.survey.standing):
        return Explained(phase, hindrance.reason, hindrance.message)
    if view.queueing.unmade is not None:
        return Explained(phase, view.queueing.unmade.reason, view.queueing.unmade.message)
    if _is_headless(view):
        return Explained(phase, Reason.HEAD_LOST, HEADLESS)
    return None


def _explain_placed(view: GangView, phase: str) -> Explained:
    pods = sum(each.placed for each in view.survey.standing)
    slots = {node for each in view.survey.standing for _, node in each.with_slot}
    nodes = slots | {pod.settled_on for each in view.survey.standing for pod in each.settled}
    plural = "" if len(nodes) == 1 else "s"
    placement = view.reservation.placement
    if view.expects_pods and placement is not None:
        nodes = {slot.node for slot in slots_of(placement)}
        plural = "" if len(nodes) == 1 else "s"
    order = order_in_words(placement) if placement is not None else ""
    said = f"{pods} pods placed on {len(nodes)} node{plural}{order}"
    return Explained(phase, Reason.ADMITTED, said)


def _is_headless(view: GangView) -> bool:
    """Whether a gang that ran has a slot for its head, and no head on its way."""
    if not view.survey.ran:
        return False
    return any(
        each.terms.name == HEAD and each.terms.minimum and not each.settled
        for each in view.survey.standing
    )


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
        "conditions": _conditions(view, said, stamp),
    }
    placed = view.reservation
    if placed.placement is not None:
        status["placement"] = placement_json(placed.placement, placed.epoch, placed.queue)
    if view.queueing.planned is not None:
        status["planned"] = _places_json(view.queueing.planned)
    status["evictions"] = endings_json(view.eviction.endings)
    status["lateStarts"] = late_starts_json(view.late)
    status["held"] = held_json(view.held)
    status["refusedReleases"] = refused_releases_json(view.retreat)
    status["breaks"] = breaks_json(view.breaks)
    return _filled(status)


def _counted(view: GangView) -> tuple[int, int]:
    """Count the pods that are ready, and all; by the RayCluster alone where it is misconfigured."""
    if view.understood.terms is None and view.understood.read is not None:
        return view.survey.ready, sum(
            each.count for each in view.understood.read[0].pod_sets_wanted
        )
    ready = sum(each.ready for each in view.survey.standing)
    return ready, sum(each.terms.count for each in view.survey.standing)


def placement_json(placement: Placement, epoch: int, queue: str) -> Status:
    """The placement as the record holds it, with the term that decided it and its queue."""
    named = "" if queue == DEFAULT_QUEUE else queue
    return _filled({"epoch": epoch, "queue": named}) | _places_json(placement)


@while_alive
def _places_json(placement: Placement) -> Status:
    """The same without the epoch; kept, because it seldom changes and may be long."""
    found: Status = pruned(placement_to_status(placement, 0))
    return found


def _pod_set_status(view: GangView, each: PodSetStanding, gang: Explained) -> Status:
    refusal = view.queueing.refusal or view.queueing.left_out
    refused = {r.pod_set: r for r in refusal.pod_sets} if refusal else {}
    said = refused.get(each.terms.name)
    reason, message = _why_gated(each, gang)
    if view.queueing.refusal and said:
        reason, message = view.queueing.refusal.reason, _fit_text(said.fit, said.wanted)
    return _filled(
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


def _conditions(view: GangView, said: Explained, stamp: str) -> list[Status]:
    before = {c.get("type"): c for c in view.record.written.get("conditions", ())}
    wanted = [
        *_usual(view, said),
        *_surplus(view, said),
        *_evicted(view, said),
        *_hold(view),
        *_keys(view),
    ]
    return [_condition(each, before.get(each.kind), stamp) for each in wanted]


@dataclass(frozen=True, slots=True)
class _Condition:
    """One aspect of a gang; the status is "True" or "False"."""

    kind: str
    status: str
    reason: str
    message: str = ""


def _usual(view: GangView, said: Explained) -> list[_Condition]:
    gathered = bool(view.survey.standing) and is_gathered(view.survey.standing)
    admitted = said.phase in (ADMITTED, RUNNING)
    return [
        _gathered(view, said, gathered=gathered),
        _quota_reserved(view, said, admitted=admitted),
        _reached("Admitted", Reason.ADMITTED if admitted else None, said),
        _reached("Ready", Reason.RUNNING if said.reason == Reason.RUNNING else None, said),
    ]


def _gathered(view: GangView, said: Explained, *, gathered: bool) -> _Condition:
    """A held gang is complete while none of its pods exists: its templates tell of all."""
    if gathered and view.held.phase is Phase.WAITING:
        kind = gang_holder(view.key).kind
        message = f"no pod exists: the {kind} is suspended until the gang is admitted"
        return _Condition("Gathered", "True", Reason.HELD, message)
    return _reached("Gathered", Reason.GATHERED if gathered else None, said)


def _quota_reserved(view: GangView, said: Explained, *, admitted: bool) -> _Condition:
    """A gang takes its quota together with its room, so it waits for either with one reason."""
    kind, queue = "QuotaReserved", view.understood.queue
    if view.understood.has_quota:
        return _reached(kind, Reason.ADMITTED if admitted else None, said)
    spelled = "the default queue" if queue == DEFAULT_QUEUE else f"queue {queue}"
    return _Condition(kind, "True", Reason.NOT_REQUIRED, f"{spelled} has no quota")


def _reached(kind: str, reason: Reason | None, said: Explained) -> _Condition:
    """What is reached has a reason of its own, what is not has that of the gang."""
    if reason is not None:
        return _Condition(kind, "True", reason)
    return _Condition(kind, "False", said.reason, said.message)


def _surplus(view: GangView, said: Explained) -> list[_Condition]:
    """Say of an admitted gang whether its pods above the minimum have their place."""
    if said.phase not in (ADMITTED, RUNNING) or view.understood.terminating:
        return []
    if said.waits:
        first = said.waits[0].reason
        message = in_words(said.waits, view)[:MESSAGE_LIMIT]
        return [_Condition(SURPLUS_PLACED, "False", first, message)]
    unplaced = adoption.waiting(view.survey.standing)
    if unplaced:
        return [_Condition(SURPLUS_PLACED, "False", Reason.NOT_RELEASED_BY_MUSTER, unplaced)]
    if all(each.terms.count == each.terms.minimum for each in view.survey.standing):
        return []
    return [_Condition(SURPLUS_PLACED, "True", Reason.ADMITTED)]


def surplus_waits(written: Status) -> tuple[str, str]:
    """Return why pods wait beside those of a gang that has its place, as a record has it."""
    if written.get("reason") not in (Reason.RUNNING, Reason.ADMITTED):
        return "", ""  # then the gang's own reason is told
    for each in written.get("conditions", ()):
        if (each.get("type"), each.get("status")) == (SURPLUS_PLACED, "False"):
            return each.get("reason", ""), each.get("message", "")
    return "", ""


def _evicted(view: GangView, said: Explained) -> list[_Condition]:
    """Say of a gang that was stopped whole by what, and once it is admitted again that it was."""
    last = view.eviction.last
    if last is None:
        return []
    again = said.phase in (ADMITTED, RUNNING)
    return [_Condition(EVICTED, "False" if again else "True", last.reason, last.message)]


def _hold(view: GangView) -> list[_Condition]:
    """Say why a gang is not held though it is to be; else nothing."""
    if not view.not_held:
        return []
    return [_Condition("StartHeld", "False", Reason.NOT_HELD, view.not_held)]


def _keys(view: GangView) -> list[_Condition]:
    """Say what the RayCluster has under muster.dev/ that is no key of ours; else nothing."""
    if not view.unknown_keys:
        return []
    return [_Condition("KeysUnderstood", "False", Reason.UNKNOWN_KEY, view.unknown_keys)]


def _condition(each: _Condition, before: Mapping[str, Any] | None, stamp: str) -> Status:
    before = before if before is not None and before.get("status") == each.status else {}
    return _filled(
        {
            "type": each.kind,
            "status": each.status,
            "reason": each.reason,
            "message": each.message,
            "lastTransitionTime": before.get("lastTransitionTime") or stamp,
        }
    )


def _filled(status: Status) -> Status:
    """The fields that say something, which is how a record holds them."""
    return {key: value for key, value in status.items() if value}
