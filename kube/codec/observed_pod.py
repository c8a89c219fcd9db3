"""Reduces a pod from a watch to the fields that decisions need.

A cluster has tens of thousands of pods, and most are reduced to their node and the room that they
take. Pods of a Ray cluster keep more fields, and those that patches are built from while our gate
is on.
"""

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import msgspec

from kube.codec.devices.extended_requests import ExtendedRequest, extended_requests
from kube.codec.devices.pod_claims import PodClaim, pod_claims
from kube.codec.fields import InvalidObject, moment_of
from kube.codec.pod import nominated_priority, room_on
from kube.codec.pod_patches import for_patches, pinned_node
from kube.codec.pod_requests import pod_used
from kube.codec.pod_shapes import shape_of, without_pin
from kube.codec.profiles.scheduler_profiles import STOCK, Profiles
from kube.codec.release_note import release_note
from kube.codec.selectors import anti_affinity_terms
from kube.codec.volumes.pod_volumes import mounts
from kube.objects import names
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.core import (
    BarePod,
    Container,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from kube.ray.ray_cluster import owner_cluster, pod_set_of, replica_of
from kube.ray.wrapped_by import WrappedBy, WrapperOf, gang_name, wrapped_by
from scheduling.model.amounts import PODS, Requests
from scheduling.model.constraints import PodTerm
from scheduling.model.gang import GangKey
from scheduling.model.holder import Holder
from scheduling.model.pod import Mount, PodShape
from scheduling.state.bounded_cache import MIB, BoundedCache, Interned
from scheduling.state.pod_index import PodKind, Presence

# More pod slots than any node has: the node of a pod that cannot be read counts as full.
UNREADABLE: Requests = ((PODS, 1 << 40),)

TEMPLATE_HASH = "pod-template-hash"  # what a Deployment adds to the names of its ReplicaSets

_RESIZE = "PodResizePending"  # the condition that says which resize is not possible

_OF_RAY = frozenset(names.RAY_NODE_TYPES)

STRAYS = "(pods that left their gang)"
"""In the place of a RayCluster's name, which has no blank in it: of pods that Muster released and
that have no RayCluster or AppWrapper any more, by which they would be known."""

_LONGEST_NAME = 253  # of any object that exists; what a reference says of its owner is free text

OF_A_LABEL = 220
"""Bytes that a label takes as two strings in a pair, beside its characters."""


def _weight_of_kind(kind: PodKind) -> int:
    labels = kind[1]
    return OF_A_LABEL * len(labels) + len("".join(chain.from_iterable(labels)))


# 50,000 pods have a few dozen sets of amounts, and the pods of a controller equal labels, or nearly
# so. What is kept once outlives its pods, so it is bounded.
AMOUNTS: Interned[Requests] = Interned(2 * MIB)
HOLDERS: Interned[Holder] = Interned(2 * MIB)
KINDS: Interned[PodKind] = Interned(8 * MIB, _weight_of_kind)


READ_AMOUNTS: BoundedCache[bytes, Requests] = BoundedCache(4 * MIB)
_bytes_of = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Membership:
    """To which gang a pod belongs, and as what.

    `cluster_uid` is that of the owner, so that pods of an earlier RayCluster of the same name
    are told apart; of `STRAYS` it is the queue that they were released in. `shape` is that of the
    pod as it came, without our pin; None where its amounts cannot be read, which `invalid` then
    says.
    """

    gang: GangKey
    cluster_uid: str
    pod_set: str
    replica: str
    shape: PodShape | None
    gates: tuple[str, ...]
    pinned: str
    fence: str
    priority: int
    invalid: str
    told: str = ""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod reduced to what decisions need; what patches need is `raw`, while our gate is on it.

    `node` is where it is bound, `holds` where it takes room (bound or nominated, not ended).
    `nominated` is its priority where a pod of higher priority may take that room; None where no pod
    may. A pod of a Ray cluster that is gated or pinned has its node by a placement, which its
    nomination may only repeat: that is in `nominated_to`, and takes no room by itself. `kind` is
    its namespace and labels, which the affinity terms of other pods match; `holder` is the
    controller that messages name as the holder of its room; `mounts` are its claims of volumes,
    `claims` those of devices, of a member of a gang. Of such a member `extended` is what it asks
    for as extended resources; `extended_claim` names the claim that kube-scheduler made for these.
    `ends_by` is when its grace is over, in seconds since 1970; 0 where it is not being deleted.
    `is_daemon` says that it is a pod of a DaemonSet, or the mirror of a static one; `succeeded`
    that it ended well;
    `gated_for_none` that it has our gate and is in no gang.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    node: str
    holds: str
    terminal: bool
    terminating: bool
    ready: bool
    unschedulable: str
    used: Requests
    kind: PodKind
    anti_affinity: tuple[PodTerm, ...]
    holder: Holder
    mounts: tuple[Mount, ...]
    member: Membership | None
    raw: Pod | None
    nominated: int | None = None
    nominated_to: str = ""
    ends_by: float = 0.0
    is_daemon: bool = False
    succeeded: bool = False
    gated_for_none: bool = False
    claims: tuple[PodClaim, ...] = ()
    extended: tuple[ExtendedRequest, ...] = ()
    extended_claim: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name: the key of the watch."""
        return (self.namespace, self.name)

    @property
    def metadata(self) -> "ObservedPod":
        """What a reflector asks of an object: its name, namespace, uid and resource version."""
        return self

    @property
    def priority(self) -> int:
        """The priority of a member of a gang; 0 for other pods, where it is not needed."""
        return self.member.priority if self.member is not None else 0

    @property
    def gated(self) -> bool:
        """Whether our gate is on the pod."""
        return self.raw is not None

    @property
    def alive(self) -> bool:
        """Whether it counts as a member: it neither ended nor is being deleted."""
        return not self.terminal and not self.terminating

    @property
    def stay(self) -> Presence:
        """Whether it is bound, nominated or leaving, on the node where it takes room."""
        if not self.node:
            return Presence.NOMINATED if self.nominated is None else Presence.NOMINATED_AT_PRIORITY
        return Presence.LEAVING if self.terminating else Presence.BOUND

    @property
    def expected_on(self) -> str:
        """Where it takes room, or is nominated to."""
        return self.holds or self.nominated_to

    @property
    def repels(self) -> tuple[PodTerm, ...]:
        """Its anti-affinity terms, which keep pods off its node; empty while it takes no room."""
        return self.anti_affinity if self.expected_on else ()

    @property
    def settled_on(self) -> str:
        """The node that it is bound to, or pinned to without our gate; empty where none."""
        if self.node or self.member is None or self.gated:
            return self.node
        return self.member.pinned

    @property
    def foreign_gates(self) -> tuple[str, ...]:
        """The gates of others on the pod."""
        gates = self.member.gates if self.member is not None else ()
        return tuple(gate for gate in gates if gate != names.GATE)


def observe(
    pod: Pod | BarePod, profiles: Profiles = STOCK, wrapper_of: WrapperOf = wrapped_by
) -> ObservedPod:
    """Reduce a pod; gangs are decided for the schedulers of the profiles.

    `wrapper_of` says of its labels which AppWrapper a pod is of, if there are AppWrappers.

    An unreadable pod, or one with unreadable amounts, takes more room than any node has: its node
    counts as full, which errs on the safe side.
    """
    pod = _with_amounts_unread(pod) if isinstance(pod, BarePod) else pod
    wrapper = wrapper_of(pod.metadata.labels)
    member = _membership(pod, profiles, wrapper)
    gated = member is not None and names.GATE in member.gates
    placed = not pod.spec.node_name and member is not None and (gated or bool(member.pinned))
    return ObservedPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        resource_version=pod.metadata.resource_version,
        node=pod.spec.node_name,
        holds="" if placed else room_on(pod),
        terminal=pod.status.phase in ("Succeeded", "Failed"),
        terminating=pod.metadata.deletion_timestamp is not None,
        ready=_condition(pod, "Ready")[0] == "True",
        unschedulable=_unschedulable(pod),
        used=_used(pod),
        kind=_kind(pod),
        anti_affinity=anti_affinity_terms(pod),
        holder=HOLDERS(_holder(pod.metadata, wrapper)),
        mounts=mounts(pod),
        member=member,
        raw=for_patches(pod) if gated else None,
        nominated=nominated_priority(pod, profiles) if member is None else None,
        nominated_to=room_on(pod) if placed else "",
        ends_by=moment_of(pod.metadata.deletion_timestamp),
        is_daemon=_is_daemon(pod.metadata),
        succeeded=pod.status.phase == "Succeeded",
        gated_for_none=_is_gated_for_none(pod, member),
        claims=() if member is None else pod_claims(pod),
        extended=() if member is None else extended_requests(pod),
        extended_claim=_extended_claim(pod),
    )


def _extended_claim(pod: Pod) -> str:
    made = pod.status.extended_resource_claim_status
    return made.resource_claim_name if made is not None else ""


def _is_gated_for_none(pod: Pod, member: Membership | None) -> bool:
    """Say whether a pod has our gate, and no gang for which it would be taken off."""
    if member is not None and member.gang.name != STRAYS:
        return False
    return any(gate.name == names.GATE for gate in pod.spec.scheduling_gates)


def _with_amounts_unread(bare: BarePod) -> Pod:
    place, requests = bare.spec, ResourceRequirements({PODS: "not read"})
    return Pod(
        bare.metadata,
        PodSpec(
            node_name=place.node_name,
            scheduling_gates=place.scheduling_gates,
            containers=(Container(resources=requests),),
        ),
        PodStatus(phase=bare.status.phase, nominated_node_name=bare.status.nominated_node_name),
    )


def _kind(pod: Pod) -> PodKind:
    """Return the namespace and labels of a pod, which terms of other pods match."""
    return KINDS((pod.metadata.namespace, tuple(sorted(pod.metadata.labels.items()))))


def _holder(metadata: ObjectMeta, wrapper: WrappedBy | None) -> Holder:
    """Name the controller of a pod; a ReplicaSet that a Deployment made stands for that one.

    Of a wrapped pod it is the AppWrapper, whatever made it.
    """
    owner = _controller(metadata)
    if wrapper is not None:
        return Holder("AppWrapper", metadata.namespace, wrapper.name[:_LONGEST_NAME])
    if owner is None or owner.kind == "Node":
        return Holder("Namespace", "", metadata.namespace)
    kind, name = owner.kind[:_LONGEST_NAME], owner.name[:_LONGEST_NAME]
    suffix = f"-{metadata.labels.get(TEMPLATE_HASH)}"
    if kind == "ReplicaSet" and name.endswith(suffix):
        return Holder("Deployment", metadata.namespace, name.removesuffix(suffix))
    return Holder(kind, metadata.namespace, name)


def _controller(metadata: ObjectMeta) -> OwnerReference | None:
    return next((each for each in metadata.owner_references if each.controller), None)


def _is_daemon(metadata: ObjectMeta) -> bool:
    """Say whether a pod comes with its node; the kubelet names that as owner of a mirror pod."""
    owner = _controller(metadata)
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def _used(pod: Pod) -> Requests:
    """Count what a pod takes, from its spec and from the resizes in its status."""
    spec, status = pod.spec, pod.status
    asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
    given = (status.container_statuses, status.init_container_statuses)
    whole = (status.allocated_resources, status.resources, _condition(pod, _RESIZE))
    return READ_AMOUNTS.remembered(_bytes_of((asked, given, whole)), lambda: _count_used(pod))


def _count_used(pod: Pod) -> Requests:
    try:
        return AMOUNTS(tuple(sorted(pod_used(pod).items())))
    except InvalidObject:
        return UNREADABLE


def _membership(pod: Pod, profiles: Profiles, wrapper: WrappedBy | None) -> Membership | None:
    owner = _owner(pod.metadata, wrapper)
    if owner is None:
        return None
    gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
    pinned = "" if _pins_itself(pod, gates) else pinned_node(pod) or ""
    ours = pinned and names.GATE not in gates  # a pin beside our gate is the user's own
    shape, invalid = shape_of(without_pin(pod, pinned) if ours else pod, profiles)
    return Membership(
        gang=GangKey(pod.metadata.namespace, owner.gang),
        cluster_uid=owner.uid,
        pod_set=owner.pod_set,
        replica=replica_of(pod.metadata.labels),
        shape=shape,
        gates=gates,
        pinned=pinned,
        fence=pod.metadata.annotations.get(names.FENCE, ""),
        priority=pod.spec.priority or 0,
        invalid=invalid,
        told=pod.metadata.annotations.get(names.TOLD, ""),
    )


def _pins_itself(pod: Pod, gates: tuple[str, ...]) -> bool:
    """Say whether a pod on its way has no pin of Muster's: its template may have one.

    It would count as released, and its room be kept, for no placement. One that is bound holds its
    room; those that an earlier release of Muster pinned have no such note.
    """
    on_its_way = names.GATE not in gates and not pod.spec.node_name
    return on_its_way and release_note(pod.metadata) is None


class _Owner(NamedTuple):
    """The gang of a pod, the uid of the object that it is the gang of, and the pod set."""

    gang: str
    uid: str
    pod_set: str


def _owner(metadata: ObjectMeta, wrapper: WrappedBy | None) -> _Owner | None:
    """Find the gang of a pod: of a RayCluster that is wrapped, the AppWrapper is the gang."""
    labels = metadata.labels
    if wrapper is not None:
        gang = gang_name(wrapper.group, wrapper.name)
        return _Owner(gang, wrapper.uid, labels.get(names.POD_SET, ""))
    # The webhook gates what has this label alone, and KubeRay puts it on all of its pods.
    owner = owner_cluster(metadata) if labels.get(names.RAY_NODE_TYPE) in _OF_RAY else None
    if owner is not None:
        return _Owner(owner.name, owner.uid, pod_set_of(labels))
    note = release_note(metadata)
    return None if note is None else _Owner(STRAYS, note.queue, pod_set_of(labels))


def _condition(pod: Pod, kind: str) -> tuple[str, str, str]:
    for condition in pod.status.conditions:
        if condition.type == kind:
            return condition.status, condition.reason, condition.message
    return "", "", ""


def _unschedulable(pod: Pod) -> str:
    status, reason, message = _condition(pod, "PodScheduled")
    return message if (status, reason) == ("False", "Unschedulable") else ""
