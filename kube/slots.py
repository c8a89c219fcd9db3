"""Which places of a placement are taken, which are vacant, and which pod gets which?

A placement promises counts: so many pods of this shape of this pod set on this node. Each
promised place is a slot. A pod that is pinned or bound takes a slot of its node; the vacant
ones are the reservation, and go to the gated pods in the order of their names. All of it is
arithmetic on values: the same placement and the same pods give the same answer in every
coordinator, which is what lets another leader complete exactly what the last one began.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kube.observed import Amounts, ObservedPod
from scheduling.bounded import while_alive
from scheduling.model import Assignment, Placement


class Kind(NamedTuple):
    """What the slots of one assignment are for."""

    pod_set: str
    replica: str
    shape: str


class Slot(NamedTuple):
    """A place for a pod of one kind on one node."""

    kind: Kind
    node: str


Slots = Counter[Slot]


def slots_of(placement: Placement) -> Slots:
    """All places that the placement promises."""
    return Counter(_promised(placement))


@while_alive
def _promised(placement: Placement) -> Mapping[Slot, int]:
    """The places by slot; kept, because a placement is asked for them at every event."""
    found: Slots = Counter()
    for assignment in placement.assignments:
        for node, count in assignment.nodes:
            found[Slot(_kind(assignment), node)] += count
    return found


def turns_of(placement: Placement) -> Mapping[Slot, int]:
    """The turn of each place; empty where there is only one.

    What lets one pod of a kind in on a node lets in the others: a place has its earliest turn.
    """
    return _turns(placement) if any(each.turn for each in placement.assignments) else {}


@while_alive
def _turns(placement: Placement) -> Mapping[Slot, int]:
    found: dict[Slot, int] = {}
    for assignment in sorted(placement.assignments, key=lambda each: each.turn):
        for node, _ in assignment.nodes:
            found.setdefault(Slot(_kind(assignment), node), assignment.turn)
    return found


def turn_count(placement: Placement) -> int:
    """How many turns the pods are released in."""
    return max(turns_of(placement).values(), default=0) + 1


def turn_due(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    """The first turn of which not every place has a bound pod; later ones wait for it."""
    turns = turns_of(placement)
    unbound = vacant_slots(placement, _bound(pods)) if turns else ()
    return min((turns[slot] for slot in unbound), default=turn_count(placement) - 1)


def turn_reached(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    """The last turn of which a pod was released."""
    turns = turns_of(placement)
    taken = slots_of(placement) - vacant_slots(placement, pods) if turns else ()
    return max((turns[slot] for slot in taken), default=0)


def _bound(pods: Iterable[ObservedPod]) -> Iterator[ObservedPod]:
    """The pods that are on their node and stay there."""
    return (pod for pod in pods if pod.node and pod.alive)


def _kind(assignment: Assignment) -> Kind:
    return Kind(assignment.pod_set, assignment.replica, assignment.shape)


def vacant_slots(placement: Placement, pods: Iterable[ObservedPod]) -> Slots:
    """The places that no released pod has taken.

    A pod that is bound without a pin was not placed, and takes no place. A released one whose shape
    is not (or no longer) the promised one still takes a place of its pod set on its node: a resize
    in place must not make the gang look as if it had lost a seat.
    """
    return _taken(placement, pods)[0]


def _taken(placement: Placement, pods: Iterable[ObservedPod]) -> tuple[Slots, list[ObservedPod]]:
    """The places that are vacant, and the pinned or bound pods for which there is none."""
    vacant, settled = slots_of(placement), list(_settled(pods))
    strays = [pod for pod in settled if not (is_released(pod) and _take(vacant, _own_slot(pod)))]
    homeless = [
        pod for pod in strays if not (is_released(pod) and _take(vacant, _any_slot(vacant, pod)))
    ]
    return +vacant, homeless


def is_released(pod: ObservedPod) -> bool:
    """Whether the pod is pinned and has lost our gate: by Muster's release, which does both."""
    return not pod.gated and pod.member is not None and bool(pod.member.pinned)


def _settled(pods: Iterable[ObservedPod]) -> Iterable[ObservedPod]:
    return (pod for pod in pods if pod.settled_on and not pod.terminal)


def _own_slot(pod: ObservedPod) -> Slot | None:
    return seat_of(pod, pod.settled_on)


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


def _take(vacant: Slots, slot: Slot | None) -> bool:
    if slot is None or vacant[slot] <= 0:
        return False
    vacant[slot] -= 1
    return True


def assign(pods: Iterable[ObservedPod], vacant: Slots, kept: Mapping[str, str]) -> dict[str, str]:
    """Give vacant slots to gated pods: uid -> node.

    The pods are served in the order given. `kept` (uid -> node) are targets for which a release
    may already be on its way; they are honoured first, so that no pod is ever sent to two nodes.
    """
    left = Counter(vacant)
    queue = list(pods)
    given = {
        pod.uid: kept[pod.uid]
        for pod in queue
        if pod.uid in kept and _take(left, seat_of(pod, kept[pod.uid]))
    }
    nodes = _nodes_by_kind(left)
    for pod in queue:
        kind = kind_of(pod)
        if pod.uid not in given and kind is not None and nodes[kind]:
            given[pod.uid] = nodes[kind].pop()
    return given


def kind_of(pod: ObservedPod) -> Kind | None:
    """The kind of slot that a pod needs; None where its shape cannot be read."""
    member = pod.member
    if member is None or member.shape is None:
        return None
    return Kind(member.pod_set, member.replica, member.shape.key)


def seat_of(pod: ObservedPod, node: str) -> Slot | None:
    """The slot that a pod takes on a node; None where its shape cannot be read."""
    kind = kind_of(pod)
    return None if kind is None else Slot(kind, node)


def _nodes_by_kind(slots: Slots) -> defaultdict[Kind, list[str]]:
    nodes: defaultdict[Kind, list[str]] = defaultdict(list)
    for slot, count in sorted(slots.items(), reverse=True):
        nodes[slot.kind].extend([slot.node] * count)
    return nodes


@dataclass(slots=True)
class Reserved:
    """What a placement promises and no pod holds yet.

    `slots` are those places, `room` the same as (node, requests) -> pods.
    """

    requests: Mapping[Kind, Amounts] = field(default_factory=dict)
    slots: Slots = field(default_factory=Counter)
    room: Counter[tuple[str, Amounts]] = field(default_factory=Counter)

    def bound(self, pod: ObservedPod) -> bool:
        """Take back the place of a pod that holds it now; False where all must be counted anew.

        Of the pods that hold a place, those that have one of their own are served first: so one
        more of them changes nothing for the others while its own place is there.
        """
        kind = kind_of(pod)
        slot = Slot(kind, pod.holds) if kind is not None else None
        if slot is None or pod.holds != pod.settled_on or self.requests.get(slot.kind) != pod.used:
            return False
        if not _take(self.slots, slot):
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
    requests = {_kind(a): a.requests for a in placement.assignments}
    unbound = vacant_slots(placement, (pod for pod in pods if pod.holds))
    room: Counter[tuple[str, Amounts]] = Counter()
    for slot, count in unbound.items():
        room[(slot.node, requests[slot.kind])] += count
    return Reserved(requests, unbound, room)


def reserved_room(
    placement: Placement, pods: Iterable[ObservedPod]
) -> Counter[tuple[str, Amounts]]:
    """What the placement promises and no pod holds yet: (node, requests) -> pods."""
    return reserved(placement, pods).room


def without_nodes(
    placement: Placement, pods: Iterable[ObservedPod], nodes: Container[str]
) -> Placement:
    """The placement without what is vacant on these nodes; what was taken there stays taken."""
    slots = slots_of(placement)
    for slot, count in vacant_slots(placement, pods).items():
        slots[slot] -= count if slot.node in nodes else 0
    return _rebuilt(placement, slots)


def without_slots(placement: Placement, slots: Slots) -> Placement:
    """The placement without these places."""
    return _rebuilt(placement, slots_of(placement) - slots)


def without_turns(placement: Placement, pods: Iterable[ObservedPod], before: int) -> Placement:
    """The placement without what is vacant of turns before this one."""
    turns = turns_of(placement)
    vacant = vacant_slots(placement, pods) if turns else Counter[Slot]()
    gone = Counter({slot: count for slot, count in vacant.items() if turns[slot] < before})
    return _rebuilt(placement, slots_of(placement) - gone) if gone else placement


def trim(placement: Placement, pods: Sequence[ObservedPod], counts: Mapping[str, int]) -> Placement:
    """Give up vacant slots of pod sets that have more slots than they may have pods.

    `counts` (pod set -> pods wanted) follows the RayCluster: scaling down ends reservations, of
    replicas that are gone first.
    """
    total: Counter[str] = Counter()
    for slot, count in _promised(placement).items():
        total[slot.kind.pod_set] += count
    if all(count <= counts.get(pod_set, 0) for pod_set, count in total.items()):
        return placement
    slots, vacant, there = slots_of(placement), vacant_slots(placement, pods), _replicas_of(pods)
    for slot in sorted(vacant, key=lambda slot: (slot.kind[:2] not in there, slot), reverse=True):
        pod_set = slot.kind.pod_set
        give_up = max(0, min(vacant[slot], total[pod_set] - counts.get(pod_set, 0)))
        slots[slot] -= give_up
        total[pod_set] -= give_up
    return _rebuilt(placement, slots)


Replica = tuple[str, str]
"""Pod set and name; the name is empty where a replica is one pod."""


def _replicas_of(pods: Iterable[ObservedPod]) -> set[Replica]:
    """The replicas of which there is a pod."""
    members = (pod.member for pod in pods if not pod.terminal)
    return {(member.pod_set, member.replica) for member in members if member is not None}


def without_halves(
    placement: Placement, pods: Sequence[ObservedPod], hosts: Mapping[str, int]
) -> Placement:
    """The placement without what is vacant of replicas that have lost seats.

    A replica is whole or nothing: KubeRay deletes what is left of one, so nobody comes for the
    seats that are left. A pod that was released under a placement that is gone needs no seat.
    `hosts` (pod set -> pods of a replica) says when it is whole; where that is one, a name that
    pods may bear means nothing.
    """
    named = _named(placement)
    if not named:
        return placement
    vacant, homeless = _taken(placement, pods)
    there = Counter(each.member and (each.member.pod_set, each.member.replica) for each in homeless)
    sizes = {
        each: (make.total() + there[each], hosts.get(each[0], 1)) for each, make in named.items()
    }
    halves = {each for each, (seats, whole) in sizes.items() if whole > 1 and seats != whole}
    if not halves:
        return placement
    slots = slots_of(placement)
    for slot, count in vacant.items():
        slots[slot] -= count if slot.kind[:2] in halves else 0
    return _rebuilt(placement, slots)


def handed_on(placement: Placement, pods: Sequence[ObservedPod]) -> Placement:
    """The placement with the seats of replicas that are gone in the names of their successors.

    A replica that lost a pod is made again as a whole, under a new name. It takes the seats of one
    of the same make that has no pod any more, in order of name.
    """
    named = _named(placement)
    if not named:
        return placement
    there = _replicas_of(pods)
    orphans = {each: make for each, make in named.items() if each not in there}
    kinds = (kind_of(pod) for pod in pods if orphans and pod.gated and pod.alive)
    new = _by_replica((kind, 1) for kind in kinds if kind is not None and kind[:2] not in named)
    heirs = {}
    for (pod_set, name), make in sorted(new.items()):
        alike = (each for each in orphans if each[0] == pod_set and orphans[each] == make)
        orphan = min(alike, default=None)
        if orphan is not None:
            del orphans[orphan]
            heirs[orphan] = name
    return _renamed(placement, heirs)


@while_alive
def _named(placement: Placement) -> Mapping[Replica, Counter[str]]:
    """The replicas of several pods that a placement names."""
    return _by_replica((slot.kind, count) for slot, count in _promised(placement).items())


def _by_replica(counted: Iterable[tuple[Kind, int]]) -> dict[Replica, Counter[str]]:
    """How many pods of which shapes each replica has that has a name."""
    found: defaultdict[Replica, Counter[str]] = defaultdict(Counter)
    for kind, count in counted:
        if kind.replica:
            found[kind.pod_set, kind.replica][kind.shape] += count
    return dict(found)


def _renamed(placement: Placement, heirs: Mapping[Replica, str]) -> Placement:
    if not heirs:
        return placement
    names = ((each, heirs.get((each.pod_set, each.replica))) for each in placement.assignments)
    renamed = (replace(each, replica=name) if name else each for each, name in names)
    return Placement(tuple(sorted(renamed, key=lambda each: (_kind(each), each.turn))))


def without_unclaimed(
    placement: Placement,
    pods: Sequence[ObservedPod],
    counts: Mapping[str, int],
    hosts: Mapping[str, int],
    kept: Mapping[str, str],
) -> Placement:
    """The placement without vacant seats for which nobody will come.

    Pods whose template was changed need another kind of seat than those before them. Where they and
    all others are as many as are wanted (`counts`, by pod set), what is left over is of no use, and
    would pass for their room. `hosts` and `kept` are as elsewhere here.
    """
    left = vacant_slots(placement, pods)
    gated = [pod for pod in pods if pod.gated and pod.alive]
    if not left or not _kinds(gated) - _by_kind(left):
        return placement
    given = assign(gated, left, kept)
    for pod in gated:
        _take(left, seat_of(pod, given.get(pod.uid, "")))
    strangers = _strangers(placement, [pod for pod in gated if pod.uid not in given], hosts)
    if not strangers or not +left:
        return placement
    here = (pod.member for pod in pods if pod.alive and (pod.uid in given or not pod.gated))
    present = strangers + Counter(member.pod_set for member in here if member is not None)
    return _given_up(placement, left, present, counts)


def _strangers(
    placement: Placement, unseated: Sequence[ObservedPod], hosts: Mapping[str, int]
) -> Counter[str]:
    """How many pods of each set none of its seats is for; replicas count when they are whole."""
    makes: defaultdict[Replica, Counter[str]] = defaultdict(Counter)
    for kind, count in _kinds(unseated).items():
        single = hosts.get(kind.pod_set, 1) == 1
        makes[kind.pod_set, "" if single else kind.replica][kind.shape] += count
    known = [(pod_set, make) for (pod_set, _), make in _named(placement).items()]
    strangers: Counter[str] = Counter()
    for (pod_set, name), make in makes.items():
        whole = hosts.get(pod_set, 1)
        if not name:
            strangers[pod_set] += make.total() // whole * whole
        elif make.total() == whole and (pod_set, make) not in known:
            strangers[pod_set] += whole
    return +strangers


def _kinds(pods: Iterable[ObservedPod]) -> Counter[Kind]:
    return Counter(kind for pod in pods if (kind := kind_of(pod)) is not None)


def _by_kind(slots: Slots) -> Counter[Kind]:
    found: Counter[Kind] = Counter()
    for slot, count in slots.items():
        found[slot.kind] += count
    return found


def _given_up(
    placement: Placement,
    left: Slots,
    present: Mapping[str, int],
    counts: Mapping[str, int],
) -> Placement:
    slots, over = slots_of(placement), Counter(present)
    for slot, count in left.items():
        over[slot.kind.pod_set] += count
    over.subtract(counts)
    over = +over
    for slot in sorted(+left, reverse=True):
        give_up = min(left[slot], over[slot.kind.pod_set])
        slots[slot] -= give_up
        over[slot.kind.pod_set] -= give_up
    return _rebuilt(placement, slots)


def merged(first: Placement, second: Placement, pods: Iterable[ObservedPod] = ()) -> Placement:
    """Both placements as one: what was promised before, and what was decided now.

    Where the first has turns, the second comes with its last or, as long as pods of it are not
    bound, after it: nothing may come between.
    """
    slots = slots_of(first) + slots_of(second)
    offset = _turn_for_more(first, pods)
    later = tuple(replace(each, turn=each.turn + offset) for each in second.assignments)
    return _rebuilt(Placement(assignments=first.assignments + later), slots)


def _turn_for_more(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    last = max(turns_of(placement).values(), default=0)
    if not last:
        return 0
    return last + bool(vacant_slots(placement, _bound(pods)))


def _rebuilt(placement: Placement, slots: Mapping[Slot, int]) -> Placement:
    nodes: defaultdict[tuple[Kind, int], dict[str, int]] = defaultdict(dict)
    turns = turns_of(placement)
    for slot, count in slots.items():
        if count > 0:
            nodes[slot.kind, turns.get(slot, 0)][slot.node] = count
    kinds = {_kind(a): a for a in placement.assignments}
    return Placement(
        assignments=tuple(
            replace(kinds[kind], nodes=tuple(sorted(nodes[kind, turn].items())), turn=turn)
            for kind, turn in sorted(nodes)
        )
    )


def placement_from_pins(pods: Iterable[ObservedPod]) -> Placement | None:
    """The placement that the released pods of a gang tell of, when its record is lost.

    A pod without pin was never placed, wherever it is.
    """
    found: defaultdict[Kind, Counter[str]] = defaultdict(Counter)
    requests: dict[Kind, Amounts] = {}
    for pod in _settled(pods):
        kind, shape = kind_of(pod), pod.member.shape if pod.member is not None else None
        if kind is not None and shape is not None and is_released(pod):
            found[kind][pod.settled_on] += 1
            requests[kind] = shape.requests
    if not found:
        return None
    return Placement(
        assignments=tuple(
            Assignment(*kind, requests=requests[kind], nodes=tuple(sorted(found[kind].items())))
            for kind in sorted(found)
        )
    )
