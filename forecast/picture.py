"""Lists the objects that a coordinator decides on, and the events of its watches at their start."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from appwrapper.gang.watched import AppWrapperReading, as_gang
from coordinator.cluster.cache import ClusterCache
from coordinator.messages.events import (
    AdmissionRuleSeen,
    AdmissionRulesListed,
    ClusterSeen,
    DeviceClassSeen,
    DeviceFactSeen,
    DeviceFactsSeen,
    Event,
    FactSeen,
    FactsSeen,
    GangSeen,
    NamespaceSeen,
    NodeSeen,
    PodSeen,
    PriorityClassSeen,
    QueueSeen,
    RayOwnerSeen,
    Teller,
)
from kube.api import resources
from kube.api.resources import Resource
from kube.codec.observed_pod import observe
from kube.codec.profiles.scheduler_profiles import Profiles
from kube.codec.volumes.storage import StorageWatch
from kube.devices.device_facts import DeviceFact, DeviceWatch
from kube.objects.admission import AdmissionRule, LimitRange, ResourceQuota, RuntimeClass
from kube.objects.app_wrapper import AppWrapper
from kube.objects.core import DeviceClass, Namespace, Node, Pod, PriorityClass
from kube.objects.gang import Gang
from kube.objects.names import RAY_NODE_TYPE, RAY_NODE_TYPES
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster, RayJob, RayService
from kube.ray.ray_cluster import essential
from kube.ray.ray_owner import essential_job, essential_service
from kube.ray.wrapped_by import is_made_for_wrapper

_RAY_PODS = f"{RAY_NODE_TYPE} in ({','.join(RAY_NODE_TYPES)})"
_OTHER_PODS = f"{RAY_NODE_TYPE} notin ({','.join(RAY_NODE_TYPES)})"
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class Listed:
    """One list: how its objects become events, and what is unknown where it may not be read.

    `is_room` says that without it nothing is known of the room on nodes. `always` are events that
    follow a list however many objects it has.
    """

    resource: Resource
    kind: type[Any]
    event: Callable[[Any], Event | None]
    without: str = ""
    label_selector: str = ""
    field_selector: str = ""
    is_room: bool = False
    may_be_absent: bool = False
    always: tuple[Event, ...] = ()

    def events(self, found: Iterable[Any]) -> Iterator[Event]:
        """Yield what the objects of the list tell."""
        told = (self.event(each) for each in found)
        yield from (each for each in told if each is not None)
        yield from self.always


QUEUES: Final = Listed(resources.GANG_QUEUES, GangQueue, QueueSeen)


def facts(watch: StorageWatch, found: Iterable[Any]) -> Iterator[Event]:
    """Yield what the objects of a kind that decides on volumes tell."""
    yield from (FactSeen(watch.observe(each).fact) for each in found)
    yield FactsSeen(watch.fact)


def wants_devices(cache: ClusterCache) -> bool:
    """Say whether devices by claim are to be read: there is a class of some, or a gang that asks.

    Gangs without pods are among those that may ask.
    """
    return bool(cache.given_by_classes or cache.devices.gangs)


def device_events(watch: DeviceWatch, found: Iterable[DeviceFact]) -> Iterator[Event]:
    """Yield what the objects of a kind that decides on devices tell."""
    yield from map(DeviceFactSeen, found)
    yield DeviceFactsSeen(watch.fact)


def room(profiles: Profiles) -> Iterable[Listed]:
    """List what takes and gives room."""
    seen = partial(_pod, profiles=profiles)
    ray, others = Teller.RAY_POD_WATCH, Teller.POD_WATCH
    yield Listed(resources.NODES, Node, NodeSeen, is_room=True)
    yield Listed(
        resources.PODS, Pod, partial(seen, teller=ray), label_selector=_RAY_PODS, is_room=True
    )
    yield Listed(
        resources.PODS,
        Pod,
        partial(seen, teller=others),
        label_selector=_OTHER_PODS,
        field_selector=_NOT_ENDED,
        is_room=True,
    )
    yield Listed(resources.GANGS, Gang, GangSeen, is_room=True)
    yield Listed(resources.RAY_CLUSTERS, RayCluster, _cluster, is_room=True)
    for resource in (resources.APP_WRAPPERS, resources.MCAD_APP_WRAPPERS):
        read = partial(_app_wrapper, api_version=f"{resource.group}/{resource.version}")
        yield Listed(resource, AppWrapper, read, is_room=True, may_be_absent=True)


def rest() -> Iterable[Listed]:
    """List what else a decision depends on."""
    order = "the order of gangs that wait may be another"
    yield from namespaced()
    yield Listed(
        resources.PRIORITY_CLASSES,
        PriorityClass,
        PriorityClassSeen,
        "priorities are taken for 0",
    )
    yield Listed(
        resources.RUNTIME_CLASSES,
        RuntimeClass,
        AdmissionRuleSeen,
        "RuntimeClasses are taken to add nothing to pods",
        always=(AdmissionRulesListed(RuntimeClass),),
    )
    yield Listed(
        resources.DEVICE_CLASSES,
        DeviceClass,
        _device_class,
        "resources of DeviceClasses are taken for plain ones",
        may_be_absent=True,
    )
    yield Listed(resources.RAY_JOBS, RayJob, _job, order, may_be_absent=True)
    yield Listed(resources.RAY_SERVICES, RayService, _service, order, may_be_absent=True)


def namespaced() -> Iterable[Listed]:
    """List what matters of the namespaces alone that are asked about."""
    yield Listed(resources.NAMESPACES, Namespace, NamespaceSeen)
    for kind, resource in RULES.items():
        listed = AdmissionRulesListed(kind)
        yield Listed(resource, kind, AdmissionRuleSeen, always=(listed,))


RULES: dict[type[AdmissionRule], Resource] = {
    LimitRange: resources.LIMIT_RANGES,
    ResourceQuota: resources.RESOURCE_QUOTAS,
}


# ---- objects


def _pod(found: Pod, profiles: Profiles, teller: Teller) -> Event:
    return PodSeen(observe(found, profiles), teller)


def _cluster(found: RayCluster) -> Event | None:
    """Take a RayCluster that is wrapped for none: its pods are of the gang of its AppWrapper."""
    return None if is_made_for_wrapper(found.metadata) else ClusterSeen(essential(found))


def _app_wrapper(found: AppWrapper, api_version: str) -> Event:
    """Read an AppWrapper of a list, whose items do not say of which API they are."""
    known = replace(found, api_version=found.api_version or api_version)
    return ClusterSeen(as_gang(AppWrapperReading()(known)))


def _device_class(found: DeviceClass) -> Event:
    return DeviceClassSeen(found)


def _job(found: RayJob) -> Event:
    return RayOwnerSeen(essential_job(found))


def _service(found: RayService) -> Event:
    return RayOwnerSeen(essential_service(found))
