"""Names the step of an AppWrapper that waits, by the reason of its gang."""

from appwrapper.status.told import Step
from scheduling.model.verdict import Reason

_QUOTA = frozenset(
    (
        Reason.QUOTA_EXCEEDED,
        Reason.QUEUE_BLOCKED,
        Reason.QUEUE_INACTIVE,
        Reason.QUEUE_STOPPED,
    )
)
_ROOM = frozenset(
    (
        Reason.INSUFFICIENT_RESOURCES,
        Reason.NEVER_FITS,
        Reason.NO_FEASIBLE_NODE,
        Reason.PREEMPTING,
        Reason.UNSUPPORTED,
        Reason.UNDECIDED,
        Reason.NAMESPACE_LIMIT,
    )
)


def waiting_step(reason: str) -> Step:
    """Return how far one is whose gang waits for that reason."""
    if reason == Reason.SUSPENDED:
        return Step.SUSPENDED
    if reason in _QUOTA:
        return Step.NO_QUOTA
    return Step.NO_ROOM if reason in _ROOM else Step.QUEUED
