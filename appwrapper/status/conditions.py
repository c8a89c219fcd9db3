"""Keeps the conditions of an AppWrapper's status: one of each type."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from kube.objects.app_wrapper import AppWrapperCondition

Conditions = tuple[AppWrapperCondition, ...]

NOTICES = "muster.dev/HasNotices"
"""The condition of Muster's own, beside those of the generation."""

_LONGEST_MESSAGE = 1024


def stamp(moment: float) -> str:
    """Write a time (seconds since 1970) as conditions of Kubernetes have it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(moment: float) -> str:
    """Write a time as MCAD does."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def appended(known: Conditions, kind: str, reason: str, message: str, moment: float) -> Conditions:
    """Say in MCAD's way that a condition holds: it moves to the end, unless it is there already.

    MCAD never takes a condition back: those before the last tell what was.
    """
    if is_last(known, kind, reason, message):
        return known
    others = tuple(each for each in known if each.type != kind)
    at = micro_stamp(moment)
    new = AppWrapperCondition(
        type=kind,
        status="True",
        reason=reason,
        message=message,
        last_update_micro_time=at,
        last_transition_micro_time=at,
    )
    return (*others, new)


def is_last(known: Conditions, kind: str, reason: str, message: str) -> bool:
    """Say whether the last condition says the same."""
    found = known[-1] if known else AppWrapperCondition()
    return (found.type, found.reason, found.message) == (kind, reason, message)


def with_condition(known: Conditions, new: AppWrapperCondition, moment: float) -> Conditions:
    """Set a condition in its place; its time changes only where its status does."""
    before = next((each for each in known if each.type == new.type), None)
    same = before is not None and before.status == new.status
    since = before.last_transition_time if before is not None and same else stamp(moment)
    new = replace(new, last_transition_time=since)
    if before is None:
        return (*known, new)
    return tuple(new if each.type == new.type else each for each in known)


def cleared(known: Conditions, kind: str, reason: str, message: str, moment: float) -> Conditions:
    """Set a condition to False where it is True; one that was never set is not set now."""
    for each in known:
        if each.type == kind and each.status == "True":
            new = AppWrapperCondition(type=kind, status="False", reason=reason, message=message)
            return with_condition(known, new, moment)
    return known


def with_notices(known: Conditions, notices: Sequence[str], moment: float) -> Conditions:
    """Tell what a user should know that hinders nothing, until it is so no more.

    The condition stands first: scripts of MCAD's users take the last for what was done last.
    """
    before = tuple(each for each in known if each.type == NOTICES)
    others = tuple(each for each in known if each.type != NOTICES)
    if not notices:
        return (*cleared(before, NOTICES, "NothingNoticed", "", moment), *others)
    message = "; ".join(notices)[:_LONGEST_MESSAGE]
    new = AppWrapperCondition(type=NOTICES, status="True", reason="Noticed", message=message)
    return (*with_condition(before, new, moment), *others)
