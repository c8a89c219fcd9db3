"""One moment of the extender: nodes, pods and gangs, and the room that they leave.

A `Snapshot` is what a pure function is given. It is made by the `Ledger` for one call and not kept:
its arrays and mappings are the ledger's own, and the next event changes them. So it costs nothing,
and a call must not await anything while it uses one.

Room is counted twice: `bound` counts what bound pods take, `guarded` counts reservations as well.
Nominated pods are listed apart, because they count only against pods of no higher priority, and
never against themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from extender.devices.guard import DeviceGuard
from kube.codec.devices.pod_claims import pod_claims
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects.core import BarePod, Pod
from kube.ray.wrapped_by import WrapperOf, wrapped_by
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import PODS, Amounts, Mask, Requests
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.pod import HIGHEST_PRIORITY
from scheduling.state.node_snapshot import NodeSnapshot


@dataclass(frozen=True, slots=True)
class WatchedPod:
    """A pod as the watch delivered it, with its priority."""

    pod: ObservedPod
    priority: int

    @property
    def metadata(self) -> ObservedPod:
        """What a reflector asks of an object: its name, namespace, uid and resource version."""
        return self.pod


def watched_pod(pod: Pod | BarePod, wrapper_of: WrapperOf = wrapped_by) -> WatchedPod:
    """Reduce a pod to what is kept of it; an unreadable one has the highest priority."""
    priority = HIGHEST_PRIORITY if isinstance(pod, BarePod) else pod.spec.priority or 0
    observed = observe(pod, wrapper_of=wrapper_of)
    if isinstance(pod, Pod) and pod.spec.resource_claims:
        observed = replace(observed, claims=pod_claims(pod))  # those of no gang as well
    return WatchedPod(observed, priority)


@dataclass(frozen=True, slots=True)
class Nomination:
    """Room that kube-scheduler keeps for a pod that waits for its victims to end."""

    uid: str
    node: str
    priority: int
    amounts: Requests


@dataclass(frozen=True, slots=True)
class GuardedGang:
    """A gang as its Gang says: its slots by node, and the minimum of each pod set.

    `planned` are those that it gets once others have ended for it; no pod passes for one of them.
    """

    cluster_uid: str
    slots: Mapping[str, Placement]
    minimum: Mapping[str, int]
    planned: Mapping[str, Placement]

    @property
    def nodes(self) -> set[str]:
        """The nodes on which it may have room reserved."""
        return {*self.slots, *self.planned}


Members = Mapping[tuple[GangKey, str], Mapping[str, ObservedPod]]
"""Bound pods by gang and node, then by uid."""


@dataclass(frozen=True)
class Snapshot:
    """One moment. `bound` and `guarded` hold the same nodes in the same order.

    `ports` are the host ports that any gang was promised; kube-scheduler judges all others.
    `devices` judges devices by claim.
    """

    bound: NodeSnapshot
    guarded: NodeSnapshot
    nominations: tuple[Nomination, ...]
    gangs: Mapping[GangKey, GuardedGang]
    members: Members
    pods: Mapping[str, WatchedPod]
    capacity_cache: "FreeCapacityCache"
    ports: Mapping[str, int]
    devices: DeviceGuard

    def gang_of(self, pod: ObservedPod) -> GuardedGang | None:
        """Return the gang of a pod; None for a pod of an earlier RayCluster of that name."""
        if pod.member is None:
            return None
        gang = self.gangs.get(pod.member.gang)
        return gang if gang and gang.cluster_uid == pod.member.cluster_uid else None

    @cached_property
    def reserved(self) -> Mask:
        """The nodes with reserved room: some gang has a slot there that no bound pod has taken."""
        promised: Mask = _pod_slots(self.guarded) > _pod_slots(self.bound)
        return promised

    @cached_property
    def room(self) -> FreeCapacity:
        """The room beside bound pods and reservations; it keeps counts of pods."""
        return self.capacity_cache.of(self.guarded)


class FreeCapacityCache:
    """The free capacity of one snapshot after the other; results for unchanged nodes are kept."""

    def __init__(self) -> None:
        self._last: FreeCapacity | None = None
        self._changed: set[str] = set()

    def change(self, name: str) -> None:
        """Note that the room on a node has changed."""
        self._changed.add(name)

    def of(self, columns: NodeSnapshot) -> FreeCapacity:
        """Return the room of a node snapshot."""
        names, self._changed = self._changed, set()
        if self._last is None or self._last.columns is not columns:
            self._last = FreeCapacity.of(columns)
        elif names:
            at = [columns.index[name] for name in names if name in columns.index]
            self._last = self._last.touched(np.array(at, dtype=np.intp))
        return self._last


def _pod_slots(columns: NodeSnapshot) -> Amounts:
    """The pod slots that are taken, node by node."""
    row = columns.row.get(PODS)
    return columns.used[row] if row is not None else np.zeros(len(columns.names), dtype=np.int64)


def bound_members(
    members: Members, key: GangKey, gang: GuardedGang, name: str
) -> list[ObservedPod]:
    """The bound pods of this very gang on a node, by name."""
    pods = members.get((key, name), {}).values()
    mine = (p for p in pods if p.member and p.member.cluster_uid == gang.cluster_uid)
    return sorted(mine, key=lambda pod: pod.name)
