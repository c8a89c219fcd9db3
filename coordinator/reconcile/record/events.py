"""Emits Events that say why a gang waits, on the objects that its user reads."""

from collections.abc import Iterable
from itertools import islice

from coordinator.gang.owner_deadlines import regarding
from coordinator.gang.view import GangView
from coordinator.messages.actions import EmitEvent, Regarding
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.status.conditions import surplus_waits
from coordinator.record.event_budget import UNHEARD, EventBudget, Lasting
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from kube.ray.gang_terms import HEAD
from scheduling.model.verdict import Reason

UNTOLD = (
    Reason.GANG_INCOMPLETE,
    Reason.PENDING,
    Reason.RUNNING,
    Reason.SUSPENDED,
    Reason.WRAPPER_ENDED,
    Reason.EXCESS_PODS,
    Reason.NOT_REQUIRED,
    Reason.TERMINATING,
)
"""Reasons that need no Event: they pass by themselves, or KubeRay says the same.

Nor does Admitted where nothing was said before: a gang that never waited need not be told that its
wait has ended.
"""

SENT_SECONDS = 5.0
"""For which a gang's turn to be sent to a cluster is not told: mostly one takes it by then."""


def emit_events(look: Look) -> StepResult:
    """Have an Event on the reason that the record holds.

    The Gang, the RayJob or RayService and the head pod show it too: users look there first.
    """
    view, events = look.view, look.view.events
    said = reason_on_record(view)
    head = _head(look.pods) if said.reason != Reason.HEAD_LOST else ()
    if view.record.outlived:
        events.lasting = Lasting(said, head)
        return NOTHING_DONE
    if said.reason in (Reason.RUNNING, ""):
        events.heard = UNHEARD
    is_read = look.scene.lines.are_read
    if view.record.gang is None or not is_read or not _needs_event(said, events):
        events.lasting = None
        return NOTHING_DONE
    before = events.lasting
    if before is None or before.event.reason != said.reason:
        not_before = look.now + (SENT_SECONDS if said.reason == Reason.QUOTA_RESERVED else 0)
    else:
        not_before = before.not_before
    uid = view.record.gang.metadata.uid
    gang = Regarding(names.API_VERSION, "Gang", view.key.name, uid)
    events.lasting = Lasting(said, (gang, *regarding(view.owner), *head), not_before)
    return NOTHING_DONE


def adopt_events(view: GangView, now: float) -> None:
    """Take it that an earlier leader told what the record says; it is renewed in its time."""
    said = reason_on_record(view)
    if said.reason not in ("", *UNTOLD):
        view.events.adopt(said, now)
        view.logged.refused = said.reason


def reason_on_record(view: GangView) -> EmitEvent:
    """What there is to tell by the record: of a placed gang, which of its pods still wait."""
    written = view.record.written
    reason, message = surplus_waits(written)
    if view.record.outlived:
        reason, message = Reason.TERMINATING, view.record.outlived
    elif not reason:
        reason, message = written.get("reason", ""), written.get("message", "")
    if reason == Reason.HEAD_LOST:
        message = message.partition("; ")[0]  # each worker that follows its head is no news
    return EmitEvent(view.key, view.cluster_uid, reason != Reason.ADMITTED, reason, message)


def _needs_event(said: EmitEvent, events: EventBudget) -> bool:
    never_waited = said.reason == Reason.ADMITTED and events.heard.reason in ("", Reason.ADMITTED)
    return not never_waited and said.reason not in ("", *UNTOLD)


def _head(pods: Iterable[ObservedPod]) -> tuple[Regarding, ...]:
    heads = (pod for pod in pods if pod.alive and pod.member and pod.member.pod_set == HEAD)
    return tuple(Regarding("v1", "Pod", pod.name, pod.uid) for pod in islice(heads, 1))
