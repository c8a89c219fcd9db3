"""What does Muster keep of a pod that it saw?

A cluster has tens of thousands of pods and Muster needs little of each: where it is
and how much it takes. Of pods that belong to a Ray cluster it needs more, and what patches
are built from only while our gate is on.
"""

from dataclasses import dataclass, replace
from itertools import chain

from kube import names
from kube.codec import (
    InvalidObject,
    anti_affinity_terms,
    mounts,
    nominated_priority,
    pod_shape,
    pod_used,
    room_on,
)
from kube.objects import (
    BarePod,
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from kube.patches import for_patches, pinned_node
from kube.profiles import STOCK, Profiles
from kube.ray import owner_cluster, pod_set_of, replica_of
from scheduling.bounded import MIB, Interned
from scheduling.company import Kind, Stay
from scheduling.holders import Holder
from scheduling.model import PODS, GangKey, Mount, NodeTerm, PodShape, PodTerm, Requirement

Amounts = tuple[tuple[str, int], ...]

# More pod slots than any node has: the node of a pod that cannot be read counts as full.
UNREADABLE: Amounts = ((PODS, 1 << 40),)

TEMPLATE_HASH = "pod-template-hash"  # what a Deployment adds to the names of its ReplicaSets

_LONGEST_NAME = 253  # of any object that exists; what a reference says of its owner is free text

OF_A_LABEL = 220
"""Bytes that a label takes as two strings in a pair, beside its characters."""


def _weight_of_kind(kind: Kind) -> int:
    labels = kind[1]
    return OF_A_LABEL * len(labels) + len("".join(chain.from_iterable(labels)))


# 50,000 pods have a few dozen sets of amounts, and the pods of a controller equal labels, or nearly
# so. What is kept once outlives its pods, so it is bounded.
AMOUNTS: Interned[Amounts] = Interned(2 * MIB)
HOLDERS: Interned[Holder] = Interned(2 * MIB)
KINDS: Interned[Kind] = Interned(8 * MIB, _weight_of_kind)
SHAPES: Interned[PodShape] = Interned(4 * MIB)  # of one copy the key is worked out once


@dataclass(frozen=True, slots=True)
class Membership:
    """To which gang a pod belongs, and as what.

    `cluster_uid` is that of the owner, so that pods of an earlier RayCluster of the same name
    are told apart. `shape` is that of the pod as it came, without our pin; None where its
    amounts cannot be read, which `invalid` then says.
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


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod reduced to what decisions need; what patches need is `raw`, while our gate is on it.

    `node` is where it is bound, `holds` where it takes room (bound or nominated, not ended).
    `nominated` is its priority where it may lose that room to a pod of a higher one; None where
    nobody can take it. `kind` is what other pods' affinity knows of it, `holder` whom people call
    the owner of its room, `mounts` are its claims.
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
    used: Amounts
    kind: Kind
    anti_affinity: tuple[PodTerm, ...]
    holder: Holder
    mounts: tuple[Mount, ...]
    member: Membership | None
    raw: Pod | None
    nominated: int | None = None

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
        """The priority of a member of a gang; of others nobody asks."""
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
    def stay(self) -> Stay:
        """How it is on the node where it takes room."""
        if not self.node:
            return Stay.NOMINATED if self.nominated is None else Stay.YIELDING
        return Stay.LEAVING if self.terminating else Stay.BOUND

    @property
    def repels(self) -> tuple[PodTerm, ...]:
        """What it keeps away from where it is; nothing while it is nowhere."""
        return self.anti_affinity if self.holds else ()

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


def observe(pod: Pod | BarePod, profiles: Profiles = STOCK) -> ObservedPod:
    """Reduce a pod; gangs are decided for the schedulers of the profiles.

    One whose amounts cannot be read, or hardly anything, takes room that no node has: its node
    counts as full, which is the side to err on.
    """
    pod = _with_amounts_unread(pod) if isinstance(pod, BarePod) else pod
    member = _membership(pod, profiles)
    gated = member is not None and names.GATE in member.gates
    return ObservedPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        resource_version=pod.metadata.resource_version,
        node=pod.spec.node_name,
        holds=room_on(pod),
        terminal=pod.status.phase in ("Succeeded", "Failed"),
        terminating=pod.metadata.deletion_timestamp is not None,
        ready=_condition(pod, "Ready")[0] == "True",
        unschedulable=_unschedulable(pod),
        used=_used(pod),
        kind=_kind(pod),
        anti_affinity=anti_affinity_terms(pod),
        holder=HOLDERS(_holder(pod.metadata)),
        mounts=mounts(pod),
        member=member,
        raw=for_patches(pod) if gated else None,
        nominated=nominated_priority(pod, profiles) if member is None else None,
    )


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


def _kind(pod: Pod) -> Kind:
    """Say what others' affinity knows of a pod."""
    return KINDS((pod.metadata.namespace, tuple(sorted(pod.metadata.labels.items()))))


def _holder(metadata: ObjectMeta) -> Holder:
    """Name the controller of a pod; a ReplicaSet that a Deployment made stands for that one."""
    owner = next((each for each in metadata.owner_references if each.controller), None)
    if owner is None or owner.kind == "Node":
        return Holder("Namespace", "", metadata.namespace)
    kind, name = owner.kind[:_LONGEST_NAME], owner.name[:_LONGEST_NAME]
    suffix = f"-{metadata.labels.get(TEMPLATE_HASH)}"
    if kind == "ReplicaSet" and name.endswith(suffix):
        return Holder("Deployment", metadata.namespace, name.removesuffix(suffix))
    return Holder(kind, metadata.namespace, name)


def _used(pod: Pod) -> Amounts:
    try:
        return AMOUNTS(tuple(sorted(pod_used(pod).items())))
    except InvalidObject:
        return UNREADABLE


def _membership(pod: Pod, profiles: Profiles) -> Membership | None:
    owner = owner_cluster(pod.metadata)
    if owner is None:
        return None
    pinned = pinned_node(pod) or ""
    shape, invalid = _shape(pod, profiles)
    gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
    ours = pinned and names.GATE not in gates  # a pin beside our gate is the user's own
    return Membership(
        gang=GangKey(pod.metadata.namespace, owner.name),
        cluster_uid=owner.uid,
        pod_set=pod_set_of(pod.metadata.labels),
        replica=replica_of(pod.metadata.labels),
        shape=SHAPES(without_pin(shape, pinned)) if shape and ours else shape,
        gates=gates,
        pinned=pinned,
        fence=pod.metadata.annotations.get(names.FENCE, ""),
        priority=pod.spec.priority or 0,
        invalid=invalid,
    )


def _shape(pod: Pod, profiles: Profiles) -> tuple[PodShape | None, str]:
    try:
        return SHAPES(pod_shape(pod, profiles)), ""
    except InvalidObject as error:
        return None, str(error)


def without_pin(shape: PodShape, node: str) -> PodShape:
    """The shape as it was before the release added the pin to its terms.

    A term that held nothing but the pin was made by the release, so the pod had none before.
    """
    pin = Requirement("metadata.name", "In", (node,))
    terms = [
        NodeTerm(term.labels, term.fields[:-1] if term.fields[-1:] == (pin,) else term.fields)
        for term in shape.node_affinity or ()
    ]
    kept = tuple(terms) if any(term.labels or term.fields for term in terms) else None
    return replace(shape, node_affinity=kept)


def _condition(pod: Pod, kind: str) -> tuple[str, str, str]:
    for condition in pod.status.conditions:
        if condition.type == kind:
            return condition.status, condition.reason, condition.message
    return "", "", ""


def _unschedulable(pod: Pod) -> str:
    status, reason, message = _condition(pod, "PodScheduled")
    return message if (status, reason) == ("False", "Unschedulable") else ""
