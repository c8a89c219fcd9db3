"""Finds which slots of a placement are taken or vacant, and assigns pods to the vacant ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kube.codec.observed_pod import ObservedPod
from scheduling.model.amounts import Requests
from scheduling.model.placement import Assignment, Placement
from scheduling.state.bounded_cache import while_alive


class SlotKind(NamedTuple):
    """What the slots of one assignment are for."""

    pod_set: str
    replica: str
    shape: str


class Slot(NamedTuple):
    """A place for a pod of one kind on one node."""

    kind: SlotKind
    node: str


Slots = Counter[Slot]


def slots_of(placement: Placement) -> Slots:
    """All slots of the placement."""
    return Counter(promised(placement))


@while_alive
def promised(placement: Placement) -> Mapping[Slot, int]:
    """The places by slot; kept, because a placement is asked for them at every event."""
    found: Slots = Counter()
    for assignment in placement.assignments:
        for node, count in assignment.nodes:
            found[Slot(kind_in(assignment), node)] += count
    return found


def bound(pods: Iterable[ObservedPod]) -> Iterator[ObservedPod]:
    """The pods that are on their node and stay there."""
    return (pod for pod in pods if pod.node and pod.alive)


def kind_in(assignment: Assignment) -> SlotKind:
    """The kind of pods that an assignment is for."""
    return SlotKind(assignment.pod_set, assignment.replica, assignment.shape)


def vacant_slots(placement: Placement, pods: Iterable[ObservedPod]) -> Slots:
    """The places that no released pod has taken.

    A pod that is bound without a pin was not placed, and takes no place. A released one whose shape
    is not (or no longer) the promised one still takes a place of its pod set on its node: a resize
    in place must not make the gang look as if it had lost a slot.
    """
    return taken_slots(placement, pods)[0]


def taken_slots(
    placement: Placement, pods: Iterable[ObservedPod]
) -> tuple[Slots, list[ObservedPod]]:
    """The places that are vacant, and the pinned or bound pods for which there is none."""
    vacant, settled = slots_of(placement), list(settled_pods(pods))
    strays = [
        pod for pod in settled if not (is_released(pod) and take_slot(vacant, _own_slot(pod)))
    ]
    homeless = [
        pod
        for pod in strays
        if not (is_released(pod) and take_slot(vacant, _any_slot(vacant, pod)))
    ]
    return +vacant, homeless


def is_released(pod: ObservedPod) -> bool:
    """Whether the pod is pinned and has lost our gate: by Muster's release, which does both."""
    return not pod.gated and pod.member is not None and bool(pod.member.pinned)


def settled_pods(pods: Iterable[ObservedPod]) -> Iterable[ObservedPod]:
    """The pods that are pinned or bound and have not ended."""
    return (pod for pod in pods if pod.settled_on and not pod.terminal)


def _own_slot(pod: ObservedPod) -> Slot | None:
    return slot_of(pod, pod.settled_on)


def _any_slot(vacant: Slots, pod: ObservedPod) -> Slot | None:
    member = pod.member
    if member is None:
        return None
    here = (
        slot
        for slot, count in vacant.items()
        if count > 0 and slot.node == pod.settled_on and slot.kind.pod_set == member.pod_set
    )
    return min(here, default=None)


def take_slot(vacant: Slots, slot: Slot | None) -> bool:
    """Take one of these slots; say whether there was one."""
    if slot is None or vacant[slot] <= 0:
        return False
    vacant[slot] -= 1
    return True


def assign(pods: Iterable[ObservedPod], vacant: Slots, kept: Mapping[str, str]) -> dict[str, str]:
    """Give vacant slots to gated pods: uid -> node.

    The pods are served in the order given. `kept` (uid -> node) are targets for which a release
    may already be on its way; they are honoured first, so that no pod is ever sent to two nodes.
    Then those that are nominated get their slot there, so that the nomination may stand.
    """
    left = Counter(vacant)
    queue = list(pods)
    given = _claimed(queue, left, kept)
    nominated = {each.uid: each.nominated_to for each in queue if each.nominated_to}
    given |= _claimed((pod for pod in queue if pod.uid not in given), left, nominated)
    nodes = _nodes_by_kind(left)
    for pod in queue:
        kind = kind_of(pod)
        if pod.uid not in given and kind is not None and nodes[kind]:
            given[pod.uid] = nodes[kind].pop()
    return given


def _claimed(pods: Iterable[ObservedPod], left: Slots, claims: Mapping[str, str]) -> dict[str, str]:
    """Give each pod the slot that it has a claim to (uid -> node), where there still is one."""
    return {
        pod.uid: claims[pod.uid]
        for pod in pods
        if pod.uid in claims and take_slot(left, slot_of(pod, claims[pod.uid]))
    }


def echoes(
    vacant: Mapping[Slot, int], pods: Iterable[ObservedPod], targets: Mapping[str, str]
) -> dict[str, str]:
    """The nominations that only repeat what vacant slots keep: uid -> node.

    kube-scheduler counts such a pod where its slot is. Slots of pods that were released to a node,
    or are being (`targets`, uid -> node), are theirs: no other pod is nominated there in vain.
    """
    left, found = Counter(vacant), dict[str, str]()
    alive = [pod for pod in pods if not pod.node and pod.alive]
    sent = {pod.uid: pod.settled_on or targets.get(pod.uid, "") for pod in alive}
    for pod in sorted(alive, key=lambda pod: not sent[pod.uid]):
        node = sent[pod.uid] or pod.nominated_to
        if node and _take_any(left, pod, node) and pod.nominated_to == node:
            found[pod.uid] = node
    return found


def _take_any(vacant: Slots, pod: ObservedPod, node: str) -> bool:
    """Take the slot of a pod on a node; of a released one that was resized any of its pod set."""
    own = take_slot(vacant, slot_of(pod, node))
    return own or (is_released(pod) and take_slot(vacant, _any_slot(vacant, pod)))


def kind_of(pod: ObservedPod) -> SlotKind | None:
    """The kind of slot that a pod needs; None where its shape cannot be read."""
    member = pod.member
    if member is None or member.shape is None:
        return None
    return SlotKind(member.pod_set, member.replica, member.shape.key)


def slot_of(pod: ObservedPod, node: str) -> Slot | None:
    """The slot that a pod takes on a node; None where its shape cannot be read."""
    kind = kind_of(pod)
    return None if kind is None else Slot(kind, node)


def _nodes_by_kind(slots: Slots) -> defaultdict[SlotKind, list[str]]:
    nodes: defaultdict[SlotKind, list[str]] = defaultdict(list)
    for slot, count in sorted(slots.items(), reverse=True):
        nodes[slot.kind].extend([slot.node] * count)
    return nodes


@dataclass(slots=True)
class Reserved:
    """What a placement promises and no pod holds yet.

    `slots` are those places, `room` the same as (node, requests) -> pods.
    """

    requests: Mapping[SlotKind, Requests] = field(default_factory=dict)
    slots: Slots = field(default_factory=Counter)
    room: Counter[tuple[str, Requests]] = field(default_factory=Counter)

    def bound(self, pod: ObservedPod) -> bool:
        """Take back the place of a pod that holds it now; False where all must be counted anew.

        Of the pods that hold a place, those that have one of their own are served first: so one
        more of them changes nothing for the others while its own place is there.
        """
        kind = kind_of(pod)
        slot = Slot(kind, pod.holds) if kind is not None else None
        if slot is None or pod.holds != pod.settled_on or self.requests.get(slot.kind) != pod.used:
            return False
        if not take_slot(self.slots, slot):
            return False
        self.room[pod.holds, pod.used] -= 1
        if not self.room[pod.holds, pod.used]:
            del self.room[pod.holds, pod.used]
        return True

    def keeps(self, node: str) -> bool:
        """Whether any room of a node is reserved."""
        return any((node, each) in self.room for each in self.requests.values())


def reserved(placement: Placement, pods: Iterable[ObservedPod]) -> Reserved:
    """Count what the placement promises and no pod holds yet."""
    requests = {kind_in(a): a.requests for a in placement.assignments}
    unbound = vacant_slots(placement, (pod for pod in pods if pod.holds))
    room: Counter[tuple[str, Requests]] = Counter()
    for slot, count in unbound.items():
        room[(slot.node, requests[slot.kind])] += count
    return Reserved(requests, unbound, room)


def reserved_room(
    placement: Placement, pods: Iterable[ObservedPod]
) -> Counter[tuple[str, Requests]]:
    """What the placement promises and no pod holds yet: (node, requests) -> pods."""
    return reserved(placement, pods).room
