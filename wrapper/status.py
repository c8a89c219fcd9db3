"""Builds the status of an AppWrapper after each step, and its texts for users in between.

`appwrapper.status.states` has the words of both generations for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from appwrapper.completion import Completion
from appwrapper.phases import Phase
from appwrapper.requeuing import grown_seconds
from kube.objects.app_wrapper import AppWrapperCondition, AppWrapperStatus, ComponentStatus
from wrapper.contents import COMPLETED, Reference
from wrapper.lifecycle import LEFT, TOLD_AFTER
from wrapper.steps import DEPLOYED, Become, Look, Reason, Record, Remember, recorded
from wrapper.words import worded

INFORM_EVERY = 30.0
"""Seconds between two writes that only inform, of one AppWrapper, at least."""

INFORMED_A_SECOND = 10.0
"""Writes that only inform, of all AppWrappers: with more, each is told less often."""

NEW_FOR = 1.0
"""Seconds for which one without any status is given none while there is nothing to tell."""

TROUBLE_EVERY = 2.0
"""The same while items are created: few are at one time, and what stops them should be seen."""

MESSAGE_LIMIT = 1024
LEFT_NAMED = 3


@dataclass(frozen=True, slots=True)
class Said:
    """A reason, and the same for people."""

    reason: str
    message: str


def entered(look: Look, step: Become) -> AppWrapperStatus:
    """Return the status with which a phase begins."""
    before, stamp = look.wrapper.status, look.moment.stamp
    starts = step.phase is Phase.RESUMING
    again, is_mcad = int(step.again), look.contents.is_mcad
    after = msgspec.structs.replace(
        before,
        phase=str(step.phase),
        phase_since=stamp,
        first_seen=before.first_seen or stamp,
        transition_count=before.transition_count + 1,
        resetting_count=before.resetting_count + (0 if is_mcad else again),
        number_of_requeueings=before.number_of_requeueings + (again if is_mcad else 0),
        requeueing_time_in_seconds=_grown(look, step),
        reason=step.reason,
        message=step.message[:MESSAGE_LIMIT],
        component_status=_components(look, step),
        first_dispatched=before.first_dispatched or (stamp if starts else None),
    )
    return worded(look, after)


def noted(look: Look, step: Record) -> AppWrapperStatus:
    """Return the status with the items that there are to be, or with none."""
    before = look.wrapper.status
    listed = _gone(look) if step.gone else _all(look)
    return worded(look, msgspec.structs.replace(before, component_status=listed))


def remembered(look: Look, step: Remember) -> AppWrapperStatus:
    """Return the status with how items ended that are deleted some time after that."""
    before, ends, stamp = look.wrapper.status, dict(step.ends), look.moment.stamp
    listed = tuple(_with_end(each, ends, stamp) for each in before.component_status)
    return worded(look, msgspec.structs.replace(before, component_status=listed))


def told(look: Look) -> AppWrapperStatus:
    """Return the status with what is known by now; equal to what is written where nothing moved."""
    before = look.wrapper.status
    said = _said(look)
    first_seen = before.first_seen or look.moment.stamp
    after = msgspec.structs.replace(
        before,
        phase=before.phase or str(Phase.SUSPENDED),
        phase_since=before.phase_since or look.moment.stamp,
        first_seen=first_seen,
        reason=said.reason,
        message=said.message[:MESSAGE_LIMIT],
    )
    return worded(look, after)


def informing_spaced(wrappers: int, phase: str) -> float:
    """Return the seconds between two writes that only inform, of one of so many AppWrappers."""
    if phase == Phase.RESUMING:
        return TROUBLE_EVERY
    return max(INFORM_EVERY, wrappers / INFORMED_A_SECOND)


def _said(look: Look) -> Said:
    status, signal = look.wrapper.status, look.signal
    if status.phase in (Phase.NEW, Phase.SUSPENDED):
        return _said_of_queued(look)
    if status.phase == Phase.RESUMING and look.progress.trouble:
        return Said(Reason.ITEM_CREATION_FAILURE, look.progress.trouble)
    ours = signal is not None and signal.of == look.wrapper.metadata.uid
    if status.phase == Phase.RUNNING and ours and signal is not None and signal.reason:
        return Said(signal.reason, signal.message)
    return Said(status.reason, f"{status.message.partition(LEFT)[0]}{_left(look)}")


def _left(look: Look) -> str:
    """Say what a deletion waits for that takes long: a finalizer, or a node that is gone."""
    deletes = look.wrapper.status.phase in (Phase.SUSPENDING, Phase.RESETTING, Phase.FAILED)
    if not deletes or look.lasted < TOLD_AFTER:
        return ""
    found = [f"{each.kind} {each.name}" for each in look.left[:LEFT_NAMED]]
    found += ["..."] if len(look.left) > LEFT_NAMED else []
    pods = look.pods.total
    found += [f"{pods} pod{'s' if pods != 1 else ''}"] if pods else []
    return LEFT + ", ".join(found) if found else ""


def _said_of_queued(look: Look) -> Said:
    status, signal = look.wrapper.status, look.signal
    if look.contents.fault:
        return Said(Reason.MISCONFIGURED, look.contents.fault)
    if look.contents.suspended:
        return Said(Reason.SUSPENDED, "spec.suspend is true")
    if signal is not None and signal.of == look.wrapper.metadata.uid and signal.reason:
        return Said(signal.reason, signal.message)
    return Said(status.reason, status.message)


def _grown(look: Look, step: Become) -> int:
    """Let the time grow for which too few pods may run, where they were too few."""
    grown = look.wrapper.status.requeueing_time_in_seconds
    if step.reason != Reason.MIN_PODS_NOT_RUNNING or not step.again:
        return grown
    return grown_seconds(look.contents.scheduling.requeuing, grown)


# --- the items --------------------------------------------------------------------------------


def _components(look: Look, step: Become) -> tuple[ComponentStatus, ...]:
    match step.phase:
        case Phase.RESUMING:
            return _all(look)
        case Phase.RUNNING:
            stamp = look.moment.stamp
            return _with(recorded(look.wrapper), "True", "ItemCreated", stamp)
        case Phase.SUSPENDED:
            return _gone(look)
        case _:
            return look.wrapper.status.component_status


def _all(look: Look) -> tuple[ComponentStatus, ...]:
    """Items that are created next: those of the spec, and what is left of an earlier spec."""
    left = [each for each in recorded(look.wrapper) if each not in look.contents.items]
    listed = (*look.contents.items, *left)
    return _with(listed, "Unknown", "ItemCreationInitiated", look.moment.stamp)


def _gone(look: Look) -> tuple[ComponentStatus, ...]:
    listed = look.contents.items or recorded(look.wrapper)
    return _with(listed, "False", "ItemDeleted", look.moment.stamp)


def _with(
    items: Iterable[Reference], status: str, reason: str, stamp: str
) -> tuple[ComponentStatus, ...]:
    condition = AppWrapperCondition(
        type=DEPLOYED, status=status, reason=reason, last_transition_time=stamp
    )
    return tuple(
        ComponentStatus(
            name=each.name, kind=each.kind, api_version=each.api_version, conditions=(condition,)
        )
        for each in items
    )


def _with_end(
    found: ComponentStatus, ends: Mapping[Reference, Completion], stamp: str
) -> ComponentStatus:
    end = ends.get(Reference(found.api_version, found.kind, found.name))
    if end is None:
        return found
    status = "True" if end is Completion.SUCCEEDED else "False"
    condition = AppWrapperCondition(
        type=COMPLETED, status=status, reason=f"Item{end}", last_transition_time=stamp
    )
    others = (each for each in found.conditions if each.type != COMPLETED)
    return msgspec.structs.replace(found, conditions=(*others, condition))
