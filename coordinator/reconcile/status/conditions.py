"""Works out the conditions of a gang, each for one aspect of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.gang.held_start.phases import Phase
from coordinator.gang.pods import adoption
from coordinator.gang.view import GangView
from coordinator.reconcile.status.message import Explained
from coordinator.reconcile.status.still_gated import in_words
from coordinator.record.status import filled
from coordinator.record.urgency import (
    ADMITTED,
    QUOTA_RESERVED,
    RUNNING,
    Status,
)
from scheduling.model.holder import gang_holder
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.model.verdict import MESSAGE_LIMIT, Reason

SURPLUS_PLACED = "SurplusPlaced"
EVICTED = "Evicted"


def conditions(view: GangView, said: Explained, stamp: str) -> list[Status]:
    """Return all of them; `stamp` (RFC 3339) dates those that changed."""
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
    admitted = said.phase in (ADMITTED, RUNNING)
    return [
        _gathered(view, said, gathered=view.is_gathered),
        _quota_reserved(view, said, admitted=admitted),
        _reached("Admitted", Reason.ADMITTED if admitted else None, said),
        _reached("Ready", Reason.RUNNING if said.reason == Reason.RUNNING else None, said),
    ]


def _gathered(view: GangView, said: Explained, *, gathered: bool) -> _Condition:
    """A held gang is complete while none of its pods exists: its templates tell of all."""
    if gathered and view.understood.dispatched is not None:
        message = "its pods are created on another cluster"
        return _Condition("Gathered", "True", Reason.HELD, message)
    if gathered and view.held.phase is Phase.WAITING:
        kind = gang_holder(view.key).kind
        message = f"no pod exists: the {kind} is suspended until the gang is admitted"
        return _Condition("Gathered", "True", Reason.HELD, message)
    return _reached("Gathered", Reason.GATHERED if gathered else None, said)


def _quota_reserved(view: GangView, said: Explained, *, admitted: bool) -> _Condition:
    """A gang takes its quota together with its room, so it waits for either with one reason."""
    kind, queue = "QuotaReserved", view.understood.queue
    if said.phase == QUOTA_RESERVED:
        return _Condition(kind, "True", Reason.QUOTA_RESERVED)
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
    return filled(
        {
            "type": each.kind,
            "status": each.status,
            "reason": each.reason,
            "message": each.message,
            "lastTransitionTime": before.get("lastTransitionTime") or stamp,
        }
    )
