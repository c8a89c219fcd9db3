"""Keeps nodes, pods and gangs from watch events, for one owner.

An event costs a few dictionary and array writes, whatever the size of the cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from extender.devices.guard import DeviceGuard
from extender.snapshot import (
    FreeCapacityCache,
    GuardedGang,
    Nomination,
    Snapshot,
    WatchedPod,
    bound_members,
    watched_pod,
)
from kube.codec.fields import InvalidObject
from kube.codec.node import node
from kube.codec.observed_pod import ObservedPod
from kube.codec.placement import placement_from_status
from kube.objects import core as core_objects
from kube.objects.core import BarePod, Pod
from kube.objects.gang import Gang, GangPlacement, GangStatus
from kube.ray.wrapped_by import WrapperOf, wrapped_by
from reservation.slots import reserved_room
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.model.placement import Assignment, Placement
from scheduling.model.shape.host_ports import is_port
from scheduling.model.verdict import Reason
from scheduling.state.node_table import NodeTable


class Ledger:
    """What was observed. `freed` collects nodes on which room came free, until it is read.

    `wrapper_of` says of its labels which AppWrapper a pod is of, if there are AppWrappers.
    `gates_off` are the feature gates for devices that kube-scheduler runs without.
    """

    def __init__(self, wrapper_of: WrapperOf = wrapped_by, gates_off: Collection[str] = ()) -> None:
        self._wrapper_of = wrapper_of
        self._bound, self._guarded = NodeTable(), NodeTable()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, WatchedPod] = {}
        self._nominations: dict[str, Nomination] = {}
        self._gangs: dict[GangKey, GuardedGang] = {}
        self._members: defaultdict[tuple[GangKey, str], dict[str, ObservedPod]] = defaultdict(dict)
        self._reserved: dict[tuple[GangKey, str], Counter[tuple[str, Requests]]] = {}
        self._capacity_cache = FreeCapacityCache()
        self._ports: Counter[str] = Counter()
        self._snapshot: Snapshot | None = None
        self.devices = DeviceGuard(self._gangs, self._nodes, gates_off)
        self.freed: set[str] = set()

    def snapshot(self) -> Snapshot:
        """Return what is known now; the same object while nothing has changed."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                self._bound.view(),
                self._guarded.view(),
                tuple(self._nominations.values()),
                self._gangs,
                self._members,
                self._pods,
                self._capacity_cache,
                self._ports,
                self.devices,
            )
        return self._snapshot

    @property
    def reservations(self) -> int:
        """How many slots no bound pod has taken."""
        return sum(room.total() for room in self._reserved.values())

    @property
    def placed_gangs(self) -> int:
        """How many gangs have a placement, whether its slots are taken or not."""
        return sum(bool(gang.slots) for gang in self._gangs.values())

    # ---- nodes

    def put_node(self, seen: core_objects.Node) -> None:
        """Take in a node."""
        found = node(seen)
        if self._nodes.get(found.name) == found:
            return  # kubelets report every few seconds; hardly any report changes this
        self._nodes[found.name] = found
        for table in (self._bound, self._guarded):
            table.put_node(found)
        self.devices.node_changed(found.name)
        self._changed(found.name)

    def remove_node(self, name: str) -> None:
        """Forget a node; what is on it is counted again should it come back."""
        self._nodes.pop(name, None)
        for table in (self._bound, self._guarded):
            table.remove_node(name)
        self._snapshot = None

    # ---- pods

    def reduce(self, pod: Pod | BarePod) -> WatchedPod:
        """Reduce a pod to what is kept of it."""
        return watched_pod(pod, self._wrapper_of)

    def asked(self, pod: Pod) -> WatchedPod:
        """Return a pod that is asked about, from the watch where that has this very version."""
        known, version = self._pods.get(pod.metadata.uid), pod.metadata.resource_version
        if known is not None and version and known.pod.resource_version == version:
            return known
        return self.reduce(pod)

    def put_pod(self, seen: WatchedPod) -> None:
        """Take in a pod, in place of what was known of the same uid."""
        known = self._pods.get(seen.pod.uid)
        self._pods[seen.pod.uid] = seen
        if seen.pod.claims or seen.pod.extended:
            self.devices.put_pod(seen.pod)
        if known is not None and _claim(known) == _claim(seen):
            self._tell_members(seen.pod)  # most news of a pod is of its status
            return
        if known is not None:
            self._discount(known)
        self._count(seen)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod."""
        known = self._pods.pop(uid, None)
        if known is not None:
            self.devices.remove_pod(uid)
            self._discount(known)

    def _count(self, seen: WatchedPod) -> None:
        pod = seen.pod
        if pod.node and pod.holds:
            self._use(pod.node, pod.used, +1)
            self._take_slot(pod)
        elif node := pod.expected_on:
            self._nominations[pod.uid] = Nomination(pod.uid, node, seen.priority, pod.used)
            self._snapshot = None

    def _discount(self, seen: WatchedPod) -> None:
        pod = seen.pod
        if pod.node and pod.holds:
            self._use(pod.node, pod.used, -1)
            self._leave_slot(pod)
            self._changed(pod.node)
        elif self._nominations.pop(pod.uid, None):
            self._changed(pod.expected_on)

    def _use(self, name: str, amounts: Requests, sign: int) -> None:
        self._bound.use(name, amounts, sign)
        self._keep(name, amounts, sign)
        self._snapshot = None

    def _keep(self, name: str, amounts: Requests, sign: int) -> None:
        """Count room that other pods may not take."""
        self._guarded.use(name, amounts, sign)
        if name in self._nodes:  # a pod may name a node that does not exist
            self._capacity_cache.change(name)

    def _take_slot(self, pod: ObservedPod) -> None:
        if pod.member is not None:
            self._members[pod.member.gang, pod.node][pod.uid] = pod
            self._reserve(pod.member.gang, pod.node)

    def _tell_members(self, pod: ObservedPod) -> None:
        if pod.member is not None:
            here = self._members.get((pod.member.gang, pod.node), {})
            if pod.uid in here:
                here[pod.uid] = pod

    def _leave_slot(self, pod: ObservedPod) -> None:
        if pod.member is None:
            return
        key = (pod.member.gang, pod.node)
        self._members[key].pop(pod.uid, None)
        if not self._members[key]:
            del self._members[key]
        self._reserve(*key)

    # ---- gangs

    def put_gang(self, gang: Gang) -> None:
        """Take in a Gang: its placement is the reservation."""
        key = _key(gang)
        old = self._gangs.get(key)
        self._gangs[key] = new = _guarded(gang)
        self._count_ports(new, +1)
        if old is not None:
            self._count_ports(old, -1)
        for name in new.nodes | (old.nodes if old else set()):
            self._reserve(key, name)
        # A member that was asked about before its Gang came is to be tried again.
        self.freed |= new.slots.keys()
        self.devices.gang_changed(key)
        self._snapshot = None

    def remove_gang(self, gang: Gang) -> None:
        """Forget a Gang, and what it reserved."""
        old = self._gangs.pop(_key(gang), None)
        for name in old.nodes if old else ():
            self._reserve(_key(gang), name)
        if old is not None:
            self._count_ports(old, -1)
        self.devices.gang_changed(_key(gang))
        self._snapshot = None

    def _count_ports(self, gang: GuardedGang, sign: int) -> None:
        """Note (+1) which host ports a gang was promised, or forget them."""
        for placement in gang.slots.values():
            for each in placement.assignments:
                for resource in (name for name, _ in each.requests if is_port(name)):
                    self._ports[resource] += sign
                    if not self._ports[resource]:
                        del self._ports[resource]

    def _reserve(self, key: GangKey, name: str) -> None:
        """Bring what a gang has reserved on a node in line with the pods bound there."""
        before = self._reserved.pop((key, name), Counter())
        after = self._vacant(key, name)
        if after:
            self._reserved[key, name] = after
        if before == after:
            return
        for (place, requests), count in (after - before).items():
            self._keep(place, requests, count)
        for (place, requests), count in (before - after).items():
            self._keep(place, requests, -count)
            self._changed(place)
        self._snapshot = None

    def _vacant(self, key: GangKey, name: str) -> Counter[tuple[str, Requests]]:
        gang, room = self._gangs.get(key), Counter[tuple[str, Requests]]()
        if gang is not None and name in gang.slots:
            members = bound_members(self._members, key, gang, name)
            room += reserved_room(gang.slots[name], members)
        if gang is not None and name in gang.planned:
            room += reserved_room(gang.planned[name], ())
        return room

    def _changed(self, name: str) -> None:
        self.freed.add(name)
        self._snapshot = None


def _claim(seen: WatchedPod) -> tuple[object, ...]:
    """The fields of a pod that say what it takes, and where."""
    pod = seen.pod
    return pod.node, pod.expected_on, pod.terminal, pod.used, seen.priority, pod.member


def _key(gang: Gang) -> GangKey:
    return GangKey(gang.metadata.namespace, gang.metadata.name)


def _guarded(gang: Gang) -> GuardedGang:
    of = gang.spec.ray_cluster_uid
    is_owned = any(owner.uid == of for owner in gang.metadata.owner_references)
    minimum = {each.name: each.minimum for each in gang.spec.pod_sets}
    # The Gang of what was opted out guards nothing: its pods are like any others.
    owner = of if is_owned and gang.status.reason != Reason.OPTED_OUT else ""
    status = gang.status if owner else GangStatus()
    return GuardedGang(owner, _by_node(status.placement), minimum, _by_node(status.planned))


def _by_node(written: GangPlacement | None) -> Mapping[str, Placement]:
    """A placement, node by node; empty where it cannot be read (edited by hand)."""
    if written is None:
        return {}
    try:
        placement = placement_from_status(written)
    except InvalidObject:
        return {}
    found: defaultdict[str, list[Assignment]] = defaultdict(list)
    for each in placement.assignments:
        for name, count in each.nodes:
            here = Assignment(
                each.pod_set, each.replica, each.shape, each.requests, ((name, count),)
            )
            found[name].append(here)
    return {name: Placement(tuple(here)) for name, here in found.items()}
