"""Decodes pods, nodes, namespaces, PriorityClasses, and the objects that describe devices."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.objects.base import (
    Condition,
    Labels,
    LabelSelector,
    ObjectMeta,
    OrNull,
    Part,
    Present,
    Quantities,
    SelectorRequirement,
    Slim,
)


class NodeSelectorTerm(Part, frozen=True):
    """Expressions that must all hold; one without any matches no node."""

    match_expressions: OrNull[tuple[SelectorRequirement, ...]] = ()
    match_fields: OrNull[tuple[SelectorRequirement, ...]] = ()


class NodeSelector(Part, frozen=True):
    """ORed terms."""

    node_selector_terms: OrNull[tuple[NodeSelectorTerm, ...]] = ()


class NodeAffinity(Slim, frozen=True):
    """The preferred part only scores, and is not read here."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Part, frozen=True):
    """Which pods a pod wants near to it, or far from it.

    Keys to match or mismatch are not read: the API server has merged them into the selector.
    """

    label_selector: LabelSelector | None = None
    namespaces: OrNull[tuple[str, ...]] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class PodAffinity(Part, frozen=True):
    """Affinity or anti-affinity between pods, the required part of it."""

    required: OrNull[tuple[PodAffinityTerm, ...]] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Slim, frozen=True):
    """All that a pod says about nodes and other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Slim, frozen=True):
    """A toleration as stored: an absent operator means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Part, frozen=True):
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


class ResourceRequirements(Part, frozen=True):
    """Requests; the API server has copied limits into requests where none were given."""

    requests: OrNull[Quantities] = {}


class RestartRule(Slim, frozen=True):
    """What a container's exit does to the pod."""

    action: str = ""


class Container(Part, frozen=True):
    """A container or init container."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: OrNull[tuple[RestartRule, ...]] = ()
    ports: OrNull[tuple[ContainerPort, ...]] = ()


class VolumeSource(Slim, frozen=True):
    """The source of a volume: a claim, or a disk in the fields of its kind."""

    claim_name: str = ""
    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class PodResourceClaim(Slim, frozen=True):
    """A claim that a pod asks for: one by name, or one of its own made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class ResourceClaimMade(Slim, frozen=True):
    """Which claim was made for a pod; without a name it was meant to have none."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceClaim(Slim, frozen=True):
    """The claim that kube-scheduler made for the extended resources of a pod."""

    resource_claim_name: str = ""


class PodSpec(Part, frozen=True):
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
    resource_claims: OrNull[tuple[PodResourceClaim, ...]] = ()
    priority: int | None = None
    priority_class_name: str = ""
    scheduling_group: Present | None = None
    host_network: bool = False
    host_users: bool | None = None


class ContainerStatus(Part, frozen=True):
    """What a container was given (allocated) and what it runs with (resources)."""

    name: str = ""
    allocated_resources: OrNull[Quantities] = {}
    resources: ResourceRequirements | None = None


class PodStatus(Part, frozen=True):
    """How a pod fares; `resources` and `allocated_resources` are those of the pod level."""

    phase: str = ""
    conditions: OrNull[tuple[Condition, ...]] = ()
    nominated_node_name: str = ""
    container_statuses: OrNull[tuple[ContainerStatus, ...]] = ()
    init_container_statuses: OrNull[tuple[ContainerStatus, ...]] = ()
    allocated_resources: OrNull[Quantities] = {}
    resources: ResourceRequirements | None = None
    resource_claim_statuses: OrNull[tuple[ResourceClaimMade, ...]] = ()
    extended_resource_claim_status: ExtendedResourceClaim | None = None


class Pod(Slim, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Place(Part, frozen=True):
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


class NodeSpec(Part, frozen=True):
    """What an administrator says of a node."""

    unschedulable: bool = False
    taints: OrNull[tuple[NodeTaint, ...]] = ()


class NodeStatus(Part, frozen=True):
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
    """The name under which pods may request devices of a class as a plain resource."""

    extended_resource_name: str | None = None


class DeviceClass(Slim, frozen=True):
    """A class of devices that claims are for."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceObject(Slim, frozen=True):
    """An object of dynamic resource allocation: its spec and status stay plain JSON.

    What is not known in them has to be named, and never passed over: a struct would drop it.
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: Any = None
    status: Any = None
