"""Reads what a coordinator decides on, as its watches would deliver it at their start."""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from msgspec.structs import replace

from appwrapper.gang.watched import AppWrapperReading, as_gang
from cli.endings import CannotRead, NotAllowed, NotServed
from cli.fitting.unseen_parents import with_unseen_parents
from cli.read.own_queues import get_queues, only
from cli.read.reader import Reader
from coordinator.messages.events import (
    AdmissionRuleSeen,
    AdmissionRulesListed,
    ClusterSeen,
    DeviceClassSeen,
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
from kube.codec.volumes.storage import WATCHES, StorageWatch
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


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read. `unread` says what could not be, and what is not judged therefore."""

    events: tuple[Event, ...]
    unread: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    """The kinds that may not be read, by plural name."""
    roomless: bool = False
    absent: frozenset[str] = frozenset()
    """The namespaces that are asked about and do not exist."""
    unlabelled: frozenset[str] = frozenset()
    """The namespaces that are asked about of which the caller may not read the labels."""

    def beside(self, other: "Picture") -> "Picture":
        """Return both together."""
        return Picture(
            (*self.events, *other.events),
            (*self.unread, *other.unread),
            self.missing | other.missing,
            self.roomless or other.roomless,
            self.absent | other.absent,
            self.unlabelled | other.unlabelled,
        )


async def read_picture(
    reader: Reader, profiles: Profiles, namespaces: Sequence[str], queues: Collection[str]
) -> Picture:
    """Read all but volumes; raises CannotRead where not even these queues can be read."""
    kinds = (*_room(profiles), *_rest())
    found = await asyncio.gather(_queues(reader, queues), *(_read(reader, each) for each in kinds))
    picture = _with_absent(_joined(found), namespaces)
    narrowed = [each for each in _namespaced() if each.resource.plural in picture.missing]
    return picture.beside(await _narrowed(reader, narrowed, namespaces))


def _with_absent(picture: Picture, namespaces: Sequence[str]) -> Picture:
    """Note which namespaces are not among those that were listed."""
    if resources.NAMESPACES.plural in picture.missing:
        return picture
    seen = {e.namespace.metadata.name for e in picture.events if isinstance(e, NamespaceSeen)}
    return dataclasses.replace(picture, absent=frozenset(namespaces) - seen)


async def read_volumes(reader: Reader) -> Picture:
    """Read what decides on volumes: only gangs whose pods mount claims ask for it."""
    return _joined(await asyncio.gather(*(_facts(reader, each) for each in WATCHES)))


async def _facts(reader: Reader, watch: StorageWatch) -> Picture:
    """Read facts of one kind; one that cannot be read counts as if none could."""
    try:
        found = await reader.list(watch.resource, watch.kind)
        seen = [FactSeen(watch.observe(each).fact) for each in found]
    except NotServed:
        seen = []
    except (NotAllowed, ValueError) as fault:
        return Picture((), (f"{fault}: gangs whose pods mount claims are refused",))
    return Picture((*seen, FactsSeen(watch.fact)))


def _room(profiles: Profiles) -> Iterable[Listed]:
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


def _rest() -> Iterable[Listed]:
    """List what else a decision depends on."""
    order = "the order of gangs that wait may be another"
    yield from _namespaced()
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


def _namespaced() -> Iterable[Listed]:
    """List what matters of the namespaces alone that are asked about."""
    yield Listed(resources.NAMESPACES, Namespace, NamespaceSeen)
    for kind, resource in _RULES.items():
        listed = AdmissionRulesListed(kind)
        yield Listed(resource, kind, AdmissionRuleSeen, always=(listed,))


_RULES: dict[type[AdmissionRule], Resource] = {
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


# ---- reading


async def _queues(reader: Reader, names: Collection[str]) -> Picture:
    """Read all queues, or where that is not allowed those of these names alone.

    Of the others even the names are not known, so that only quota of these can be judged.
    """
    try:
        return await _list(reader, Listed(resources.GANG_QUEUES, GangQueue, QueueSeen))
    except NotAllowed as refusal:
        found = await get_queues(reader, names)
        if {each.metadata.name for each in found} != {*names}:
            raise
        events = tuple(map(QueueSeen, with_unseen_parents(found)))
        return Picture(events, (f"{refusal}: {only(found)}",), roomless=True)


async def _read(reader: Reader, listed: Listed) -> Picture:
    """Read one list; where it is not allowed, say what is not judged therefore."""
    try:
        return await _list(reader, listed)
    except NotAllowed as refusal:
        return _not_allowed(listed, refusal)


async def _list(reader: Reader, listed: Listed, namespace: str = "") -> Picture:
    try:
        found = await reader.list(
            listed.resource,
            listed.kind,
            namespace=namespace,
            label_selector=listed.label_selector,
            field_selector=listed.field_selector,
        )
    except NotServed:
        if not listed.may_be_absent:
            raise
        found = ()
    events = (listed.event(each) for each in found)
    return Picture((*(each for each in events if each is not None), *listed.always))


def _not_allowed(listed: Listed, refusal: NotAllowed) -> Picture:
    said = f"{refusal}: {listed.without}" if listed.without else str(refusal)
    missing = frozenset({listed.resource.plural})
    # It is read in single namespaces instead.
    unread = () if missing <= _NARROWED else (said,)
    return Picture(listed.always, unread, missing, listed.is_room)


_NARROWED = frozenset({"namespaces", *(each.plural for each in _RULES.values())})


async def _narrowed(reader: Reader, kinds: Iterable[Listed], namespaces: Sequence[str]) -> Picture:
    """Read in the namespaces that are asked about what may not be read in all."""
    return _joined(
        await asyncio.gather(
            *(_read_in(reader, each, name) for each in kinds for name in namespaces)
        )
    )


async def _read_in(reader: Reader, listed: Listed, namespace: str) -> Picture:
    try:
        if listed.resource == resources.NAMESPACES:
            found = await reader.get(listed.resource, Namespace, namespace)
            if found is None:
                return Picture((), absent=frozenset({namespace}))
            return Picture((NamespaceSeen(found),))
        return await _list(reader, listed, namespace)
    except CannotRead as refusal:
        of_labels = listed.resource == resources.NAMESPACES
        unlabelled = frozenset({namespace} if of_labels else ())
        return Picture((), (str(refusal),), unlabelled=unlabelled)


def _joined(pictures: Iterable[Picture]) -> Picture:
    every = list(pictures)
    return Picture(
        tuple(chain.from_iterable(each.events for each in every)),
        tuple(dict.fromkeys(chain.from_iterable(each.unread for each in every))),
        frozenset().union(*(each.missing for each in every)),
        any(each.roomless for each in every),
        frozenset().union(*(each.absent for each in every)),
        frozenset().union(*(each.unlabelled for each in every)),
    )
