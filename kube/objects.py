"""Which fields of which Kubernetes objects does Muster read?

Slim structs for decoding: only fields in use, everything else in the JSON is skipped. A list
or a map that is null or absent reads as empty, so that nobody has to ask which of the two it
was. All are frozen; decoded JSON has no cycles, hence `gc=False`: with tens of thousands of
pods the collector would otherwise walk all of them again and again.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")

if TYPE_CHECKING:
    # Once decoded it is never None: `_Part.__post_init__` sees to that.
    OrNull = Annotated[T, "null in JSON reads as empty"]
else:
    OrNull = T | None

Labels = Mapping[str, str]
Quantity = str | int | float
Quantities = Mapping[str, Quantity]


class Present(msgspec.Struct, frozen=True, gc=False):
    """Some object of which only the existence matters."""


class Slim(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Base of all structs here; the others inherit `gc=False` and the spelling."""


class _Part(Slim, frozen=True):
    """A struct with lists or maps in it: null becomes the empty value of the field."""

    def __post_init__(self) -> None:
        for name, empty in _empties(type(self)):
            if getattr(self, name) is None:
                msgspec.structs.force_setattr(self, name, empty())


_EMPTIES: dict[type, tuple[tuple[str, Callable[[], Any]], ...]] = {}


def _empties(kind: type[msgspec.Struct]) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """List the fields of a struct that are empty by default, worked out once per struct."""
    known = _EMPTIES.get(kind)
    if known is None:
        fields = msgspec.structs.fields(kind)
        lists = tuple((f.name, tuple) for f in fields if f.default == ())
        maps = tuple((f.name, dict) for f in fields if f.default_factory is dict)
        known = _EMPTIES[kind] = (*lists, *maps)
    return known


class OwnerReference(Slim, frozen=True):
    """Who made an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(_Part, frozen=True):
    """What every object says about itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: OrNull[Labels] = {}
    annotations: OrNull[Labels] = {}
    owner_references: OrNull[tuple[OwnerReference, ...]] = ()


class Condition(Slim, frozen=True):
    """One condition of a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class SelectorRequirement(_Part, frozen=True):
    """One expression of a node selector term or of a label selector."""

    key: str = ""
    operator: str = ""
    values: OrNull[tuple[str, ...]] = ()


class NodeSelectorTerm(_Part, frozen=True):
    """Expressions that must all hold; one without any matches no node."""

    match_expressions: OrNull[tuple[SelectorRequirement, ...]] = ()
    match_fields: OrNull[tuple[SelectorRequirement, ...]] = ()


class NodeSelector(_Part, frozen=True):
    """ORed terms."""

    node_selector_terms: OrNull[tuple[NodeSelectorTerm, ...]] = ()


class NodeAffinity(Slim, frozen=True):
    """The preferred part only scores, nobody here reads it."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class LabelSelector(_Part, frozen=True):
    """Labels and expressions that must all hold; without any it matches everything."""

    match_labels: OrNull[Labels] = {}
    match_expressions: OrNull[tuple[SelectorRequirement, ...]] = ()


class PodAffinityTerm(_Part, frozen=True):
    """Which pods a pod wants near to it, or far from it.

    Keys to match or mismatch are not read: the API server has merged them into the selector.
    """

    label_selector: LabelSelector | None = None
    namespaces: OrNull[tuple[str, ...]] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class PodAffinity(_Part, frozen=True):
    """Affinity or anti-affinity between pods, the required part of it."""

    required: OrNull[tuple[PodAffinityTerm, ...]] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Slim, frozen=True):
    """All that a pod says about where and near whom."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Slim, frozen=True):
    """A toleration as stored: an absent operator means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(_Part, frozen=True):
    """How evenly pods are to be spread; what is absent means what the API says it means."""

    when_unsatisfiable: str = ""
    topology_key: str = ""
    max_skew: int = 1
    min_domains: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: OrNull[tuple[str, ...]] = ()
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class SchedulingGate(Slim, frozen=True):
    """One scheduling gate."""

    name: str = ""


class ContainerPort(Slim, frozen=True):
    """A port; without a host port it means nothing to the scheduler.

    With hostNetwork the API server has set it to the container's port.
    """

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ResourceRequirements(_Part, frozen=True):
    """Requests; the API server has copied limits into requests where none were given."""

    requests: OrNull[Quantities] = {}


class RestartRule(Slim, frozen=True):
    """What a container's exit does to the pod."""

    action: str = ""


class Container(_Part, frozen=True):
    """A container or init container."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: OrNull[tuple[RestartRule, ...]] = ()
    ports: OrNull[tuple[ContainerPort, ...]] = ()


class VolumeSource(Slim, frozen=True):
    """Where a volume comes from: a claim, or a disk that is told by fields of its kind."""

    claim_name: str = ""
    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class PodSpec(_Part, frozen=True):
    """What the scheduler reads of a pod. A volume maps `name` and the kind of its source."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: OrNull[tuple[SchedulingGate, ...]] = ()
    node_selector: OrNull[Labels] = {}
    affinity: Affinity | None = None
    tolerations: OrNull[tuple[Toleration, ...]] = ()
    topology_spread_constraints: OrNull[tuple[TopologySpreadConstraint, ...]] = ()
    containers: OrNull[tuple[Container, ...]] = ()
    init_containers: OrNull[tuple[Container, ...]] = ()
    overhead: OrNull[Quantities] = {}
    resources: ResourceRequirements | None = None
    volumes: OrNull[tuple[Mapping[str, str | VolumeSource | None], ...]] = ()
    resource_claims: OrNull[tuple[Present, ...]] = ()
    priority: int | None = None
    priority_class_name: str = ""
    scheduling_group: Present | None = None
    host_network: bool = False
    host_users: bool | None = None


class ContainerStatus(_Part, frozen=True):
    """What a container was given (allocated) and what it runs with (resources)."""

    name: str = ""
    allocated_resources: OrNull[Quantities] = {}
    resources: ResourceRequirements | None = None


class PodStatus(_Part, frozen=True):
    """How a pod fares; `resources` and `allocated_resources` are those of the pod level."""

    phase: str = ""
    conditions: OrNull[tuple[Condition, ...]] = ()
    nominated_node_name: str = ""
    container_statuses: OrNull[tuple[ContainerStatus, ...]] = ()
    init_container_statuses: OrNull[tuple[ContainerStatus, ...]] = ()
    allocated_resources: OrNull[Quantities] = {}
    resources: ResourceRequirements | None = None


class Pod(Slim, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Place(_Part, frozen=True):
    """Where a pod is, and what holds it."""

    node_name: str = ""
    scheduling_gates: OrNull[tuple[SchedulingGate, ...]] = ()


class Stage(Slim, frozen=True):
    """How far a pod has come."""

    phase: str = ""
    nominated_node_name: str = ""


class BarePod(Slim, frozen=True):
    """What must be known of a pod even where the rest of it cannot be read."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Place = Place()
    status: Stage = Stage()


class BareNode(Slim, frozen=True):
    """The same of a node."""

    metadata: ObjectMeta = ObjectMeta()


class NodeTaint(Slim, frozen=True):
    """A taint as stored."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(_Part, frozen=True):
    """What an administrator says of a node."""

    unschedulable: bool = False
    taints: OrNull[tuple[NodeTaint, ...]] = ()


class NodeStatus(_Part, frozen=True):
    """What the kubelet says of its node."""

    allocatable: OrNull[Quantities] = {}
    declared_features: OrNull[tuple[str, ...]] = ()


class Node(Slim, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Slim, frozen=True):
    """A namespace; its labels may opt its Ray clusters in."""

    metadata: ObjectMeta = ObjectMeta()


class PriorityClass(Slim, frozen=True):
    """A priority class."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False


class DeviceClassSpec(Slim, frozen=True):
    """Of a class of devices only under which name pods may ask for them as a plain resource."""

    extended_resource_name: str | None = None


class DeviceClass(Slim, frozen=True):
    """A class of devices that claims are for."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class ObjectReference(Slim, frozen=True):
    """Another object, by name, and by uid where one is meant."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeClaimSpec(_Part, frozen=True):
    """What a claim asks for, and the volume that it names."""

    access_modes: OrNull[tuple[str, ...]] = ()
    resources: ResourceRequirements = ResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class Phase(Slim, frozen=True):
    """A status of which only the phase is read."""

    phase: str = ""


class PersistentVolumeClaim(Slim, frozen=True):
    """A claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: Phase = Phase()


class VolumeNodeAffinity(Slim, frozen=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class CSISource(Slim, frozen=True):
    """A disk of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(_Part, frozen=True):
    """Where a volume is and whose it is; the in-tree kinds are those that CSI drivers take over."""

    capacity: OrNull[Quantities] = {}
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    storage_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: VolumeSource | None = None
    azure_disk: VolumeSource | None = None
    cinder: VolumeSource | None = None
    gce_persistent_disk: VolumeSource | None = None
    portworx_volume: VolumeSource | None = None


class PersistentVolume(Slim, frozen=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: Phase = Phase()


class TopologyExpression(_Part, frozen=True):
    """Values that a label of a node may have."""

    key: str = ""
    values: OrNull[tuple[str, ...]] = ()


class TopologyTerm(_Part, frozen=True):
    """Expressions that must all hold."""

    match_label_expressions: OrNull[tuple[TopologyExpression, ...]] = ()


class StorageClass(_Part, frozen=True):
    """A storage class."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: OrNull[tuple[TopologyTerm, ...]] = ()


class CSIDriverSpec(Slim, frozen=True):
    """Whether a driver publishes how much storage it has where."""

    storage_capacity: bool | None = None


class CSIDriver(Slim, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Slim, frozen=True):
    """How much storage of a class there is for the nodes of one topology."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class VolumeCount(Slim, frozen=True):
    """How many volumes; None is no limit."""

    count: int | None = None


class CSINodeDriver(_Part, frozen=True):
    """A driver on a node."""

    name: str = ""
    allocatable: VolumeCount | None = None
    topology_keys: OrNull[tuple[str, ...]] = ()


class CSINodeSpec(_Part, frozen=True):
    """The drivers on a node."""

    drivers: OrNull[tuple[CSINodeDriver, ...]] = ()


class CSINode(Slim, frozen=True):
    """What CSI drivers say of a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class AttachmentSource(Slim, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Slim, frozen=True):
    """What is attached where, and by which driver."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Slim, frozen=True):
    """A volume that is to be attached to a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class WorkerGroup(Slim, frozen=True):
    """The numbers of a worker group; None where the RayCluster is silent."""

    group_name: str = ""
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int | None = None
    suspend: bool | None = None


class RayClusterSpec(_Part, frozen=True):
    """What of a RayCluster makes its gang; templates are never read.

    `groups_left_out` is no field of KubeRay: how many worker groups there were, where they are too
    many to be kept.
    """

    worker_group_specs: OrNull[tuple[WorkerGroup, ...]] = ()
    enable_in_tree_autoscaling: bool | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    groups_left_out: int = 0


class RayClusterStatus(_Part, frozen=True):
    """What KubeRay says of a RayCluster, and of which generation of its spec."""

    conditions: OrNull[tuple[Condition, ...]] = ()
    state: str = ""
    observed_generation: int = 0


class RayCluster(Slim, frozen=True):
    """A RayCluster, also when a RayJob or RayService made it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RayClusterSpec = RayClusterSpec()
    status: RayClusterStatus = RayClusterStatus()


class GangPodSet(Slim, frozen=True):
    """A pod set of a gang as understood: how many pods it has, how many must start at once."""

    name: str = ""
    count: int = 0
    minimum: int = 0
    hosts: int = 1


class GangTopology(Slim, frozen=True):
    """The labels within one value of which workers, and the pods of a replica, are to be."""

    required: str = ""
    preferred: str = ""
    replica: str = ""


class GangSpec(_Part, frozen=True):
    """What Muster understood of a RayCluster."""

    queue: str = ""
    priority: int = 0
    ray_cluster_uid: str = ""
    pod_sets: OrNull[tuple[GangPodSet, ...]] = ()
    topology: GangTopology | None = None


class GangCondition(Slim, frozen=True):
    """A condition of a gang, whole, because it is written back with its transition time."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class HolderShare(Slim, frozen=True):
    """Who holds how much of a resource."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    amount: Quantity = ""


class GangShortage(_Part, frozen=True):
    """What stops the next pod of a pod set."""

    resource: str = ""
    each: Quantity = ""
    needed: Quantity = ""
    free: Quantity = ""
    left: Quantity = ""
    largest: Quantity = ""
    total: Quantity = ""
    holders: OrNull[tuple[HolderShare, ...]] = ()


class GangPodSetStatus(Slim, frozen=True):
    """How far a pod set has come, and what it waits for."""

    name: str = ""
    count: int = 0
    minimum: int = 0
    gated: int = 0
    released: int = 0
    not_released: int = 0
    bound: int = 0
    ready: int = 0
    kept: int = 0
    reason: str = ""
    message: str = ""
    shortage: GangShortage | None = None


class PlacedShape(_Part, frozen=True):
    """The nodes of the pods of one shape (and replica)."""

    shape: str = ""
    replica: str = ""
    requests: OrNull[Quantities] = {}
    nodes: OrNull[Mapping[str, int]] = {}
    turn: int = 0


class PlacedPodSet(_Part, frozen=True):
    """The assignments of one pod set."""

    name: str = ""
    assignments: OrNull[tuple[PlacedShape, ...]] = ()


class GangPlacement(_Part, frozen=True):
    """A placement as written down, with the epoch of the leader that wrote it."""

    epoch: int = 0
    pod_sets: OrNull[tuple[PlacedPodSet, ...]] = ()


class GangStatus(_Part, frozen=True):
    """What Muster has decided and done about a gang."""

    phase: str = ""
    epoch: int | None = None
    decided: int = 0
    position: int | None = None
    ready: str = ""
    ready_pods: int = 0
    total_pods: int = 0
    reason: str = ""
    message: str = ""
    conditions: OrNull[tuple[GangCondition, ...]] = ()
    pod_sets: OrNull[tuple[GangPodSetStatus, ...]] = ()
    placement: GangPlacement | None = None


class GangMeta(ObjectMeta, frozen=True):
    """What a Gang says about itself, with what holds it when it is deleted."""

    finalizers: OrNull[tuple[str, ...]] = ()


class Gang(Slim, frozen=True):
    """The gang of a RayCluster."""

    metadata: GangMeta = GangMeta()
    spec: GangSpec = GangSpec()
    status: GangStatus = GangStatus()


class GangQueueSpec(_Part, frozen=True):
    """Of a queue only what is in use so far: that it exists."""

    parent: str = ""


class GangQueue(Slim, frozen=True):
    """A queue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GangQueueSpec = GangQueueSpec()
