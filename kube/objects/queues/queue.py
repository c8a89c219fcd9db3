"""GangQueue: its fields, as they are read, and what the API server allows in them.

The CustomResourceDefinition is generated from these structs (`crds`), and `kube.codec.queues` reads
them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from kube.objects.base import (
    Labels,
    LabelSelector,
    ObjectMeta,
    OrNull,
    Part,
    Quantities,
    Quantity,
    SelectorRequirement,
    Slim,
)
from kube.objects.clusters.queue_clusters import REQUEUE, WAIT, QueueClusters
from kube.objects.gang import COUNT, NAME, GangCondition
from kube.objects.queues.fair_share import FairShare, FairSharing
from kube.objects.queues.learned_durations import LearnedDurations
from kube.objects.schema import ATOMIC, ATOMIC_LIST, Allows, map_of, rules

CREATE_ALWAYS = "Always"
CREATE_WHEN_ADMITTED = "WhenAdmitted"
KEEP_BROKEN = "Keep"
REQUEUE_BROKEN = "Requeue"
RESOURCES_LIMITED = "ResourcesLimited"
USAGE_COUNTED = "UsageCounted"
DURATIONS_LEARNED = "DurationsLearned"
LONGEST_SLOT = 30 * 24 * 3600
"""Seconds for which a slot may be kept: as with the coordinator's setting, never for ever."""

_SECONDS: dict[str, Any] = {"minimum": 1, "format": "int64"}

_LIMIT_RULES = (
    (
        "has(self.parent) || !has(self.borrowingLimit)",
        "borrowingLimit needs a parent to borrow from",
    ),
    ("has(self.parent) || !has(self.lendingLimit)", "lendingLimit needs a parent to lend to"),
)
_CLUSTERS_RULE = (
    "!has(self.clusters) || !has(self.whenBlocked) || self.whenBlocked != 'Backfill'",
    "a queue with clusters is Strict or BestEffort: Backfill needs nodes, which are not here",
)

# A pattern binds texts alone, so numbers have a rule. The API server refuses rules of which it
# cannot tell that they are cheap, hence the bounds.
Amounts = Mapping[str, Annotated[Quantity, Allows(maxLength=32)]]
_AMOUNTS: dict[str, Any] = {
    "maxProperties": 64,
    **rules(
        (
            "self.all(name, type(self[name]) == string || self[name] >= 0)",
            "amounts must not be negative",
        )
    ),
}
_LOST_RULE = (
    "!has(self.whenClusterLost) || self.whenClusterLost != 'Requeue' || has(self.clusters)",
    "whenClusterLost: Requeue is of queues with clusters",
)
_PARENT_RULE = (
    "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
    "a queue cannot be its own parent",
)


class QueueSelectorRequirement(SelectorRequirement, frozen=True):
    """One expression of a label selector."""

    key: Annotated[str, Allows(required=True)] = ""
    operator: Annotated[
        str, Allows(required=True, enum=["In", "NotIn", "Exists", "DoesNotExist"])
    ] = ""
    values: Annotated[OrNull[tuple[str, ...]], Allows(**ATOMIC_LIST)] = ()


class QueueSelector(LabelSelector, frozen=True):
    """Labels and expressions that must all hold; an empty one matches everything."""

    schema_extra: ClassVar[dict[str, Any]] = ATOMIC

    match_labels: OrNull[Labels] = {}
    match_expressions: Annotated[
        OrNull[tuple[QueueSelectorRequirement, ...]], Allows(**ATOMIC_LIST)
    ] = ()


class Preemption(Slim, frozen=True):
    """When running gangs may be stopped for waiting ones."""

    within_queue: Annotated[
        str, Allows("For gangs of the same queue.", enum=["Never", "LowerPriority"])
    ] = "Never"
    reclaim: Annotated[
        str,
        Allows(
            "To take back quota that other queues have borrowed.",
            enum=["Never", "LowerPriority", "Any"],
        ),
    ] = "Never"
    while_borrowing: Annotated[
        str,
        Allows(
            "For a gang that would borrow, of gangs of other queues below the same root that "
            "borrow, too.",
            enum=["Never", "LowerPriority"],
        ),
    ] = "Never"
    while_borrowing_max_priority: Annotated[
        int | None,
        Allows(
            "whileBorrowing stops none of a higher priority. Absent means any that is lower than "
            "that of the waiting gang.",
            format="int64",
        ),
    ] = None
    jobs_may_be_lost: Annotated[
        bool,
        Allows(
            "Gangs of this queue may be stopped also where their RayJob can neither be suspended "
            "nor has a retry left."
        ),
    ] = False
    delete_after_seconds: Annotated[
        int | None,
        Allows(
            "Pods of a gang of this queue that is being stopped are deleted after so long where "
            "their eviction is refused; a PodDisruptionBudget then keeps no gang from being "
            "chosen. Absent means never.",
            **_SECONDS,
        ),
    ] = None


class Timeouts(Slim, frozen=True):
    """How long the start of a gang may take, and how long it may take to mend one that ran."""

    ready_seconds: Annotated[
        int | None,
        Allows(
            "From the placement until the minimum is ready; else the gang is evicted and waits "
            "again. Absent means for ever.",
            **_SECONDS,
        ),
    ] = None
    retries: Annotated[
        int,
        Allows(
            "How often in a row it is started again; then it is Failed.",
            minimum=0,
            maximum=1000,
            format="int64",
        ),
    ] = 3
    backoff_seconds: Annotated[
        int,
        Allows(
            "Between the end of the first start and the next; doubled each time, to 3600 at most.",
            **(_SECONDS | {"maximum": 3600}),
        ),
    ] = 60
    create_seconds: Annotated[
        int,
        Allows(
            "For how long room and quota are kept for pods that are still to be created, from the "
            "last one that came; then a gang that was held gives them back and waits again.",
            **(_SECONDS | {"maximum": 3600}),
        ),
    ] = 60
    slot_seconds: Annotated[
        int | None,
        Allows(
            "For how long the slot of a lost pod is kept for its replacement; 0 keeps none. Absent "
            "means as long as the coordinator's SLOT_PATIENCE.",
            minimum=0,
            maximum=LONGEST_SLOT,
            format="int64",
        ),
    ] = None


class Provisioning(Part, frozen=True):
    """How an autoscaler is asked for nodes when a gang is refused for room."""

    class_name: Annotated[
        str,
        Allows(
            "The provisioningClassName of the ProvisioningRequest, such as "
            "best-effort-atomic-scale-up.autoscaling.x-k8s.io.",
            required=True,
            pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            minLength=1,
            maxLength=253,
        ),
    ] = ""
    parameters: Annotated[
        OrNull[Mapping[str, Annotated[str, Allows(maxLength=255)]]],
        Allows("Its parameters, as the class has them.", maxProperties=16),
    ] = {}
    backoff_seconds: Annotated[
        int,
        Allows(
            "Between the end of a request that failed and the next one; doubled each time, to "
            "3600 at most.",
            **(_SECONDS | {"maximum": 3600}),
        ),
    ] = 60


class Ageing(Slim, frozen=True):
    """When a blocked gang has waited enough: nothing passes it any more."""

    max_passes: Annotated[
        int, Allows("How many gangs may be admitted past it.", minimum=0, format="int64")
    ] = 100
    max_wait_seconds: Annotated[
        int, Allows("How long others may pass it, from its creation on.", **_SECONDS)
    ] = 86_400


class GangQueueSpec(Part, frozen=True):
    """The rules of a queue."""

    schema_extra: ClassVar[dict[str, Any]] = rules(*_LIMIT_RULES, _CLUSTERS_RULE, _LOST_RULE)

    parent: Annotated[str, Allows("The queue to borrow from.", **NAME)] = ""
    quota: Annotated[
        Amounts | None, Allows("What the gangs of the queue may hold together.", **_AMOUNTS)
    ] = None
    borrowing_limit: Annotated[
        Amounts | None,
        Allows("How much of the parent's free quota may be taken beside it.", **_AMOUNTS),
    ] = None
    lending_limit: Annotated[
        Amounts | None,
        Allows(
            "How much of the quota, and of what the queues below lend, others may take while it is "
            "free.",
            **_AMOUNTS,
        ),
    ] = None
    namespace_selector: Annotated[
        QueueSelector | None, Allows("The namespaces whose gangs may use the queue.")
    ] = None
    node_selector: Annotated[
        OrNull[Labels],
        Allows("Labels of the nodes that gangs of the queue and those below it may use."),
    ] = {}
    node_selector_scope: Annotated[
        str,
        Allows(
            "The pods that nodeSelector binds: those that ask for a device under quota; or all.",
            enum=["Devices", "All"],
        ),
    ] = "Devices"
    ordering: Annotated[
        str, Allows("Priority, then first come; or first come alone.", enum=["Priority", "FIFO"])
    ] = "Priority"
    when_blocked: Annotated[
        str,
        Allows(
            "What may pass a gang that does not fit.", enum=["Strict", "BestEffort", "Backfill"]
        ),
    ] = "BestEffort"
    stop: Annotated[
        str,
        Allows(
            "Hold: the queue and those below it admit nothing new. HoldAndDrain: what runs in them "
            "is stopped, too.",
            enum=["None", "Hold", "HoldAndDrain"],
        ),
    ] = "None"
    when_broken: Annotated[
        str,
        Allows(
            "What becomes of a gang that ran and lacks a part of its minimum for timeouts."
            "slotSeconds, 30 at least: it is left as it is, or stopped whole to wait again.",
            enum=[KEEP_BROKEN, REQUEUE_BROKEN],
        ),
    ] = KEEP_BROKEN
    create_pods: Annotated[
        str,
        Allows(
            "Whether pods of gangs that wait are created, gated, or only when they are admitted; "
            "muster.dev/create-pods of a RayCluster overrides it.",
            enum=[CREATE_ALWAYS, CREATE_WHEN_ADMITTED],
        ),
    ] = CREATE_ALWAYS
    ageing: Annotated[Ageing | None, Allows("When nothing passes a blocked gang any more.")] = None
    default_duration_seconds: Annotated[
        int | None,
        Allows("How long gangs run that have no muster.dev/expected-duration.", **_SECONDS),
    ] = None
    fair_sharing: Annotated[
        FairSharing | None,
        Allows(
            "Order queues, and with ordering Priority the namespaces in the queue, by what they "
            "used over time. Absent means by what queues use at the moment."
        ),
    ] = None
    preemption: Preemption | None = None
    timeouts: Timeouts | None = None
    provisioning: Annotated[
        Provisioning | None,
        Allows(
            "Cluster Autoscaler is asked for nodes by a ProvisioningRequest for gangs that are "
            "refused for room. Absent means never."
        ),
    ] = None
    clusters: Annotated[
        QueueClusters | None,
        Allows(
            "The MemberClusters that its gangs are sent to, each to one. Absent means that they "
            "run on this cluster."
        ),
    ] = None
    when_cluster_lost: Annotated[
        str,
        Allows(
            "What becomes of a gang whose cluster is lost: it stays there, or is sent to another "
            "one after clusters.lostAfterSeconds. With Requeue gangs stop wherever they run when "
            "this cluster, or its dispatcher, is away for so long.",
            enum=[WAIT, REQUEUE],
        ),
    ] = WAIT

    @property
    def lost_after(self) -> int:
        """Seconds after which its gangs are sent from a lost cluster to another; 0 for never."""
        fenced = self.clusters is not None and self.when_cluster_lost == REQUEUE
        return self.clusters.lost_after_seconds if self.clusters and fenced else 0


class QueueHole(Slim, frozen=True):
    """How many pods of one size still fit on the nodes that gangs of the queue may use."""

    resource: Annotated[str, Allows("The GPUs that are counted.", required=True)] = ""
    size: Annotated[int, Allows("GPUs of one pod.", required=True, **COUNT)] = 0
    pods: Annotated[
        int,
        Allows("Pods that fit with the CPU and memory that is typical beside a GPU.", **COUNT),
    ] = 0
    at_most: Annotated[
        int, Allows("Pods that fit where GPUs alone count: no more of them do.", **COUNT)
    ] = 0


class GangQueueStatus(Part, frozen=True):
    """What the queue holds now."""

    pending: Annotated[int, Allows("Gangs that wait.", **COUNT)] = 0
    admitted: Annotated[int, Allows("Gangs that hold anything.", **COUNT)] = 0
    usage: Annotated[
        OrNull[Quantities],
        Allows("What its gangs hold, and what the queues below it use of its quota."),
    ] = {}
    reserved: Annotated[
        OrNull[Quantities], Allows("What its own gangs hold for pods that are not bound yet.")
    ] = {}
    borrowed: Annotated[
        OrNull[Quantities], Allows("Usage beyond the quota of the queue and those below it.")
    ] = {}
    summary: Annotated[str, Allows("Usage and quota of its resources, devices first.")] = ""
    holes: Annotated[
        OrNull[tuple[QueueHole, ...]],
        Allows(
            "What fits on the nodes that its gangs may use, whatever the quota; each size is "
            "counted alone.",
            **ATOMIC_LIST,
        ),
    ] = ()
    fair_share: FairShare | None = None
    learned_durations: LearnedDurations | None = None
    conditions: Annotated[OrNull[tuple[GangCondition, ...]], Allows(**map_of("type"))] = ()


class QueueMeta(ObjectMeta, frozen=True):
    """What a GangQueue says about itself, with what holds it when it is deleted."""

    finalizers: OrNull[tuple[str, ...]] = ()


class GangQueue(Slim, frozen=True):
    """A queue: quota, order and preemption for the gangs that wait in it."""

    schema_extra: ClassVar[dict[str, Any]] = rules(_PARENT_RULE)

    metadata: QueueMeta = QueueMeta()
    spec: GangQueueSpec = GangQueueSpec()
    status: GangQueueStatus = GangQueueStatus()
