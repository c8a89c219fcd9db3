"""Works out for each pod set which pods run, have a slot, wait or are missing.

Each change of a gang works its standing out anew from the pods, the placement and the RayCluster;
nothing of it is stored. Demand, status and release all read the same value.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kube.codec.observed_pod import ObservedPod
from kube.ray.gang_terms import GangTerms, PodSetTerms
from reservation.release_order import NONE_DUE, held_back
from reservation.slots import Slot, Slots, assign, slot_of, vacant_slots
from scheduling.model.placement import Placement

NO_PLACEMENT = Placement()


@dataclass(frozen=True, slots=True)
class PodSetStanding:
    """One pod set.

    `settled`: without our gate, bound or on its way to its pinned node. `with_slot`: gated, with
    the node of its slot. `waiting`: gated by us alone and without a slot. `blocked`: gated by
    others too. `vacant`: slots that no released or bound pod has taken, those of `with_slot`
    included. `early`: the uids of pods with a slot whose release waits for binds of others.
    `unpinned`: without our gate, pin and node, which kube-scheduler may bind to any node: such a
    pod has no room.
    """

    terms: PodSetTerms
    settled: tuple[ObservedPod, ...]
    with_slot: tuple[tuple[ObservedPod, str], ...]
    waiting: tuple[ObservedPod, ...]
    blocked: tuple[ObservedPod, ...]
    vacant: int
    early: frozenset[str] = frozenset()
    unpinned: tuple[ObservedPod, ...] = ()

    @property
    def placed(self) -> int:
        """Pods that need no decision: they have taken their room, or it is kept for them."""
        return len(self.settled) + self.vacant

    @property
    def missing(self) -> int:
        """How many pods of the minimum have no room yet."""
        return max(0, self.terms.minimum - self.placed)

    @property
    def gated(self) -> tuple[ObservedPod, ...]:
        """All pods with our gate."""
        return (*(pod for pod, _ in self.with_slot), *self.waiting, *self.blocked)

    @property
    def free(self) -> tuple[tuple[ObservedPod, str], ...]:
        """The pods with a slot that our gate alone holds."""
        return tuple((pod, node) for pod, node in self.with_slot if not pod.foreign_gates)

    @property
    def lacks(self) -> bool:
        """Whether a pod of the minimum neither is on its way nor could go."""
        return len(self.settled) + len(self.free) < self.terms.minimum

    @property
    def exist(self) -> int:
        """How many pods of the set there are."""
        without_slot = len(self.waiting) + len(self.blocked)
        return len(self.settled) + len(self.with_slot) + without_slot + len(self.unpinned)

    @property
    def claimants(self) -> int:
        """How many pods may come for a kept slot: those without one, and those yet to be made.

        The pods of a replica that is not whole yet are among them, and so are those that gates of
        others hold.
        """
        others = len(self.settled) + len(self.free) + len(self.unpinned)
        return max(0, self.terms.count - others)

    @property
    def kept(self) -> int:
        """How many slots are kept without a pod that we could release.

        Gates of others may never go: a pod that has one keeps no slot from its end.
        """
        return self.vacant - len(self.free)

    @property
    def ready(self) -> int:
        """How many pods are Ready."""
        return sum(pod.ready for pod in self.settled)

    @property
    def bound(self) -> int:
        """How many pods are on their node."""
        return sum(bool(pod.node) for pod in self.settled)


Standing = tuple[PodSetStanding, ...]


def is_ready(standing: Standing) -> bool:
    """Whether the whole minimum is ready, and there is a minimum."""
    wanted = any(each.terms.minimum for each in standing)
    return wanted and all(each.ready >= each.terms.minimum for each in standing)


def survey(
    terms: GangTerms,
    pods: Sequence[ObservedPod],
    placement: Placement | None,
    targets: Mapping[str, str],
    leaving: Container[str] = (),
    due_beside: int = NONE_DUE,
) -> Standing:
    """Work out the standing.

    `targets` (uid -> node) are releases that may be on their way; `leaving` are the uids of pods
    that we are deleting: they take room for as long as they are seen, but are no members.
    `due_beside` is the wave that is due of gangs that were placed with this one.
    """
    placement = placement or NO_PLACEMENT
    vacant = vacant_slots(placement, pods)
    by_set: defaultdict[str, list[ObservedPod]] = defaultdict(list)
    for pod in pods:
        if pod.alive and pod.member is not None and pod.uid not in leaving:
            by_set[pod.member.pod_set].append(pod)
    lines = [(each, _line_up(by_set[each.name], each.hosts)) for each in terms.pod_sets]
    gated = [pod for _, line in lines for pod in line if pod.gated]
    nodes = assign(gated, vacant, targets)
    staying = (pod for pod in pods if pod.uid not in leaving)
    early = _early(gated, nodes, held_back(placement, staying, due_beside))
    return tuple(_pod_set(each, line, vacant, nodes, early) for each, line in lines)


def _early(
    gated: Iterable[ObservedPod], nodes: Mapping[str, str], held: Container[Slot]
) -> frozenset[str]:
    """The uids of pods that have a slot which is held back."""
    given = ((pod.uid, slot_of(pod, nodes[pod.uid])) for pod in gated if pod.uid in nodes)
    return frozenset(uid for uid, slot in given if slot in held)


def _line_up(pods: Iterable[ObservedPod], hosts: int) -> list[ObservedPod]:
    """Order the pods of a set as they get their slots, the pods of a replica side by side.

    Replicas that gates of others hold back go last, those that lack a pod before them, and one
    that was begun goes first: no slot is given to half a replica while a whole one waits.
    """
    replica = {pod.uid: _replica(pod, hosts) for pod in pods}
    size = Counter(replica.values())
    held = {replica[pod.uid] for pod in pods if pod.foreign_gates}
    begun = {replica[pod.uid] for pod in pods if not pod.gated}

    def place(pod: ObservedPod) -> tuple[bool, bool, bool, str, str]:
        name = replica[pod.uid]
        return (name in held, size[name] < hosts, name not in begun, name, pod.name)

    return sorted(pods, key=place)


def _replica(pod: ObservedPod, hosts: int) -> str:
    return pod.member.replica if hosts > 1 and pod.member is not None else pod.name


def _pod_set(
    terms: PodSetTerms,
    mine: Iterable[ObservedPod],
    vacant: Slots,
    nodes: Mapping[str, str],
    early: frozenset[str],
) -> PodSetStanding:
    gated = [pod for pod in mine if pod.gated]
    without_slot = [pod for pod in gated if pod.uid not in nodes]
    return PodSetStanding(
        terms=terms,
        settled=tuple(pod for pod in mine if not pod.gated and pod.settled_on),
        with_slot=tuple((pod, nodes[pod.uid]) for pod in gated if pod.uid in nodes),
        waiting=tuple(pod for pod in without_slot if not pod.foreign_gates),
        blocked=tuple(pod for pod in without_slot if pod.foreign_gates),
        vacant=_vacant_of(terms.name, vacant),
        early=early & {pod.uid for pod in gated} if early else early,
        unpinned=tuple(pod for pod in mine if not pod.gated and not pod.settled_on),
    )


def _vacant_of(pod_set: str, vacant: Slots) -> int:
    return sum(count for slot, count in vacant.items() if slot.kind.pod_set == pod_set)


def releasable(standing: Standing) -> list[tuple[ObservedPod, str]]:
    """The pods with a slot whose release waits for no bind and no gate of others."""
    return [
        (pod, node)
        for pod_set in standing
        for pod, node in pod_set.with_slot
        if not pod.foreign_gates and pod.uid not in pod_set.early
    ]


def ready_for_release(standing: Standing) -> list[tuple[ObservedPod, str]]:
    """The pods with a slot that may be released now, with their nodes; the head before the rest.

    Workers wait in an init container until the head answers; a worker that starts first holds
    its GPUs for nothing.
    """
    ready = releasable(standing)
    heads = {id(p) for p, _ in standing[0].with_slot} if standing else set()
    first = [(pod, node) for pod, node in ready if id(pod) in heads]
    return first or ready


def exist_in_words(standing: Standing) -> str:
    """Say how many pods of the minimum exist."""
    exist = sum(min(each.exist, each.terms.minimum) for each in standing)
    return f"{exist} of {sum(each.terms.minimum for each in standing)} pods exist"
