"""The events that the state machine takes in.

Three sorts of event: what the watches saw, how our own writes ended, and the passing of terms
and time. A failed write is an event like any other, never an exception that crosses layers.
"""

from dataclasses import dataclass
from enum import IntFlag

from coordinator.messages.write_ends import (
    BudgetsRead,
    EvictionTried,
    LeaseStamped,
    NodeRequestWriteEnded,
    NominationEnded,
    OfferWriteEnded,
    PodPatchEnded,
    QueueWriteEnded,
    RayClusterWriteEnded,
    RayJobWriteEnded,
    WriteEnded,
)
from kube.codec.observed_pod import ObservedPod
from kube.codec.provisioning import NodeRequest
from kube.devices.device_facts import DeviceFact
from kube.gang.offer import OfferForm
from kube.objects.admission import AdmissionRule
from kube.objects.core import DeviceClass, Namespace, Node, PriorityClass
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster, RayOwner
from scheduling.model.gang import GangKey
from scheduling.model.volume import Fact


class Teller(IntFlag):
    """Source of news of a pod: one of the watches, or the answer to a request of our own."""

    ANSWER = 0
    POD_WATCH = 1
    RAY_POD_WATCH = 2
    WRAPPED_POD_WATCH = 4


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod was added or changed."""

    pod: ObservedPod
    teller: Teller = Teller.POD_WATCH


@dataclass(frozen=True, slots=True)
class PodGone:
    """The pod of this name and uid is no more, or no longer among those this teller tells of."""

    namespace: str
    name: str
    uid: str
    teller: Teller = Teller.POD_WATCH


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node was added or changed."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """A RayCluster was added or changed."""

    cluster: RayCluster


@dataclass(frozen=True, slots=True)
class ClusterGone:
    """The RayCluster of this name and uid was removed."""

    key: GangKey
    uid: str


@dataclass(frozen=True, slots=True)
class OfferSeen:
    """A GangOffer was added or changed; it is under the name of its gang."""

    offer: OfferForm


@dataclass(frozen=True, slots=True)
class OfferGone:
    """The GangOffer of this gang and uid was removed."""

    key: GangKey
    uid: str


@dataclass(frozen=True, slots=True)
class RayOwnerSeen:
    """A RayJob or RayService was added or changed."""

    owner: RayOwner


@dataclass(frozen=True, slots=True)
class RayOwnerGone:
    """The RayJob or RayService of this uid was removed."""

    uid: str


@dataclass(frozen=True, slots=True)
class GangSeen:
    """A Gang object was added or changed, by us or by others."""

    gang: Gang


@dataclass(frozen=True, slots=True)
class GangGone:
    """The Gang object of this name was removed; an empty uid means whichever it was."""

    key: GangKey
    uid: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace was added or changed; its labels may opt its Ray clusters in."""

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class PriorityClassSeen:
    """A PriorityClass was added or changed."""

    priority_class: PriorityClass


@dataclass(frozen=True, slots=True)
class PriorityClassGone:
    """A PriorityClass was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """A GangQueue was added or changed."""

    queue: GangQueue


@dataclass(frozen=True, slots=True)
class QueueGone:
    """A GangQueue was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class DeviceClassSeen:
    """A DeviceClass was added or changed."""

    device_class: DeviceClass


@dataclass(frozen=True, slots=True)
class DeviceClassGone:
    """A DeviceClass was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class FactSeen:
    """Something about volumes is new or has changed."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class FactGone:
    """Something about volumes is no more."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class FactsSeen:
    """All facts of a kind have been told."""

    kind: type[Fact]


@dataclass(frozen=True, slots=True)
class FactsLost:
    """The watch of a kind of fact is down; it concerns only gangs that mount volumes."""

    kind: type[Fact]


@dataclass(frozen=True, slots=True)
class DeviceApiSeen:
    """Whether the API server serves devices by claim (`resource.k8s.io/v1`), and its version."""

    version: str
    served: bool


@dataclass(frozen=True, slots=True)
class DeviceFactSeen:
    """Something about devices by claim is new or has changed."""

    fact: DeviceFact


@dataclass(frozen=True, slots=True)
class DeviceFactGone:
    """Something about devices by claim is no more."""

    fact: DeviceFact


@dataclass(frozen=True, slots=True)
class DeviceFactsSeen:
    """All facts of a kind have been told."""

    kind: type[DeviceFact]


@dataclass(frozen=True, slots=True)
class DeviceFactsLost:
    """The watch of a kind of fact is down; it concerns only gangs with claims of devices."""

    kind: type[DeviceFact]


@dataclass(frozen=True, slots=True)
class WatchLost:
    """A watch is down: what it told may be out of date."""

    watch: str


@dataclass(frozen=True, slots=True)
class WatchRecovered:
    """The watch has told what it missed."""

    watch: str


@dataclass(frozen=True, slots=True)
class TermStarted:
    """This replica leads from now on, and its caches are as new as the start of the term.

    `clean`: no request of an earlier leader can be under way any more.
    """

    epoch: int
    clean: bool = False


@dataclass(frozen=True, slots=True)
class TermEnded:
    """This replica no longer leads."""


@dataclass(frozen=True, slots=True)
class CycleDue:
    """The debounce has passed: decide."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A moment that an action asked to be woken at has come."""


@dataclass(frozen=True, slots=True)
class NodeRequestSeen:
    """A ProvisioningRequest of a Gang was added or changed."""

    request: NodeRequest


@dataclass(frozen=True, slots=True)
class NodeRequestGone:
    """A ProvisioningRequest of a Gang was removed."""

    request: NodeRequest


@dataclass(frozen=True, slots=True)
class NodeRequestsListed:
    """All ProvisioningRequests were told of; of a cluster that knows none there are none."""


@dataclass(frozen=True, slots=True)
class AdmissionRuleSeen:
    """A LimitRange, ResourceQuota or RuntimeClass was added or changed."""

    rule: AdmissionRule


@dataclass(frozen=True, slots=True)
class AdmissionRuleGone:
    """A LimitRange, ResourceQuota or RuntimeClass was removed."""

    rule: AdmissionRule


@dataclass(frozen=True, slots=True)
class AdmissionRulesListed:
    """All rules of a kind were told of."""

    kind: type[AdmissionRule]


@dataclass(frozen=True, slots=True)
class SchedulerSeen:
    """The holder of kube-scheduler's Lease, which is another one after each start of it."""

    holder: str


Event = (
    PodSeen
    | PodGone
    | NodeSeen
    | NodeGone
    | ClusterSeen
    | ClusterGone
    | OfferSeen
    | OfferGone
    | RayOwnerSeen
    | RayOwnerGone
    | GangSeen
    | GangGone
    | NamespaceSeen
    | NamespaceGone
    | PriorityClassSeen
    | PriorityClassGone
    | QueueSeen
    | QueueGone
    | DeviceClassSeen
    | DeviceClassGone
    | FactSeen
    | FactGone
    | FactsSeen
    | FactsLost
    | DeviceApiSeen
    | DeviceFactSeen
    | DeviceFactGone
    | DeviceFactsSeen
    | DeviceFactsLost
    | WatchLost
    | WatchRecovered
    | TermStarted
    | TermEnded
    | CycleDue
    | TimePassed
    | WriteEnded
    | QueueWriteEnded
    | PodPatchEnded
    | EvictionTried
    | BudgetsRead
    | RayJobWriteEnded
    | RayClusterWriteEnded
    | OfferWriteEnded
    | LeaseStamped
    | AdmissionRuleSeen
    | AdmissionRuleGone
    | AdmissionRulesListed
    | NominationEnded
    | SchedulerSeen
    | NodeRequestSeen
    | NodeRequestGone
    | NodeRequestsListed
    | NodeRequestWriteEnded
)
