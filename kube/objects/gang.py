"""Gang: its fields, as they are read, and what the API server allows in them.

These structs are the one source: the CustomResourceDefinition is generated from them (`crds`). What
Muster writes itself is bounded loosely: a validation must never stop the coordinator from mending
an object that was edited by hand or left behind.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from kube.objects.base import ObjectMeta, OrNull, Part, Quantities, Quantity, Slim
from kube.objects.clusters.dispatch import QUOTA_RESERVED, GangDispatch
from kube.objects.expected_start import GangExpectedStart
from kube.objects.schema import ATOMIC, ATOMIC_LIST, Allows, map_of, rules

_MOST_POD_SETS = 1024  # CEL rules on the items of a list need a bound on its length

COUNT: dict[str, Any] = {"minimum": 0, "format": "int64"}
NAME: dict[str, Any] = {"minLength": 1, "maxLength": 253}
PRIORITY: dict[str, Any] = {"minimum": -(2**31), "maximum": 2**31 - 1, "format": "int32"}

Count = Annotated[int, Allows(**COUNT)]

HELD_PHASES = ("Waiting", "Resumed", "Suspending")
PHASES = (
    "Gathering",
    "Queued",
    QUOTA_RESERVED,
    "Admitted",
    "Running",
    "Preempting",
    "Failed",
    "Finished",
)

_MINIMUM_RULE = (
    "!has(self.minimum) || (has(self.count) && self.minimum <= self.count)",
    "minimum must not exceed count",
)
_EPOCH_RULE = (
    "self >= oldSelf",
    "written by an earlier leader: epoch must not decrease (to reset it, delete the Gang)",
)


class GangCondition(Slim, frozen=True):
    """One aspect of the state, in the form of all Kubernetes conditions."""

    # Whole, because it is written back with its transition time.
    type: Annotated[str, Allows(required=True, minLength=1, maxLength=316)] = ""
    status: Annotated[str, Allows(required=True, enum=["True", "False", "Unknown"])] = ""
    reason: Annotated[str, Allows(maxLength=1024)] = ""
    message: Annotated[str, Allows(maxLength=32768)] = ""
    last_transition_time: Annotated[str, Allows(format="date-time")] = ""
    observed_generation: Count = 0


# --- spec ---------------------------------------------------------------------------------------


class GangPodSet(Slim, frozen=True):
    """The head, or one worker group, of the gang."""

    schema_extra: ClassVar[dict[str, Any]] = rules(_MINIMUM_RULE)

    name: Annotated[
        str, Allows("headgroup, or the name of a worker group.", required=True, **NAME)
    ] = ""
    count: Annotated[int, Allows("Pods that the RayCluster wants.", **COUNT)] = 0
    minimum: Annotated[int, Allows("Pods that must start at once.", **COUNT)] = 0
    hosts: Annotated[int, Allows("Pods of one replica, where it is not one.", **COUNT)] = 1


class GangTopology(Slim, frozen=True):
    """Node labels within one value of which pods of the gang are to be together."""

    required: Annotated[str, Allows("For all workers.")] = ""
    preferred: Annotated[str, Allows("For all workers, where there is such room.")] = ""
    replica: Annotated[str, Allows("For the pods of each replica of several hosts.")] = ""


class GangSpec(Part, frozen=True):
    """What Muster understood of the RayCluster; edits are overwritten."""

    # Spec and status of a Gang have one writer. Tracking which writer owns which of their fields
    # would be a third of what a write costs the API server, and half of the object.
    schema_extra: ClassVar[dict[str, Any]] = ATOMIC

    queue: Annotated[str, Allows("The GangQueue that the gang waits in.")] = ""
    priority: Annotated[int, Allows("Higher goes first.", **PRIORITY)] = 0
    ray_cluster_uid: Annotated[str, Allows("The RayCluster that this gang is of.")] = ""
    pod_sets: Annotated[
        OrNull[tuple[GangPodSet, ...]], Allows(maxItems=_MOST_POD_SETS, **map_of("name"))
    ] = ()
    topology: GangTopology | None = None


# --- status -------------------------------------------------------------------------------------


class HolderShare(Slim, frozen=True):
    """Who holds how much: a controller, or a Namespace for its pods without one."""

    kind: Annotated[str, Allows(required=True)] = ""
    namespace: str = ""
    name: Annotated[str, Allows(required=True)] = ""
    amount: Annotated[Quantity, Allows(required=True)] = ""


class GangShortage(Part, frozen=True):
    """What stops the next pod of a pod set, and who holds it, on the nodes that may run the pod."""

    resource: Annotated[str, Allows("The resource that is shortest.", required=True)] = ""
    each: Annotated[Quantity, Allows("What one pod asks for.", required=True)] = ""
    needed: Annotated[Quantity, Allows("What the gang asks for in all.")] = ""
    free: Annotated[
        Quantity, Allows("What is free on all nodes, before any of it is placed.", required=True)
    ] = ""
    left: Annotated[Quantity, Allows("What is left of it, once those that fit are placed.")] = ""
    largest: Annotated[Quantity, Allows("The most that is left on one node.", required=True)] = ""
    total: Annotated[Quantity, Allows("What there is of it, free or not.")] = ""
    holders: Annotated[
        OrNull[tuple[HolderShare, ...]],
        Allows("Who holds the most of it, at most three.", **ATOMIC_LIST),
    ] = ()


class GangPodSetStatus(Slim, frozen=True):
    """How far a pod set has come, and what it waits for."""

    name: Annotated[str, Allows(required=True, **NAME)] = ""
    count: Count = 0
    minimum: Count = 0
    gated: Annotated[int, Allows("Pods with Muster's gate.", **COUNT)] = 0
    released: Annotated[int, Allows("Pods that Muster released, each to a node.", **COUNT)] = 0
    not_released: Annotated[
        int,
        Allows(
            "Pods without the gate that Muster did not release: created before the opt-in, or "
            "their gate was removed.",
            **COUNT,
        ),
    ] = 0
    bound: Annotated[int, Allows("Pods on their node, whoever released them.", **COUNT)] = 0
    ready: Count = 0
    kept: Annotated[int, Allows("Slots that are kept for lost pods.", **COUNT)] = 0
    reason: str = ""
    message: str = ""
    shortage: GangShortage | None = None


class PlacedShape(Part, frozen=True):
    """Where the pods of one shape (and replica) go."""

    shape: Annotated[
        str, Allows("Content hash of what matters to the scheduler.", required=True, **NAME)
    ] = ""
    replica: Annotated[str, Allows("Set where numOfHosts is above 1.")] = ""
    requests: Annotated[OrNull[Quantities], Allows("What one such pod takes.")] = {}
    nodes: Annotated[
        OrNull[Mapping[str, Annotated[int, Allows(minimum=1, format="int64")]]],
        Allows("Number of pods for each node."),
    ] = {}
    wave: Annotated[
        int,
        Allows(
            "The pods are released once all of earlier waves are bound; 0 is the first.", **COUNT
        ),
    ] = 0


class PlacedPodSet(Part, frozen=True):
    """The assignments of one pod set."""

    name: Annotated[str, Allows(required=True, **NAME)] = ""
    assignments: OrNull[tuple[PlacedShape, ...]] = ()


class GangPlacement(Part, frozen=True):
    """Where the whole gang goes. Once it is written it is the gang's reservation."""

    epoch: Annotated[int, Allows("Term of the coordinator that decided it.", **COUNT)] = 0
    queue: Annotated[
        str, Allows("The GangQueue whose quota the gang holds; absent for the default queue.")
    ] = ""
    pod_sets: Annotated[OrNull[tuple[PlacedPodSet, ...]], Allows(**map_of("name"))] = ()


class GangEviction(Part, frozen=True):
    """Something of the gang that is being stopped. Once it is written, it is carried out."""

    reason: Annotated[str, Allows("The cause, in one word.", required=True)] = ""
    message: Annotated[str, Allows("The same for people.")] = ""
    since: Annotated[str, Allows("When it was decided.", format="date-time")] = ""
    preemptor: Annotated[
        str, Allows("The gang that it is stopped for, as namespace/name; absent for other causes.")
    ] = ""
    preemptor_uid: Annotated[str, Allows("The uid of that gang's RayCluster.")] = ""
    replicas: Annotated[
        OrNull[tuple[str, ...]],
        Allows(
            "The replicas that are stopped, each as group/name: the name is that of the pod, or, "
            "with numOfHosts above 1, of the replica. Absent where the whole gang is.",
            **ATOMIC_LIST,
        ),
    ] = ()


class GangLateStarts(Slim, frozen=True):
    """Starts in a row in which the minimum was not ready in time."""

    count: Annotated[int, Allows("How many.", required=True, **COUNT)] = 0
    not_before: Annotated[str, Allows("When the gang may start again.", format="date-time")] = ""
    generation: Annotated[int, Allows("That of the RayCluster; absent with autoscaling.")] = 0
    retry: Annotated[str, Allows("What muster.dev/retry of the RayCluster said.")] = ""


class GangHeld(Slim, frozen=True):
    """How Muster holds the RayCluster back, so that its pods are created when it is admitted."""

    phase: Annotated[
        str,
        Allows(
            "Waiting: suspended by Muster. Resumed: for its placement. Suspending: to be "
            "suspended, for its pods could not all be placed, or another gang comes before it in a "
            "ResourceQuota.",
            required=True,
            enum=list(HELD_PHASES),
        ),
    ] = ""
    generation: Annotated[
        int,
        Allows(
            "That of the RayCluster in which this was seen last. Of an AppWrapper: its generation "
            "and transitionCount together; a placement beside Waiting is of these.",
            **COUNT,
        ),
    ] = 0
    failures: Annotated[
        int, Allows("Times in a row that it could not start although it had its room.", **COUNT)
    ] = 0
    until: Annotated[
        str, Allows("Until when the gang comes after others for it.", format="date-time")
    ] = ""


class GangRefusedReleases(Slim, frozen=True):
    """Placements in a row that were given up because the API server refused a release."""

    count: Annotated[int, Allows("How many.", required=True, **COUNT)] = 0
    until: Annotated[
        str, Allows("Until when the gang comes after others for it.", format="date-time")
    ] = ""


class GangBreaks(Slim, frozen=True):
    """Times in a row that the gang was stopped because a part of its minimum was lost for good."""

    count: Annotated[int, Allows("How many.", required=True, **COUNT)] = 0
    until: Annotated[
        str, Allows("Until when the gang comes after others for it.", format="date-time")
    ] = ""


class GangTogether(Part, frozen=True):
    """The group of gangs that this one starts with. A stamp is that of one placement of all."""

    name: Annotated[str, Allows("As muster.dev/together says it.")] = ""
    size: Annotated[int, Allows("How many members start at once.", **COUNT)] = 0
    stamp: Annotated[
        str, Allows("Equal in all that were placed at once: no pod is released before all say it.")
    ] = ""
    members: Annotated[
        OrNull[tuple[str, ...]],
        Allows("The gangs that were placed at once.", **ATOMIC_LIST),
    ] = ()
    member_uids: Annotated[
        OrNull[tuple[str, ...]],
        Allows("The uids that they are counted by, in that order.", **ATOMIC_LIST),
    ] = ()


class GangMove(Slim, frozen=True):
    """A gang that is to move: it is stopped, and its room is kept where it goes."""

    namespace: Annotated[str, Allows(required=True, **NAME)] = ""
    name: Annotated[str, Allows(required=True, **NAME)] = ""
    decided: Annotated[
        int,
        Allows("Its status.decided when this was asked for: once it is more, it moved.", **COUNT),
    ] = 0
    placement: Annotated[GangPlacement | None, Allows("Where it goes.", required=True)] = None


class GangMoves(Part, frozen=True):
    """Gangs that are to move so that this one can start, as an administrator asked."""

    until: Annotated[
        str, Allows("Until when room is kept for it.", required=True, format="date-time")
    ] = ""
    placement: Annotated[GangPlacement | None, Allows("Where this one starts.", required=True)] = (
        None
    )
    gangs: Annotated[
        OrNull[tuple[GangMove, ...]], Allows(maxItems=64, **map_of("namespace", "name"))
    ] = ()


class GangStatus(Part, frozen=True):
    """What Muster has decided and done."""

    schema_extra: ClassVar[dict[str, Any]] = ATOMIC
    of_others: ClassVar[frozenset[str]] = frozenset({"expected_start", "dispatch", "moves"})
    """What the forecaster, the dispatcher and people write: the coordinator leaves it as it is."""

    phase: Annotated[str, Allows(enum=list(PHASES))] = ""
    epoch: Annotated[
        int | None,
        Allows("Term of the coordinator that wrote this status.", **(COUNT | rules(_EPOCH_RULE))),
    ] = None
    decided: Annotated[
        int, Allows("Placements decided so far; while 0, no pod can have been released.", **COUNT)
    ] = 0
    position: Annotated[
        int | None,
        Allows(
            "Place in the queue, from 1 on; from 5 on rounded where more than 600 gangs wait.",
            **COUNT,
        ),
    ] = None
    ready: Annotated[str, Allows("Pods that are ready, of all, such as 3/5.")] = ""
    ready_pods: Count = 0
    total_pods: Count = 0
    reason: Annotated[str, Allows("Why the gang is in this phase, in one word.")] = ""
    message: Annotated[str, Allows("The same for people, in numbers.")] = ""
    conditions: Annotated[OrNull[tuple[GangCondition, ...]], Allows(**map_of("type"))] = ()
    pod_sets: Annotated[OrNull[tuple[GangPodSetStatus, ...]], Allows(**map_of("name"))] = ()
    placement: GangPlacement | None = None
    planned: Annotated[
        GangPlacement | None,
        Allows(
            "Where the gang will be once what is stopped for it has ended, beside the placement. "
            "The room is kept; nothing is released there before it is in the placement."
        ),
    ] = None
    evictions: Annotated[
        OrNull[tuple[GangEviction, ...]],
        Allows("What of the gang is being stopped.", **ATOMIC_LIST),
    ] = ()
    late_starts: GangLateStarts | None = None
    held: GangHeld | None = None
    refused_releases: GangRefusedReleases | None = None
    breaks: GangBreaks | None = None
    together: GangTogether | None = None
    expected_start: Annotated[
        GangExpectedStart | None,
        Allows("When the gang is expected to start, where the forecaster runs."),
    ] = None
    moves: Annotated[
        GangMoves | None, Allows("What is to move for it, by `muster defrag --apply`.")
    ] = None
    dispatch: Annotated[
        GangDispatch | None,
        Allows("The cluster that the gang is sent to, of a queue with spec.clusters."),
    ] = None
    dispatch_after: Annotated[
        int,
        Allows("The last attempt of which the coordinator knows that it is closed.", **COUNT),
    ] = 0


class GangMeta(ObjectMeta, frozen=True):
    """What a Gang says about itself, with what holds it when it is deleted."""

    finalizers: OrNull[tuple[str, ...]] = ()


class Gang(Slim, frozen=True):
    """A gang: the pods of one RayCluster that must start together. It has the RayCluster's name."""

    metadata: GangMeta = GangMeta()
    spec: GangSpec = GangSpec()
    status: GangStatus = GangStatus()
