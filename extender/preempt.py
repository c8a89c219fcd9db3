"""Keeps of the nodes with victims those where evicting them makes room for the pod.

kube-scheduler works out victims without knowing of reservations, and evicts what it is given
without asking whether the pod then fits. So a node is dropped, whole, when the pod would not fit
there beside the reservations once the victims are gone, and when a victim belongs to the minimum
of a gang: one member evicted is a gang stopped. Victims are never changed.

A member that goes leaves a seat, which stays its gang's: its room is no gain for anybody else.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from extender.filter import judged, nominated_on, seat_of
from extender.memory.in_flight_room import NOTHING_PASSED
from extender.snapshot import Seen, Snapshot
from kube.codec.observed_pod import ObservedPod
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey
from scheduling.model.host_ports import is_port, offered
from scheduling.state.node_snapshot import NodeSnapshot


@dataclass(frozen=True, slots=True)
class Rules:
    """`protect_minimum`: no member of a gang's minimum may be a victim."""

    protect_minimum: bool = True


def kept_nodes(
    asked: Seen, victims: Mapping[str, tuple[str, ...]], snapshot: Snapshot, rules: Rules
) -> list[str]:
    """Return the nodes, of those with victims (by uid), on which eviction helps and is allowed."""
    return [node for node, uids in victims.items() if _stays(asked, node, uids, snapshot, rules)]


def _stays(asked: Seen, node: str, uids: tuple[str, ...], snapshot: Snapshot, rules: Rules) -> bool:
    found = [snapshot.pods[uid] for uid in uids if uid in snapshot.pods]
    if not uids or len(found) != len(uids) or node not in snapshot.bound.index:
        return False  # not all is known that would be needed to say yes
    if any(victim.pod.node != node for victim in found):
        return False
    if rules.protect_minimum and _breaks_a_gang([each.pod for each in found], snapshot):
        return False
    return _would_fit(asked, node, found, snapshot)


# ---- room


def _would_fit(asked: Seen, node: str, victims: list[Seen], snapshot: Snapshot) -> bool:
    gang = snapshot.gang_of(asked.pod)
    columns, freed = snapshot.guarded, _freed(victims, snapshot)
    if gang is not None:
        pinned = asked.pod.member.pinned if asked.pod.member else ""
        seat = seat_of(asked.pod, gang, node, snapshot, NOTHING_PASSED)
        if pinned != node or seat is None:
            return False
        for resource, amount in seat:
            freed[resource] += amount
    for amounts in nominated_on(node, asked, snapshot):
        for resource, amount in amounts:
            freed[resource] -= amount
    return _fits(judged(asked.pod, snapshot), node, columns, freed)


def _freed(victims: list[Seen], snapshot: Snapshot) -> defaultdict[str, int]:
    """What others gain by the evictions; a seat stays reserved."""
    freed: defaultdict[str, int] = defaultdict(int)
    for each in victims:
        if not _leaves_a_seat(each.pod, snapshot):
            for resource, amount in each.pod.used:
                freed[resource] += amount
    return freed


def _leaves_a_seat(pod: ObservedPod, snapshot: Snapshot) -> bool:
    gang = snapshot.gang_of(pod)
    return gang is not None and pod.node in gang.seats


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
        for node in gang.seats
        for pod in snapshot.members.get((key, node), {}).values()
        if pod.alive
        and pod.member is not None
        and (pod.member.cluster_uid, pod.member.pod_set) == (gang.cluster_uid, pod_set)
        and _unit(pod) not in gone
    ]
    return len(left) < gang.minimum.get(pod_set, 0)


def _unit(pod: ObservedPod) -> str:
    """What is lost with a pod: its replica, where replicas have several hosts."""
    return (pod.member.replica if pod.member else "") or pod.uid
