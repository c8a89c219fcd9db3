"""The actions of the coordinator: each is one write to the API server.

Each action is one request to the API server, or one line to the log, complete in itself: the
executor needs nothing but the action to carry it out. `uid` and `resource_version` are tests: a
write that was decided on an older object fails instead of doing harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.messages.offer_actions import OfferAction
from kube.codec.provisioning import NodeRequest
from kube.objects.core import Pod
from kube.objects.gang import GangSpec, GangStatus
from kube.objects.pod_templates import TemplatePod
from kube.objects.queues.queue import GangQueueStatus
from kube.objects.ray import RayCluster, RayJob
from scheduling.model.gang import GangKey

NO_SPEC = GangSpec()
NO_STATUS = GangStatus()
NO_QUEUE_STATUS = GangQueueStatus()


@dataclass(frozen=True, slots=True)
class CreateGang:
    """Create the Gang object of a RayCluster."""

    key: GangKey
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PatchGangSpec:
    """Bring the spec of a Gang in line with its RayCluster; `before` is the spec as it was read."""

    key: GangKey
    uid: str
    resource_version: str
    spec: dict[str, Any]
    before: GangSpec = NO_SPEC


@dataclass(frozen=True, slots=True)
class WriteGangStatus:
    """Write all that is known of a Gang's status; with a placement in it, this is the reservation.

    `decides` says that the placement in it is new: pods wait for this write. `before` is the status
    as it was read.
    """

    key: GangKey
    uid: str
    resource_version: str
    status: dict[str, Any]
    decides: bool
    before: GangStatus = NO_STATUS


@dataclass(frozen=True, slots=True)
class DeleteGang:
    """Delete a Gang that is not (or no longer) that of the RayCluster of its name."""

    key: GangKey
    uid: str


@dataclass(frozen=True, slots=True)
class ReleasePod:
    """Take our gate off and pin the pod to `node`; unpinned where `node` is empty.

    `queue` is the one that the pod counts in, also should it leave its gang.
    """

    gang: GangKey
    pod: Pod
    node: str
    queue: str = ""


@dataclass(frozen=True, slots=True)
class FencePod:
    """Make every release patch that an earlier leader may still have in flight fail."""

    gang: GangKey
    pod: Pod
    token: str


@dataclass(frozen=True, slots=True)
class NominatePod:
    """Make kube-scheduler keep the room of a gated pod on `node`, or give it up where that is "".

    `scheduler` is the kube-scheduler that learns of it.
    """

    gang: GangKey
    pod: Pod
    node: str
    scheduler: str


STRANDED = "Stranded"
TORN = "Torn"
ADOPTED = "Adopted"
STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod that was pinned to a node which cannot take it any more."""

    gang: GangKey
    namespace: str
    name: str
    uid: str
    resource_version: str
    node: str = ""
    """The node that it was pinned to."""
    why: str = ""
    """The reason that the log gives. Stranded: the pod cannot get onto its node. Torn: a part of
    its gang was released and the rest never came onto its nodes. Adopted: Muster did not release
    the pod and kube-scheduler cannot place it. Stopped: the gang is being stopped, and the eviction
    of the pod is refused."""
    of_job: bool = False
    """It is taken from its Job first, which would count it as failed, and make the next one only
    after a pause that doubles with each."""


@dataclass(frozen=True, slots=True)
class TryEviction:
    """Ask by a dry run whether the API server would let a pod be evicted."""

    gang: GangKey
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ReadBudgets:
    """Read the disruption budgets of a namespace: pods there are to be evicted for a gang."""

    gang: GangKey
    namespace: str


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Evict a pod: it ends in its grace period, where no disruption budget is against it."""

    gang: GangKey
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class TrySuspension:
    """Ask by a dry run whether the API server would let a RayJob be suspended."""

    gang: GangKey
    job: RayJob
    suspended_for: str


@dataclass(frozen=True, slots=True)
class SuspendRayJob:
    """Suspend the RayJob of a gang, and note on it for which."""

    gang: GangKey
    job: RayJob
    suspended_for: str


@dataclass(frozen=True, slots=True)
class ResumeRayJob:
    """Resume a RayJob that Muster suspended; `gang` is named after the RayJob."""

    gang: GangKey
    job: RayJob


@dataclass(frozen=True, slots=True)
class ResumeRayCluster:
    """Resume a held RayCluster, whose gang is admitted or opted out; the generation is a test."""

    gang: GangKey
    cluster: RayCluster


@dataclass(frozen=True, slots=True)
class SuspendRayCluster:
    """Suspend a RayCluster again that was resumed in vain; the generation is a test."""

    gang: GangKey
    cluster: RayCluster


@dataclass(frozen=True, slots=True)
class WakeKubeRay:
    """Make KubeRay look again at a RayCluster that lacks pods; `at` is an RFC 3339 time."""

    gang: GangKey
    cluster: RayCluster
    at: str


@dataclass(frozen=True, slots=True)
class AskedPods:
    """So many pods like the one of this name and uid, or like `foreseen`, which is yet to be made.

    `labels` are those that their nodes must have beside what the pod says.
    """

    count: int
    name: str
    uid: str
    labels: tuple[tuple[str, str], ...] = ()
    foreseen: TemplatePod | None = None


@dataclass(frozen=True, slots=True)
class AskForNodes:
    """Create a ProvisioningRequest for the pods of a gang, and a PodTemplate for each kind of them.

    The Gang of this uid owns them. `asked` tells what is asked for, and `attempt` for which time.
    """

    gang: GangKey
    gang_uid: str
    name: str
    class_name: str
    parameters: Mapping[str, str]
    asked: str
    attempt: int
    pods: tuple[AskedPods, ...]


@dataclass(frozen=True, slots=True)
class DropNodeRequest:
    """Delete a ProvisioningRequest of a gang, and its PodTemplates."""

    gang: GangKey
    request: NodeRequest


@dataclass(frozen=True, slots=True)
class Regarding:
    """An object that an Event is on."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Tell the owner of the RayCluster by an Event on it, or on another object of the gang."""

    key: GangKey
    cluster_uid: str
    warning: bool
    reason: str
    message: str
    regarding: Regarding | None = None


@dataclass(frozen=True, slots=True)
class LogDecision:
    """Write one line to the log: `what` was decided on a gang."""

    gang: GangKey
    what: str
    queue: str
    pods: int = 0
    """The pods that the line is of."""
    nodes: tuple[str, ...] = ()
    """Their nodes."""
    seconds: float | None = None
    """How long the gang has waited, where that is the matter."""
    reason: str = ""
    message: str = ""
    started: bool = False
    """`seconds` are the whole wait, from the RayCluster's creation to the first placement."""
    preempted: str = ""
    """Of what is stopped for another gang: surplus, a gang, or a job."""
    replicas: int = 0
    """Counts the surplus."""
    asked_for: float | None = None
    """For how long a gang that starts has asked for room; measured and not told."""
    released_in: float | None = None
    """How long after the write of their place pods were released; measured and not told."""


@dataclass(frozen=True, slots=True)
class WriteQueueStatus:
    """Write all that is known of a GangQueue's status; `before` is it as it was read."""

    name: str
    uid: str
    resource_version: str
    status: dict[str, Any]
    before: GangQueueStatus = NO_QUEUE_STATUS


@dataclass(frozen=True, slots=True)
class WriteQueueFinalizers:
    """Hold a GangQueue back from its deletion, or let it go: `finalizers` are all that it has."""

    name: str
    uid: str
    resource_version: str
    finalizers: tuple[str, ...]


GangAction = (
    CreateGang
    | PatchGangSpec
    | WriteGangStatus
    | DeleteGang
    | ReleasePod
    | FencePod
    | NominatePod
    | DeletePod
    | TryEviction
    | ReadBudgets
    | EvictPod
    | TrySuspension
    | SuspendRayJob
    | ResumeRayJob
    | ResumeRayCluster
    | SuspendRayCluster
    | WakeKubeRay
    | OfferAction
    | AskForNodes
    | DropNodeRequest
    | EmitEvent
    | LogDecision
)
QueueAction = WriteQueueStatus | WriteQueueFinalizers
Action = GangAction | QueueAction


def gang_of(action: GangAction) -> GangKey:
    """Name the gang that an action is about."""
    match action:
        case CreateGang() | PatchGangSpec() | WriteGangStatus() | DeleteGang() | EmitEvent():
            return action.key
        case _:
            return action.gang
