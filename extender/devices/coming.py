"""Lists, by node, the pods that will get devices, and pods whose claims do not show theirs yet."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from kube.codec.observed_pod import ObservedPod
from kube.devices.device_index import DeviceIndex
from reservation.claims import by_kind, claims_of, claims_of_slots
from reservation.slots import SlotKind, kind_in, kind_of, settled_pods, vacant_slots
from scheduling.devices.keeping import OnTheWay
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from scheduling.model.shape.restrictions import Claims


class PlacedGang(Protocol):
    """A gang as its Gang says: the slots that it has and those that it will have, by node."""

    @property
    def cluster_uid(self) -> str: ...  # noqa: D102
    @property
    def slots(self) -> Mapping[str, Placement]: ...  # noqa: D102
    @property
    def planned(self) -> Mapping[str, Placement]: ...  # noqa: D102


@dataclass
class Coming:
    """The pods that are to be allocated devices on one node.

    `decided` are those of gangs, by wave, with their uids ("" where there is no pod yet). `bound`
    are pods that have theirs, though their claims do not show it yet.
    """

    decided: list[tuple[GangKey, int, str, Claims]] = field(default_factory=list)
    bound: list[Claims] = field(default_factory=list)
    unread: bool = False

    @cached_property
    def alone(self) -> OnTheWay:
        """Return them where no pod is in flight."""
        return self.beside({}, ())

    def beside(self, passed: Mapping[str, Claims], perhaps: Sequence[Claims]) -> OnTheWay:
        """Return them beside pods in flight: `passed` are here (by uid), `perhaps` may be.

        What two gangs are to get may be taken in any order, so it is one wave.
        """
        waiting = [each for each in self.decided if each[2] not in passed]
        gangs = {gang for gang, *_ in waiting}
        waves: defaultdict[int, Counter[Claims]] = defaultdict(Counter)
        for _, wave, _, claims in waiting:
            waves[wave if len(gangs) == 1 else 0][claims] += 1
        return OnTheWay(
            tuple(tuple(waves[wave].items()) for wave in sorted(waves)),
            tuple(filter(None, passed.values())),
            (*self.bound, *perhaps),
            self.unread,
        )


Decided = tuple[str, int, str, Claims | None]
"""Node, wave and uid ("" for a slot without a pod), and what is to be allocated; None if unread."""


@dataclass(frozen=True, slots=True)
class OfGang:
    """What one gang is to get: what is `decided`, and by node the claims of pods that are bound."""

    decided: Sequence[Decided]
    bound: Sequence[tuple[str, Claims]]


def coming_of_gang(
    gang: PlacedGang,
    pods: Sequence[ObservedPod],
    index: DeviceIndex,
    nodes: Mapping[str, Node],
) -> OfGang:
    """Return what the pods of a gang are to get that have claims, and its vacant slots."""
    bound = ((pod.node, claims_of(pod, index, nodes.get(pod.node))) for pod in settled_pods(pods))
    return OfGang(
        tuple(_decided(gang, pods, index, nodes)),
        tuple((node, claims) for node, claims in bound if node and claims),
    )


def coming_to_nodes(
    gangs: Mapping[GangKey, OfGang],
    others: Iterable[ObservedPod],
    index: DeviceIndex,
    nodes: Mapping[str, Node],
) -> Mapping[str, Coming]:
    """List the pods to come by node: those of gangs, beside bound pods of no gang.

    Only nodes on which something is decided are listed.
    """
    found: defaultdict[str, Coming] = defaultdict(Coming)
    for key, of_gang in gangs.items():
        for node, wave, uid, claims in of_gang.decided:
            found[node].unread |= claims is None
            if claims:
                found[node].decided.append((key, wave, uid, claims))
        for node, claims in of_gang.bound:
            found[node].bound.append(claims)
    for pod in others:
        if pod.node in found and not pod.terminal:
            mine = claims_of(pod, index, nodes.get(pod.node))
            found[pod.node].bound += [mine] if mine else []
    return {node: each for node, each in found.items() if each.decided or each.unread}


def _decided(
    gang: PlacedGang,
    pods: Sequence[ObservedPod],
    index: DeviceIndex,
    nodes: Mapping[str, Node],
) -> Iterator[Decided]:
    """Yield what is decided and not bound yet."""
    settled: defaultdict[str, list[ObservedPod]] = defaultdict(list)
    for pod in settled_pods(pods):
        settled[pod.settled_on].append(pod)
    alike = by_kind(pods, index)
    for node, placement in gang.slots.items():
        waves, here = _waves(placement), settled[node]
        for pod in (each for each in here if not each.node):
            kind, claims = kind_of(pod), claims_of(pod, index, nodes.get(node))
            yield node, waves.get(kind, 0) if kind else 0, pod.uid, claims
        vacant = vacant_slots(placement, here)
        for slot, count, claims in claims_of_slots(vacant, alike, index, nodes):
            for _ in range(count):
                yield node, waves[slot.kind], "", claims
    for node, placement in gang.planned.items():
        vacant = vacant_slots(placement, ())
        for _, count, claims in claims_of_slots(vacant, alike, index, nodes):
            for _ in range(count):
                yield node, 0, "", claims


def _waves(placement: Placement) -> Mapping[SlotKind, int]:
    """Return the wave of each kind; that of slots of one kind in several waves is the last."""
    found: dict[SlotKind, int] = {}
    for each in placement.assignments:
        found[kind_in(each)] = max(each.wave, found.get(kind_in(each), 0))
    return found
