"""Allocates devices to the pods that a forecast binds, and frees them when the pods go.

Allocation follows kube-scheduler's allocator, one pod after the other. Claims whose devices cannot
be foreseen stay unallocated, and count like claims of pods on their way.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from coordinator.messages.events import DeviceFactGone, DeviceFactSeen, Event
from coordinator.state.known import Known
from kube.codec.devices.pod_claims import PodClaim
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import with_names
from kube.devices.class_requests import to_be_claimed
from kube.devices.device_index import DeviceIndex
from kube.devices.known_devices import known_devices
from kube.devices.resource_slices import ReadSlice
from scheduling.devices.allocator import allocate
from scheduling.devices.node_index import NodeDevicesIndex
from scheduling.devices.outcome import Allocated
from scheduling.devices.room import DeviceRoom
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.resource_claim import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    ResourceClaim,
)
from scheduling.model.devices.resource_slice import NodeAccess

Key = tuple[str, str]

STEPS = 200_000
"""For the devices of one pod on one node."""


class Giving:
    """Gives devices to pods that are bound at one moment, before the state machine hears of it."""

    def __init__(self, known: Known) -> None:
        self._known, self._cache = known, known.cache
        self._nodes: NodeDevicesIndex | None = None
        self._given: dict[Key, ResourceClaim] = {}
        self._taken: defaultdict[str, list[AllocatedDevice]] = defaultdict(list)
        """What was given by node; of devices that several nodes reach under no name."""

    def to(self, pod: ObservedPod, node: str) -> tuple[ObservedPod, tuple[ResourceClaim, ...]]:
        """Return a pod that names all its claims, and those of them that changed."""
        index = self._cache.devices.index
        if not pod.claims and not index.gives_any(pod.extended):
            return pod, ()
        named = with_names(pod, index)
        claims = [self._given.get(each.key, each) for _, each in named]
        extended = [
            ResourceClaim(pod.namespace, name, name, spec, owner=pod.uid)
            for spec in to_be_claimed(pod, self._cache.nodes.get(node), index)
            for name in (f"{pod.uid}/extended",)
        ]
        given = [*self._allocated([*claims, *extended], pod, node)]
        self._given |= {each.key: each for each in given}
        asked = tuple(_named(*each) for each in named) or pod.claims
        of_class = extended[0].name if extended else pod.extended_claim
        return replace(pod, claims=asked, extended_claim=of_class), tuple(given)

    def _allocated(
        self, claims: list[ResourceClaim], pod: ObservedPod, node: str
    ) -> Iterator[ResourceClaim]:
        """Yield the claims of a pod as they are once it is bound."""
        lacking = [each for each in claims if each.allocation is None]
        found = iter(self._devices([each.spec for each in lacking], node))
        for each in claims:
            got = each.allocation or Allocation(next(found, ()))
            users = tuple(dict.fromkeys((*each.reserved_for, pod.uid)))
            kept = got if got.devices or each.allocation else None
            yield replace(each, allocation=kept, reserved_for=users)

    def _devices(
        self, specs: list[ClaimSpec], name: str
    ) -> tuple[tuple[AllocatedDevice, ...], ...]:
        """Take devices of a node for claims; none where that is not known."""
        node, devices = self._cache.nodes.get(name), self._cache.devices
        if node is None or not specs or devices.unseen or devices.unsupported:
            return ()
        nodes = self._nodes = self._nodes or self._index()
        there = nodes.of(node)
        in_use = there.in_use.plus((*self._taken[name], *self._taken[""]))
        found = allocate(specs, there.pools_of_all, in_use, nodes.rules, StepBudget(STEPS))
        if not isinstance(found, Allocated):
            return ()
        far = {each.id for each in there.usable if not each.local} if there.has_far else set()
        for each in found.given:
            self._taken["" if each.device in far else name].append(each)
        return found.claims

    def _index(self) -> NodeDevicesIndex:
        """Return the devices of all nodes, with what the last cycle worked out of them."""
        devices, memory = self._cache.devices, self._known.cycles.memory
        facts = known_devices(devices.index, devices.selectors)
        return DeviceRoom.of(facts, memory.room.devices if memory else None).nodes


def _named(asked: PodClaim, claim: ResourceClaim) -> PodClaim:
    return asked._replace(claim=claim.name, to_come=False)


def seen(claims: Iterable[ResourceClaim]) -> Iterator[Event]:
    """Yield what is seen of claims that were given devices."""
    yield from map(DeviceFactSeen, claims)


def slices_of(node: str, index: DeviceIndex) -> list[ReadSlice]:
    """Return the slices that a node alone reaches."""
    every = index.slices.values()
    return [ReadSlice(each) for each in every if each.access and each.access.node_name == node]


def slice_like(found: ReadSlice, node: str, name: str) -> ReadSlice:
    """Return the slice of a node of this name that is as one of `node`, in a pool of its own."""
    there = found.resource_slice
    pool = name if there.pool == node else f"{there.pool}/{name}"
    access = NodeAccess(node_name=name)
    return ReadSlice(replace(there, name=f"{there.name}/{name}", pool=pool, access=access))


class TakenBack:
    """Takes the devices of pods back that go at one moment; what pods share goes with the last."""

    def __init__(self, claims: Mapping[Key, ResourceClaim]) -> None:
        self._claims = claims
        self._left: dict[Key, ResourceClaim] = {}

    def of(self, pod: ObservedPod) -> Iterator[Event]:
        """Yield what is seen of the claims of a pod that is gone."""
        for key in self._used_by(pod):
            claim = self._left.get(key) or self._claims.get(key)
            if claim is None:
                continue
            if claim.owner == pod.uid:
                yield DeviceFactGone(claim)
                continue
            users = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
            left = replace(
                claim, reserved_for=users, allocation=claim.allocation if users else None
            )
            self._left[key] = left
            if left != claim:
                yield DeviceFactSeen(left)

    def _used_by(self, pod: ObservedPod) -> Iterable[Key]:
        """Return the claims of a pod; of one in no gang nothing but the claims themselves tells."""
        if pod.member is not None:
            names = (*(each.claim for each in pod.claims), pod.extended_claim)
            return [(pod.namespace, name) for name in names if name]
        return [
            key for key, each in self._claims.items() if pod.uid in (each.owner, *each.reserved_for)
        ]
