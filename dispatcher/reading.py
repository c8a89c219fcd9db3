"""Reads the parts of objects that the dispatcher keeps, on the manager and on members. Pure."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from appwrapper.spec.names_of_wrapped import Named, names_of_wrapped
from appwrapper.status.sent import Waits
from kube.codec.fields import InvalidObject, read_amounts
from kube.gang.holes import Need
from kube.gang.nested import RAY_CLUSTER, RAY_SERVICE
from kube.gang.sent import WRAPPER_RESOURCES, is_noted
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim
from kube.objects.clusters.dispatch import (
    QUOTA_RESERVED,
    GangDispatch,
    is_its_turn,
    is_to_end,
)
from kube.objects.clusters.gang_offer import OFFER_KIND, GangOfferStatus, OfferMeta
from kube.objects.clusters.member_cluster import MemberCluster
from kube.objects.clusters.queue_clusters import QueueClusters
from kube.objects.gang import Gang, GangPlacement
from kube.objects.queues.queue import GangQueue, QueueHole
from kube.objects.ray import ABSENT
from kube.ray.wrapped_by import wrapper_of_gang

LONGEST_WARNING = 1024

MANAGER, ORIGIN, SENT = names.MANAGER, names.ORIGIN, names.SENT


@dataclass(frozen=True, slots=True)
class Wishes:
    """The parts of an object that its user may change while it runs, carried to its copy once.

    For a RayService this is the whole spec, because KubeRay upgrades it.
    """

    suspend: bool = False
    replicas: Mapping[str, int] = field(default_factory=dict)
    spec: str = ""
    """A hash of the spec, where all of it is carried over."""

    def text(self) -> str:
        """Return them as they are noted on the copy."""
        if self.spec:
            return self.spec
        told = {"suspend": self.suspend, "replicas": dict(sorted(self.replicas.items()))}
        return msgspec.json.encode(told).decode()


# ---- as the API server has it


class _Group(Slim, frozen=True):
    group_name: str = ""
    replicas: int | None = None


class _RaySpec(Part, frozen=True):
    suspend: bool | None = None
    managed_by: str | None = None
    worker_group_specs: OrNull[tuple[_Group, ...]] = ()


class RayObject(Slim, frozen=True):
    """A Ray object or an AppWrapper, its spec and status as they came."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = ABSENT
    status: msgspec.Raw = ABSENT


class _Asked(Slim, frozen=True):
    manager: str = ""
    uid: str = ""
    attempt: int = 0
    accepted_by: int = 0
    lost_after_seconds: int = 0
    may_stop_gangs_until: str = ""


class OfferObject(Slim, frozen=True):
    """A GangOffer without its template."""

    metadata: OfferMeta = OfferMeta()
    spec: _Asked = _Asked()
    status: GangOfferStatus = GangOfferStatus()


class _Involved(Slim, frozen=True):
    kind: str = ""
    name: str = ""


class WarningObject(Slim, frozen=True):
    """An Event of the core group."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: _Involved = _Involved()
    last_timestamp: str | None = None
    reason: str | None = None
    message: str | None = None


# ---- as it is kept


@dataclass(frozen=True, slots=True)
class Original:
    """An object on the manager that may be sent to a member."""

    kind: str
    metadata: ObjectMeta
    spec: bytes
    status: bytes
    wishes: Wishes
    wrapped: tuple[Named, ...] = ()
    """What an AppWrapper wraps."""

    @property
    def is_going(self) -> bool:
        """Whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the Gang of such an object says, by the manager's coordinator and by us."""

    metadata: ObjectMeta
    of: str
    """The uid of the object."""
    queue: str
    priority: int
    is_its_turn: bool
    is_to_end: bool
    dispatch: GangDispatch | None
    needs: tuple[Need, ...] = ()
    """What its quota is taken for."""
    waits: Waits | None = None
    """Of an AppWrapper why it is not its turn, unless it is on record; the status says so."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A GangQueue: the clusters of its gangs, None where they run on the manager."""

    metadata: ObjectMeta
    clusters: QueueClusters | None
    lost_after: int = 0
    """Seconds after which its gangs are sent from a lost cluster to another; 0 for never."""


@dataclass(frozen=True, slots=True)
class QueueRoom:
    """A GangQueue on a member: what still fits on the nodes of its gangs there."""

    metadata: ObjectMeta = field(compare=False)
    holes: tuple[QueueHole, ...]
    provisions: bool = False
    """Whether it asks for nodes where it lacks room."""


@dataclass(frozen=True, slots=True)
class Warned:
    """A Warning about an object of a member."""

    metadata: ObjectMeta
    kind: str
    name: str
    reason: str
    message: str
    at: str
    """When it happened last, as RFC 3339."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A GangOffer on a member."""

    metadata: ObjectMeta
    manager: str
    of: str
    attempt: int
    accepted_by: int
    phase: str
    reason: str
    message: str
    lost_after: int = 0
    may_stop_until: str = ""
    """By the clock of its member; empty where it never might."""

    @property
    def is_withdrawn(self) -> bool:
        """Whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None


@dataclass(frozen=True, slots=True)
class Copy:
    """The object on a member that was created for a GangOffer."""

    kind: str
    metadata: ObjectMeta
    offer: str
    """The uid of the GangOffer; empty where none owns it."""
    of: str
    """The uid of its original, as it says itself."""
    groups: tuple[str, ...]
    """The names of the worker groups of a RayCluster, in their order."""
    sent: str
    status: bytes


Path: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

Thing: TypeAlias = Original | Turn | Queue | MemberCluster | Answer | Copy | QueueRoom | Warned


def original_of(found: RayObject, kind: str = RAY_CLUSTER) -> Original | None:
    """Return what is kept of an object of the manager; None where it runs there."""
    spec = msgspec.json.decode(found.spec, type=_RaySpec)
    if not _is_sent(kind, found.metadata.annotations, spec):
        return None
    wishes = _wishes(kind, spec, found.spec)
    wrapped = names_of_wrapped(found.spec) if kind in WRAPPER_RESOURCES else ()
    return Original(kind, found.metadata, bytes(found.spec), _status(found), wishes, wrapped)


def _is_sent(kind: str, annotations: Labels, spec: _RaySpec) -> bool:
    if kind in WRAPPER_RESOURCES:  # its creator was asked for
        return is_noted(annotations) and names.CREATED_BY in annotations
    return spec.managed_by == names.MANAGED_ELSEWHERE


def _wishes(kind: str, spec: _RaySpec, written: msgspec.Raw) -> Wishes:
    if kind == RAY_SERVICE:
        return Wishes(spec=hashlib.sha256(bytes(written)).hexdigest()[:32])
    replicas = {each.group_name: each.replicas or 0 for each in spec.worker_group_specs}
    return Wishes(bool(spec.suspend), replicas)


def turn_of(gang: Gang) -> Turn | None:
    """Return what is kept of a Gang; None of one that runs on the manager, or waits there.

    That of an AppWrapper is kept while it waits, too: its status says why.
    """
    waits = gang.status.dispatch is None and gang.status.phase != QUOTA_RESERVED
    if waits and wrapper_of_gang(gang.metadata.name) is None:
        return None
    return written_turn(gang)


def written_turn(gang: Gang) -> Turn:
    """Return the same of one that has a record."""
    return Turn(
        metadata=gang.metadata,
        of=gang.spec.ray_cluster_uid,
        queue=gang.spec.queue or names.DEFAULT_QUEUE,
        priority=gang.spec.priority,
        is_its_turn=is_its_turn(gang.status),
        is_to_end=is_to_end(gang.status),
        dispatch=gang.status.dispatch,
        needs=tuple(_needs(gang.status.placement)),
        waits=_waits(gang),
    )


def _waits(gang: Gang) -> Waits | None:
    status = gang.status
    is_open = status.dispatch is not None and (status.dispatch.is_open or status.dispatch.end)
    if is_open or status.phase == QUOTA_RESERVED or wrapper_of_gang(gang.metadata.name) is None:
        return None
    return Waits(status.reason, status.message)


def _needs(placement: GangPlacement | None) -> Iterator[Need]:
    """Yield what the gang holds quota for; nothing where that cannot be read."""
    pod_sets = placement.pod_sets if placement is not None else ()
    for each in chain.from_iterable(pod_set.assignments for pod_set in pod_sets):
        with contextlib.suppress(InvalidObject):
            yield read_amounts(each.requests, "requests"), sum(each.nodes.values())


def queue_of(queue: GangQueue, lost_after: int | None = None) -> Queue:
    """Return what is kept of a GangQueue; `lost_after` takes the place of its own seconds."""
    seconds = queue.spec.lost_after
    return Queue(queue.metadata, queue.spec.clusters, seconds and (lost_after or seconds))


def room_of(queue: GangQueue) -> QueueRoom:
    """Return what is kept of a GangQueue of a member."""
    provisions = queue.spec.provisioning is not None
    return QueueRoom(queue.metadata, tuple(queue.status.holes), provisions)


def warned_of(event: WarningObject) -> Warned:
    """Return what is kept of a Warning of a member; its text is cut to what an Event may say."""
    about, said = event.involved_object, (event.message or "")[:LONGEST_WARNING]
    at = event.last_timestamp or event.metadata.creation_timestamp or ""
    return Warned(event.metadata, about.kind, about.name, event.reason or "", said, at)


def answer_of(offer: OfferObject) -> Answer:
    """Return what is kept of a GangOffer."""
    said = offer.status
    return Answer(
        metadata=offer.metadata,
        manager=offer.spec.manager,
        of=offer.spec.uid,
        attempt=offer.spec.attempt,
        accepted_by=offer.spec.accepted_by,
        phase=said.phase,
        reason=said.reason,
        message=said.message,
        lost_after=offer.spec.lost_after_seconds,
        may_stop_until=offer.spec.may_stop_gangs_until,
    )


def copy_of(found: RayObject, kind: str = RAY_CLUSTER) -> Copy:
    """Return what is kept of an object of a member."""
    spec = msgspec.json.decode(found.spec, type=_RaySpec)
    owners = (each.uid for each in found.metadata.owner_references if each.kind == OFFER_KIND)
    return Copy(
        kind=kind,
        metadata=found.metadata,
        offer=next(owners, ""),
        of=found.metadata.labels.get(ORIGIN, ""),
        groups=tuple(each.group_name for each in spec.worker_group_specs),
        sent=found.metadata.annotations.get(SENT, ""),
        status=_status(found),
    )


def path_of(thing: Original | Copy) -> Path:
    """Name an object as its API server does: the copy has the path of its original.

    Labels and owners are written by whoever may create Ray objects, and KubeRay gives those of a
    RayService to its RayClusters; a path belongs to one object of one namespace.
    """
    return thing.kind, thing.metadata.namespace, thing.metadata.name


def parsed(written: bytes) -> dict[str, Any]:
    """Return a part of an object that was kept as it came; empty where there is none."""
    found = msgspec.json.decode(written)
    return found if isinstance(found, dict) else {}


def labels_match(wanted: Labels, labels: Labels) -> bool:
    """Say whether an object has all the labels."""
    return all(labels.get(key) == value for key, value in wanted.items())


def _status(found: RayObject) -> bytes:
    return bytes(found.status)
