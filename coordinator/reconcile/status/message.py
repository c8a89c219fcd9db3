"""Works out phase, reason and message of a gang: the hindrance nearest to its start first."""

from dataclasses import dataclass, replace

from coordinator.cluster.bind_refusals import TEXT_LIMIT
from coordinator.gang.demand import NotReady
from coordinator.gang.owner_deadlines import wait_in_words
from coordinator.gang.placement_faults import release_refusals
from coordinator.gang.pods import adoption
from coordinator.gang.pods.pod_sets import exist_in_words, is_ready
from coordinator.gang.view import GangView
from coordinator.reconcile.status.still_gated import Waits, in_words, waiting
from coordinator.record.urgency import (
    ADMITTED,
    FAILED,
    FINISHED,
    GATHERING,
    PREEMPTING,
    QUEUED,
    QUOTA_RESERVED,
    RUNNING,
)
from kube.objects.clusters.dispatch import STARTED, GangDispatch
from kube.ray.gang_terms import HEAD
from reservation.release_order import order_in_words
from reservation.slots import slots_of
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import MESSAGE_LIMIT, Reason

SAID_FIRST = MESSAGE_LIMIT - TEXT_LIMIT - 2  # characters, so that kube-scheduler's word fits in
HEADLESS = (
    "the head is lost and to be made again: without GCS fault tolerance all workers begin anew"
)
_REASONS = frozenset(Reason)
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
    past = () if over else (view.refused_releases.text, view.repairs.bind_refusal)
    stopped = _stopped_before(view) if _stopped_before(view) != said.message else ""
    past = (
        *past,
        _of_held_start(view, said),
        "" if view.expects_pods else view.repairs.devices.unclaimed,
        view.quota_stake.text,
        view.eviction.text if said.phase != PREEMPTING else "",
        stopped,
        view.node_request.text if said.phase == QUEUED else "",
    )
    broken = view.understood.problem if view.understood.problem not in said.message else ""
    waits = wait_in_words(view.owner, view.key.name) if view.waits_for_room else ""
    also = [
        each
        for each in (broken, waits, view.repairs.kept.text, *_not_released(view, said), *past)
        if each
    ]
    rest = "; ".join(also)
    first = said.message[: max(SAID_FIRST, MESSAGE_LIMIT - 2 - len(rest))]
    message = f"{first}; {rest}" if rest else said.message
    return replace(said, message=message[:MESSAGE_LIMIT])


def _stopped_before(view: GangView) -> str:
    """Say of a gang that waits again why it was stopped; empty of others."""
    last = view.eviction.last
    return last.message if last is not None and view.waits_stopped else ""


def _of_held_start(view: GangView, said: Explained) -> str:
    """Say that the pods of a resumed gang are to come, or why it was suspended again."""
    if view.expects_pods:
        kind = gang_holder(view.key).kind
        lacks = view.repairs.devices.unclaimed and f" ({view.repairs.devices.unclaimed})"
        return f"the {kind} was resumed, and {exist_in_words(view.survey.standing)}{lacks}"
    return view.held.tries.text if view.held.tries.text != said.message else ""


def _not_released(view: GangView, said: Explained) -> tuple[str, ...]:
    """What is to be said of pods that Muster did not release, beside what was said already."""
    told = said.reason == Reason.NOT_RELEASED_BY_MUSTER
    return adoption.bound(view.survey.standing), "" if told else adoption.waiting(
        view.survey.standing
    )


def _with_waiting(said: Explained, view: GangView) -> Explained:
    """Say also of an admitted gang which of its pods keep their gate, and why."""
    if said.phase not in (ADMITTED, RUNNING) or view.understood.dispatched is not None:
        return said
    waits = waiting(view)
    news = [each for each in waits if each.message != said.message]
    message = f"{said.message}; {in_words(news, view)}" if news else said.message
    return replace(said, message=message, waits=waits)


def _explain(view: GangView, not_ready: NotReady | None) -> Explained:
    whole = view.eviction.whole
    if whole is not None:
        said = view.eviction.text or f"{whole.message}{_ends_on(view)}"
        return Explained(PREEMPTING, whole.reason, said)
    if view.reservation.placement is not None and view.understood.dispatched is not None:
        return _explain_dispatched(view.understood.dispatched)
    if view.reservation.placement is not None or view.survey.ran or _runs_unplaced(view):
        return _explain_admitted(view, not_ready)
    if not_ready is not None:
        return Explained(_phase_of_unready(view, not_ready), not_ready.reason, not_ready.message)
    if view.queueing.refusal is not None:
        return Explained(QUEUED, view.queueing.refusal.reason, view.queueing.refusal.message)
    awaited = "" if view.held.holds else "all pods exist; "
    return Explained(QUEUED, Reason.PENDING, f"{awaited}waiting for the next cycle")


def _ends_on(view: GangView) -> str:
    """Say on which cluster a gang is to end; nothing of one that is here."""
    found = view.understood.dispatched
    if found is None or not found.is_recorded:
        return ""
    more = f" ({found.message})" if found.message else ""
    return f"; it ends on cluster {found.cluster} first{more}"


def _explain_dispatched(found: GangDispatch) -> Explained:
    """Say how far a gang is that another cluster is to run, by what the dispatcher wrote."""
    if not found.is_recorded:
        said = "its quota is reserved, and the dispatcher asks clusters for room"
        return Explained(QUOTA_RESERVED, Reason.QUOTA_RESERVED, said)
    more = f": {found.message}" if found.message else ""
    if found.phase == STARTED and found.reason in _REASONS:
        return Explained(RUNNING, found.reason, f"on cluster {found.cluster}{more}")
    if found.phase == STARTED:
        more = f": {found.reason}{more}" if found.reason else more
        return Explained(RUNNING, Reason.RUNNING, f"it runs on cluster {found.cluster}{more}")
    said = f"it has room on cluster {found.cluster}, and starts there{more}"
    return Explained(ADMITTED, Reason.ADMITTED, said)


def _phase_of_unready(view: GangView, not_ready: NotReady) -> str:
    if not_ready.is_final:
        return FINISHED
    if not_ready.reason is Reason.RETRIES_EXHAUSTED:
        return FAILED
    return QUEUED if view.is_gathered else GATHERING


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
    below = view.repairs.below
    if below is not None and below.text:
        cause = f"; {hindrance.message}" if hindrance is not None else ""
        return Explained(phase, Reason.BELOW_MINIMUM, f"{below.text}{cause}")
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
