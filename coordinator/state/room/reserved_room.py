"""Keeps the ledger of room that gangs reserve on nodes, beside what bound pods use."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.pods.nominating import NOWHERE, Nominating
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from reservation.slots import Reserved, Slot, echoes, reserved, slot_of, slots_of
from scheduling.model.amounts import Requests, is_device
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder
from scheduling.model.placement import Placement

NO_PLACEMENT = Placement()


class ReservedRoom:
    """What each gang reserves; the sums are in the cache, where decisions read them.

    Pods are not nominated for a plan to a node on which room is reserved. So the gangs are noted
    whose plans meet a first reservation on a node (`met`), or see the last one go (`parted`).
    """

    def __init__(self, cache: ClusterCache) -> None:
        self.holders: defaultdict[str, set[GangKey]] = defaultdict(set)
        """Node -> the gangs that reserve room on it."""
        self.plans: dict[GangKey, Nominating] = {}
        """The gangs whose pods are nominated for a plan, or would be but for reservations."""
        self.met: set[GangKey] = set()
        self.parted: set[GangKey] = set()
        self.devices = Counter[tuple[str, str]]()
        """Devices that are reserved, by node and resource."""
        self._cache = cache
        self._echoes: dict[str, str] = {}
        """Nominations that a reservation covers: the node by the uid of the pod."""
        cache.counted_on = self.room_of

    def update(self, view: GangView, pods: Iterable[ObservedPod]) -> bool:
        """Bring what a gang reserves in line with its placement and its pods.

        Nominations of its pods take no room beside that as long as they repeat the placement, or
        the plan, whose room the next cycle holds.
        """
        pods = list(pods)
        asked = reserved(view.reservation.placement or NO_PLACEMENT, pods)
        freed = self._hold(view, asked)
        return self._note_nominations(view, pods) or freed

    def release(self, view: GangView) -> bool:
        """Reserve nothing for a gang any more."""
        freed = self._hold(view, Reserved())
        view.queueing.planned = None
        view.nominating.planned_to = NOWHERE
        self.note_plan(view)
        pods = self._cache.members(view.key, view.cluster_uid)
        return self._note_nominations(view, pods) or freed

    def use(self, view: GangView, pod: ObservedPod) -> bool:
        """Turn the reservation of one pod into use; False where all must be looked at for that."""
        reserved_now = view.reservation.reserved
        if not reserved_now.bound(pod):
            return False
        self.reserve(view.key, [(pod.holds, pod.used, -1)])
        if not reserved_now.keeps(pod.holds):
            self._leave(pod.holds, view.key)
        return True

    def repeats(self, view: GangView, pod: ObservedPod) -> bool:
        """Count nothing for a nomination that was asked for; False where all must be looked at."""
        slot, node = slot_of(pod, pod.nominated_to), pod.nominated_to
        if slot is None or node in view.nominating.misnominated or not self._is_kept(view, slot):
            return False
        self._ignore_covered([pod], {pod.uid: node})
        return True

    def reserve(self, gang: GangKey, room: Iterable[tuple[str, Requests, int]]) -> None:
        """Add (or with negative counts take back) room of a gang: (node, requests, pods)."""
        holder = gang_holder(gang)
        for name, requests, count in room:
            self._cache.table.use(name, requests, count)
            self._cache.holders.use(holder, name, requests, count)
            self._count_reserved(name, requests, count)

    def _count_reserved(self, node: str, requests: Requests, count: int) -> None:
        for resource, amount in requests:
            if is_device(resource):
                self.devices[node, resource] += count * amount
                if not self.devices[node, resource]:
                    del self.devices[node, resource]

    def room_of(self, pod: ObservedPod | None) -> str:
        """Name the node on which a pod takes room of its own, beside what is reserved."""
        if pod is None or self._echoes.get(pod.uid) == pod.nominated_to:
            return pod.holds if pod is not None else ""
        return pod.expected_on

    def _ignore_covered(self, pods: Iterable[ObservedPod], nodes: Mapping[str, str]) -> bool:
        """Count none of these nominations (uid -> node), for a reservation keeps their room.

        All others of the pods are counted, as kube-scheduler does. Says whether room came free.
        """
        freed = False
        for pod in pods:
            node = nodes.get(pod.uid, "")
            if pod.nominated_to and self._echoes.get(pod.uid, "") != node:
                before = self.room_of(pod)
                self._cache.count_room(pod, -1)
                self._echoes[pod.uid] = node
                self._cache.count_room(pod, 1)
                freed |= before != "" and before != self.room_of(pod)
        return freed

    def forget_pod(self, uid: str) -> None:
        """Forget a pod that is gone; the cache has it no more."""
        self._echoes.pop(uid, None)

    def note_plan(self, view: GangView) -> None:
        """Note where pods of a gang are nominated for a plan, and where they are not for now."""
        if any(view.nominating.planned_to):
            self.plans[view.key] = view.nominating
        else:
            self.plans.pop(view.key, None)

    def _is_kept(self, view: GangView, slot: Slot) -> bool:
        planned = slots_of(view.queueing.planned or NO_PLACEMENT)
        return bool(view.reservation.reserved.slots.get(slot) or planned.get(slot))

    def gangs_on(self, node: str) -> set[GangKey]:
        """The gangs that reserve room on a node."""
        return self.holders.get(node, set())

    def _hold(self, view: GangView, asked: Reserved) -> bool:
        """Reserve `asked` in place of what was reserved; say whether room came free."""
        before, room = view.reservation.reserved.room, asked.room
        view.reservation.reserved = asked
        if room == before:
            return False
        change = Counter(room)
        change.subtract(before)
        taken = ((node, requests, n) for (node, requests), n in change.items() if n)
        self.reserve(view.key, taken)
        for node in {node for node, _ in before} - {node for node, _ in room}:
            self._leave(node, view.key)
        for node, _ in room:
            self._come(node, view.key)
        return any(n < 0 for n in change.values())

    def _note_nominations(self, view: GangView, pods: Collection[ObservedPod]) -> bool:
        if not any(pod.nominated_to for pod in pods):
            return False
        slots = view.reservation.reserved.slots + slots_of(view.queueing.planned or NO_PLACEMENT)
        return self._ignore_covered(pods, echoes(slots, pods, view.pod_writes.targets))

    def _come(self, node: str, gang: GangKey) -> None:
        """Note that a gang reserves room on a node."""
        if node not in self.holders:
            self.met |= {
                key for key, each in self.plans.items() if node in each.planned_to.nominated
            }
        self.holders[node].add(gang)

    def _leave(self, node: str, gang: GangKey) -> None:
        """Note that a gang reserves nothing on a node any more."""
        self.holders[node].discard(gang)
        if not self.holders[node]:
            del self.holders[node]
            withheld = (key for key, each in self.plans.items() if node in each.planned_to.withheld)
            self.parted |= set(withheld)
