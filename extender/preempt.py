"""Drops the nodes on which evicting the victims would not make room (extender verb `preempt`).

kube-scheduler selects victims without knowing of reservations, and evicts them without asking
again whether the pod then fits. So a node is dropped, whole, when the pod would not fit there
beside the reservations once the victims are gone, and when a victim belongs to the minimum of a
gang: one member evicted is a gang stopped. Victims are never changed.

A member that is evicted leaves a slot, which stays its gang's: other pods do not gain its room.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.devices.guard import lacking_on
from extender.filter import devices_kept, judged, nominated_on, slot_requests
from extender.memory.in_flight_room import NONE_IN_FLIGHT
from extender.snapshot import Snapshot, WatchedPod
from extender.wire.node_lists import places
from kube.codec.observed_pod import ObservedPod
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey
from scheduling.model.shape.host_ports import is_port, offered
from scheduling.state.node_snapshot import NodeSnapshot


@dataclass(frozen=True, slots=True)
class Rules:
    """`protect_minimum`: no member of a gang's minimum may be a victim."""

    protect_minimum: bool = True


def kept_nodes(
    asked: WatchedPod, victims: Mapping[str, tuple[str, ...]], snapshot: Snapshot, rules: Rules
) -> list[str]:
    """Return the nodes, of those with victims (by uid), on which eviction helps and is allowed."""
    return [node for node, uids in victims.items() if _stays(asked, node, uids, snapshot, rules)]


def _stays(
    asked: WatchedPod, node: str, uids: tuple[str, ...], snapshot: Snapshot, rules: Rules
) -> bool:
    found = [snapshot.pods[uid] for uid in uids if uid in snapshot.pods]
    if not uids or len(found) != len(uids) or node not in snapshot.bound.index:
        return False  # a victim or the node is unknown, so there is no basis for a yes
    if any(victim.pod.node != node for victim in found):
        return False
    if rules.protect_minimum and _breaks_a_gang([each.pod for each in found], snapshot):
        return False
    return _would_fit(asked, node, found, snapshot)


# ---- room


def _would_fit(asked: WatchedPod, node: str, victims: list[WatchedPod], snapshot: Snapshot) -> bool:
    gang = snapshot.gang_of(asked.pod)
    columns, freed = snapshot.guarded, _freed(victims, snapshot)
    if gang is not None:
        pinned = asked.pod.member.pinned if asked.pod.member else ""
        slot = slot_requests(asked.pod, gang, node, snapshot, NONE_IN_FLIGHT)
        if pinned != node or slot is None:
            return False
        for resource, amount in slot:
            freed[resource] += amount
    for amounts in nominated_on(node, asked, snapshot):
        for resource, amount in amounts:
            freed[resource] -= amount
    return _fits(_listed(asked, node, snapshot), node, columns, freed) and (
        gang is not None or not _devices_are_kept(asked, node, snapshot)
    )


def _listed(asked: WatchedPod, node: str, snapshot: Snapshot) -> Requests:
    """The requests that are counted on the node: what its devices give is not."""
    requests = judged(asked.pod, snapshot)
    lacking = lacking_on(requests, snapshot.bound.traits.nodes[snapshot.bound.index[node]])
    return tuple(each for each in requests if each not in lacking)


def _devices_are_kept(asked: WatchedPod, node: str, snapshot: Snapshot) -> bool:
    """Whether the pod would be kept off once the victims are gone: their devices stay for a while.

    A claim is freed only when no pod has it any more.
    """
    at = places([node], snapshot.bound.traits)
    there = np.ones(1, dtype=np.bool_)
    return bool(devices_kept(asked, at, there, snapshot, NONE_IN_FLIGHT)[0])


def _freed(victims: list[WatchedPod], snapshot: Snapshot) -> defaultdict[str, int]:
    """What others gain by the evictions; a slot stays reserved."""
    freed: defaultdict[str, int] = defaultdict(int)
    for each in victims:
        if not _leaves_a_slot(each.pod, snapshot):
            for resource, amount in each.pod.used:
                freed[resource] += amount
    return freed


def _leaves_a_slot(pod: ObservedPod, snapshot: Snapshot) -> bool:
    gang = snapshot.gang_of(pod)
    return gang is not None and pod.node in gang.slots


def _fits(requests: Requests, node: str, columns: NodeSnapshot, freed: Mapping[str, int]) -> bool:
    at = columns.index[node]
    for resource, amount in requests:
        free = _free(resource, at, columns)
        if free is None or free + freed.get(resource, 0) < amount:
            return False
    return True


def _free(resource: str, at: int, columns: NodeSnapshot) -> int | None:
    if is_port(resource):
        return offered(resource) - columns.ports.get(resource, {}).get(columns.names[at], 0)
    row = columns.row.get(resource)
    return None if row is None else int(columns.free[row, at])


# ---- gangs


def _breaks_a_gang(victims: list[ObservedPod], snapshot: Snapshot) -> bool:
    """Whether a gang would be left with fewer pods of a set than its minimum."""
    hit: defaultdict[tuple[GangKey, str], list[ObservedPod]] = defaultdict(list)
    for pod in victims:
        if pod.member is not None and snapshot.gang_of(pod) is not None:
            hit[pod.member.gang, pod.member.pod_set].append(pod)
    return any(_too_few(*key, pods, snapshot) for key, pods in hit.items())


def _too_few(key: GangKey, pod_set: str, lost: list[ObservedPod], snapshot: Snapshot) -> bool:
    gang = snapshot.gangs[key]
    gone = {_unit(pod) for pod in lost}
    left = [
        pod
        for node in gang.slots
        for pod in snapshot.members.get((key, node), {}).values()
        if pod.alive
        and pod.member is not None
        and (pod.member.cluster_uid, pod.member.pod_set) == (gang.cluster_uid, pod_set)
        and _unit(pod) not in gone
    ]
    return len(left) < gang.minimum.get(pod_set, 0)


def _unit(pod: ObservedPod) -> str:
    """The replica that is lost with a pod, where replicas have several hosts; else the pod."""
    return (pod.member.replica if pod.member else "") or pod.uid
