"""The phases of AppWrapper: CodeFlare's, which Muster writes for MCAD's generation too."""

from enum import StrEnum


class Phase(StrEnum):
    """What status.phase may say; NEW is that of one that was never seen."""

    NEW = ""
    SUSPENDED = "Suspended"
    RESUMING = "Resuming"
    RUNNING = "Running"
    SUSPENDING = "Suspending"
    RESETTING = "Resetting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TERMINATING = "Terminating"


QUEUED = frozenset((Phase.NEW, Phase.SUSPENDED))
"""No wrapped object and no pod is left."""

ACTIVE = frozenset((Phase.RESUMING, Phase.RUNNING))
"""The wrapped objects exist, or are being created."""

LEAVING = frozenset((Phase.SUSPENDING, Phase.RESETTING))
"""The wrapped objects are being deleted."""

OVER = frozenset((Phase.SUCCEEDED, Phase.FAILED, Phase.TERMINATING))
"""No pod is created any more."""
