"""Turns watch events into events of the state machine."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, assert_never

from appwrapper.gang.stand_in import StandIn
from appwrapper.gang.watched import as_gang
from coordinator.messages import events as happened
from coordinator.messages.events import Event, Teller
from kube.api.watch import events as watch_events
from kube.api.watch.events import (
    Blind,
    Changed,
    Deleted,
    Sighted,
    Sink,
    Synced,
    Unreadable,
    Watched,
    WatchEvent,
    feeding,
    translated,
)
from kube.codec.observed_pod import ObservedPod
from kube.codec.provisioning import node_request_of
from kube.codec.volumes.storage import ObservedFact
from kube.devices.device_facts import DeviceFact, DeviceWatch, ObservedDeviceFact
from kube.gang.dispatched import DispatchedForm
from kube.gang.dispatched import as_gang as gang_of_sent
from kube.gang.offer import OfferForm
from kube.gang.offer import as_gang as gang_of_offer
from kube.objects.admission import AdmissionRule
from kube.objects.core import DeviceClass, Namespace, Node, PriorityClass
from kube.objects.gang import Gang
from kube.objects.provisioning import ProvisioningRequest
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster, RayJob, RayService
from kube.ray.wrapped_by import WrapperOf, is_made_for_wrapper, wrapped_by
from scheduling.model.gang import GangKey
from scheduling.model.holder import is_of_ray_cluster
from scheduling.model.volume import Fact

T = TypeVar("T", bound=Watched)
Feed: TypeAlias = Callable[[Iterable[Event]], None]
Translate: TypeAlias = watch_events.Translate[T, Event]


def watch_sink(feed: Feed, watch: str, translate: Translate[T]) -> Sink[T]:
    """Return the sink of a watch that every gang needs: the state machine hears when it is down."""

    def event_of(told: WatchEvent[T]) -> Event | None:
        match told:
            case Blind():
                return happened.WatchLost(watch)
            case Sighted():
                return happened.WatchRecovered(watch)
            case _:
                return translate(told)

    return feeding(feed, event_of)


def admission_sink(feed: Feed, kind: type[AdmissionRule]) -> Sink[Any]:
    """Return the sink of one kind of rule."""
    return feeding(feed, partial(admission_event, kind=kind))


def admission_event(told: WatchEvent[Any], kind: type[AdmissionRule]) -> Event | None:
    """Take in a rule by which pods are admitted."""
    match told:
        case Changed(obj=rule):
            return happened.AdmissionRuleSeen(rule)
        case Deleted(obj=rule):
            return happened.AdmissionRuleGone(rule)
        case Synced():
            return happened.AdmissionRulesListed(kind)
        case _:
            return None


def node_request_event(told: WatchEvent[ProvisioningRequest]) -> Event | None:
    """Take in what was asked of an autoscaler, as far as it is ours."""
    match told:
        case Changed(obj=found) if (request := node_request_of(found)) is not None:
            return happened.NodeRequestSeen(request)
        case Deleted(obj=found) if (request := node_request_of(found)) is not None:
            return happened.NodeRequestGone(request)
        case Synced():
            return happened.NodeRequestsListed()
        case _:
            return None


def fact_sink(feed: Feed, kind: type[Fact]) -> Sink[ObservedFact]:
    """One fact that cannot be read is as bad as a watch that is down, until a list has none.

    It may be a disk that would then not be counted.
    """
    unread = False

    def sink(batch: list[WatchEvent[ObservedFact]]) -> None:
        nonlocal unread
        is_list = any(isinstance(told, Synced) for told in batch)
        unread = any(isinstance(told, Unreadable) for told in batch) or (unread and not is_list)
        events = [fact_event(told, kind) for told in batch]
        lost = happened.FactsLost(kind)
        feed([lost if unread and event == happened.FactsSeen(kind) else event for event in events])

    return sink


def fact_event(told: WatchEvent[ObservedFact], kind: type[Fact]) -> Event:
    """Take in a fact of storage."""
    match told:
        case Changed(obj=seen):
            return happened.FactSeen(seen.fact)
        case Deleted(obj=seen):
            return happened.FactGone(seen.fact)
        case Synced() | Sighted():
            return happened.FactsSeen(kind)
        case Blind() | Unreadable():
            return happened.FactsLost(kind)
        case _:
            assert_never(told)


def device_sink(feed: Feed, watch: DeviceWatch) -> Sink[ObservedDeviceFact]:
    """Return the sink of one kind of facts of devices by claim."""
    return feeding(feed, partial(device_event, kind=watch.fact))


def device_event(told: WatchEvent[ObservedDeviceFact], kind: type[DeviceFact]) -> Event:
    """Take in a fact of devices by claim; none is unreadable, so that is as bad as a lost watch."""
    match told:
        case Changed(obj=seen):
            return happened.DeviceFactSeen(seen.fact)
        case Deleted(obj=seen):
            return happened.DeviceFactGone(seen.fact)
        case Synced() | Sighted():
            return happened.DeviceFactsSeen(kind)
        case Blind() | Unreadable():
            return happened.DeviceFactsLost(kind)
        case _:
            assert_never(told)


def pod_event(told: WatchEvent[ObservedPod], teller: Teller = Teller.POD_WATCH) -> Event | None:
    """Take in a pod, from one of the watches of pods."""
    match told:
        case Changed(obj=pod):
            return happened.PodSeen(pod, teller)
        case Deleted(obj=pod):
            return happened.PodGone(pod.namespace, pod.name, pod.uid, teller)
        case _:
            return None


def ray_cluster_event(
    told: WatchEvent[RayCluster], wrapper_of: WrapperOf = wrapped_by
) -> Event | None:
    """Take a RayCluster that is wrapped for none: its pods are of the gang of its AppWrapper."""
    match told:
        case Changed(obj=cluster) if is_made_for_wrapper(cluster.metadata, wrapper_of):
            return _cluster_gone(cluster)
        case Changed(obj=cluster) | Deleted(obj=cluster) if _is_named_as_another(cluster):
            return None  # KubeRay makes no pods for a RayCluster of such a name
        case _:
            return _cluster_event(told)


def _is_named_as_another(cluster: RayCluster) -> bool:
    return not is_of_ray_cluster(GangKey("", cluster.metadata.name))


def _cluster_gone(cluster: RayCluster) -> Event:
    meta = cluster.metadata
    return happened.ClusterGone(GangKey(meta.namespace, meta.name), meta.uid)


def ray_owner_event(told: WatchEvent[Any]) -> Event | None:
    """Take in a RayJob or RayService; what another cluster runs is a gang itself."""
    return _unless_sent(told, _owner_event)


def app_wrapper_event(told: WatchEvent[Any]) -> Event | None:
    """Take in an AppWrapper, which may be run by another cluster."""
    return _unless_sent(told, _wrapper_event)


def _unless_sent(told: WatchEvent[Any], here: Translate[Any]) -> Event | None:
    match told:
        case Changed(obj=DispatchedForm() as sent):
            return _dispatched_event(Changed(sent))
        case Deleted(obj=DispatchedForm() as sent):
            return _dispatched_event(Deleted(sent))
        case _:
            return here(told)


def _offer_gone(offer: OfferForm) -> Event:
    meta = offer.metadata
    return happened.OfferGone(GangKey(meta.namespace, meta.name), meta.uid)


def _gang_gone(gang: Gang) -> Event:
    meta = gang.metadata
    return happened.GangGone(GangKey(meta.namespace, meta.name), meta.uid)


_cluster_event: Final[Translate[RayCluster]] = translated(happened.ClusterSeen, _cluster_gone)
offer_event: Final[Translate[OfferForm]] = translated(
    lambda kept: happened.OfferSeen(gang_of_offer(kept)),
    lambda kept: _offer_gone(gang_of_offer(kept)),
)
_dispatched_event: Final[Translate[DispatchedForm]] = translated(
    lambda kept: happened.ClusterSeen(gang_of_sent(kept)),
    lambda kept: _cluster_gone(gang_of_sent(kept)),
)
_wrapper_event: Final[Translate[StandIn]] = translated(
    lambda kept: happened.ClusterSeen(as_gang(kept)), lambda kept: _cluster_gone(as_gang(kept))
)
_owner_event: Final[Translate[RayJob | RayService]] = translated(
    happened.RayOwnerSeen, lambda owner: happened.RayOwnerGone(owner.metadata.uid)
)
gang_event: Final[Translate[Gang]] = translated(happened.GangSeen, _gang_gone)
node_event: Final[Translate[Node]] = translated(
    happened.NodeSeen, lambda node: happened.NodeGone(node.metadata.name)
)
namespace_event: Final[Translate[Namespace]] = translated(
    happened.NamespaceSeen, lambda each: happened.NamespaceGone(each.metadata.name)
)
priority_event: Final[Translate[PriorityClass]] = translated(
    happened.PriorityClassSeen, lambda each: happened.PriorityClassGone(each.metadata.name)
)
queue_event: Final[Translate[GangQueue]] = translated(
    happened.QueueSeen, lambda queue: happened.QueueGone(queue.metadata.name)
)
device_class_event: Final[Translate[DeviceClass]] = translated(
    happened.DeviceClassSeen, lambda each: happened.DeviceClassGone(each.metadata.name)
)
