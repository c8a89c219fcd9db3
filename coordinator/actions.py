"""What can the coordinator do?

Each action is one write to the API server, complete in itself: the executor needs nothing but
the action to carry it out. `uid` and `resource_version` are tests: a write that was decided on
an older object fails instead of doing harm.
"""

from dataclasses import dataclass
from typing import Any

from kube.objects import Pod
from scheduling.model import GangKey


@dataclass(frozen=True, slots=True)
class CreateGang:
    """Create the Gang object of a RayCluster."""

    key: GangKey
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PatchGangSpec:
    """Bring the spec of a Gang in line with its RayCluster."""

    key: GangKey
    uid: str
    resource_version: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WriteGangStatus:
    """Write the whole status of a Gang; with a placement in it, this is the reservation.

    `decides` says that the placement in it is new: pods wait for this write.
    """

    key: GangKey
    uid: str
    resource_version: str
    status: dict[str, Any]
    decides: bool


@dataclass(frozen=True, slots=True)
class DeleteGang:
    """Delete a Gang that is not (or no longer) that of the RayCluster of its name."""

    key: GangKey
    uid: str


@dataclass(frozen=True, slots=True)
class ReleasePod:
    """Take our gate off and pin the pod to `node`; unpinned where `node` is empty."""

    gang: GangKey
    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class FencePod:
    """Make every release patch that an earlier leader may still have in flight fail."""

    gang: GangKey
    pod: Pod
    token: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod that was pinned to a node which cannot take it any more."""

    gang: GangKey
    namespace: str
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Tell the owner of the RayCluster by an Event on it."""

    key: GangKey
    cluster_uid: str
    warning: bool
    reason: str
    message: str


Action = (
    CreateGang
    | PatchGangSpec
    | WriteGangStatus
    | DeleteGang
    | ReleasePod
    | FencePod
    | DeletePod
    | EmitEvent
)


def gang_of(action: Action) -> GangKey:
    """Name the gang that an action is about."""
    match action:
        case ReleasePod(gang=gang) | FencePod(gang=gang) | DeletePod(gang=gang):
            return gang
        case _:
            return action.key
