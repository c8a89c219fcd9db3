"""Counts the outcomes of writes, and classifies their failures."""

from coordinator.messages.actions import (
    PatchGangSpec,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from coordinator.messages.offer_actions import HoldOffer, WriteOffer
from coordinator.metrics import WRITES
from kube.api.errors import (
    ApiError,
    Conflict,
    Invalid,
    KubeError,
    is_of_what_goes,
)
from kube.codec.pod_patches import Operation


class Outcomes:
    """How the writes of one term ended; `in_doubt`: one of them may yet be carried out."""

    def __init__(self) -> None:
        self.in_doubt = False

    def done(self, what: str) -> None:
        """Count a write."""
        WRITES.labels(what, "done").inc()

    def failed(self, what: str, error: KubeError) -> None:
        """Count a failed write."""
        WRITES.labels(what, _outcome(error)).inc()
        self.doubt(error)

    def doubt(self, error: KubeError) -> None:
        """Note that a write failed; one that may yet be carried out leaves the term in doubt."""
        self.in_doubt |= error.outcome_unknown


def unchanged(
    action: PatchGangSpec
    | WriteGangStatus
    | WriteQueueStatus
    | WriteQueueFinalizers
    | WriteOffer
    | HoldOffer,
) -> list[Operation]:
    """Return the tests that fail the patch of any other version than the one decided on."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": action.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": action.resource_version},
    ]


def is_refusal(error: KubeError) -> bool:
    """Say whether the API server judged a change; a webhook that gives no code says 400."""
    return isinstance(error, ApiError) and error.status in (400, 403, 422)


def _outcome(error: KubeError) -> str:
    if is_of_what_goes(error):
        return "gone"
    match error:
        case Invalid() | Conflict():
            return "conflict"
        case _:
            return "unknown" if error.outcome_unknown else "error"
