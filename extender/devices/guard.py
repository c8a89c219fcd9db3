"""Keeps other pods off nodes where they would take devices that gangs need.

A pod passes where kube-scheduler's choice for it leaves enough for the gangs' pods placed there, in
the order in which they come. Pods that passed before have their devices, though no object shows
them yet. Where any of this is not known, the pod is kept off, and kube-scheduler tries it again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.devices.coming import (
    Coming,
    OfGang,
    PlacedGang,
    coming_of_gang,
    coming_to_nodes,
)
from extender.devices.far import FarDemand, InFlightByUid, Judge
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_facts import DeviceFact
from kube.devices.device_index import DeviceIndex
from kube.devices.known_devices import known_devices
from kube.devices.resource_slices import ReadSlice
from kube.devices.selectors import CelSelectors
from reservation.claims import claims_of
from scheduling.devices.keeping import OnTheWay
from scheduling.devices.node_index import NodeDevicesIndex
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.model.amounts import Mask, Positions, Requests, is_extended
from scheduling.model.devices.resource_claim import (
    ClaimSpec,
    DeviceRequest,
    Request,
    ResourceClaim,
)
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

NOTHING = Coming()

NODE_STEPS = 10_000
"""What judging nodes that are alike may take."""

LOOK = 50
"""Steps for a group of nodes, beside those of the search."""

STEPS = 30_000
"""What one question may take, about 0.3 s where devices are looked at for the first time.

What was looked at is remembered for the next one."""


@dataclass(frozen=True, slots=True)
class InFlightClaims:
    """A pod that was passed and has claims: at which of the nodes that are asked about it may be.

    `surely` says that it was passed for no other node than one.
    """

    pod: ObservedPod
    at: Mask
    surely: bool


def may_take_devices(pod: ObservedPod) -> bool:
    """Say whether a pod asks for devices by claim, or for what they may give without one."""
    return bool(pod.claims) or any(is_extended(resource) for resource, _ in pod.used)


def lacking_on(requests: Requests, node: Node) -> Requests:
    """Return the requests of which the node lists none: kube-scheduler has its devices give them.

    It has found that they do, or would not ask about the node.
    """
    return tuple(
        (resource, amount)
        for resource, amount in requests
        if amount > 0 and is_extended(resource) and not node.allocatable.get(resource)
    )


class DeviceGuard:
    """What is known of devices, and of the pods that ask for some; written by one owner."""

    def __init__(
        self,
        gangs: Mapping[GangKey, PlacedGang],
        known_nodes: Mapping[str, Node],
        gates_off: Collection[str] = (),
    ) -> None:
        self.is_current: Callable[[], bool] = lambda: True
        """Whether the watches of devices tell all; whoever runs them says so."""
        self._index, self._selectors = DeviceIndex(gates_off), CelSelectors()
        self._gangs, self._known_nodes = gangs, known_nodes
        self._pods: dict[str, ObservedPod] = {}
        self._members: defaultdict[GangKey, dict[str, ObservedPod]] = defaultdict(dict)
        self._by_claim: defaultdict[tuple[str, str], Counter[GangKey]] = defaultdict(Counter)
        self._of_gang: dict[GangKey, OfGang] = {}
        """What gangs are to get, of those that are as they were."""
        self._coming: Mapping[str, Coming] | None = {}
        self._far: FarDemand | None = None
        self._nodes: NodeDevicesIndex | None = None
        self._news = False

    # ---- what comes and goes

    def put_pod(self, pod: ObservedPod) -> None:
        """Take in a pod that asks for devices by claim, or for what a class may give."""
        self.remove_pod(pod.uid)
        self._pods[pod.uid] = pod
        if pod.member is not None:
            self._members[pod.member.gang][pod.uid] = pod
            self._count(pod, pod.member.gang, 1)
        self._note(pod)

    def _count(self, pod: ObservedPod, gang: GangKey, sign: int) -> None:
        """Count the gang among those that a claim concerns, or with -1 no more."""
        self._of_gang.pop(gang, None)
        for name in {pod.extended_claim, *(each.claim for each in pod.claims)} - {""}:
            counts = self._by_claim[pod.namespace, name]
            counts[gang] += sign
            if counts[gang] <= 0:
                del counts[gang]
            if not counts:
                del self._by_claim[pod.namespace, name]

    def _note(self, pod: ObservedPod) -> None:
        if self._claims_any(pod):
            self._changed()

    def _claims_any(self, pod: ObservedPod) -> bool:
        return bool(pod.claims) or self._index.gives_any(pod.extended)

    def node_changed(self, name: str) -> None:
        """Look anew at what is decided on a node, which may list other resources by now."""
        self._of_gang.clear()
        if name in self._index.nodes_with_slices or self._may_be_far:
            self._changed()

    def remove_pod(self, uid: str) -> None:
        """Forget a pod, if it is one of these."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        if known.member is not None:
            key = known.member.gang
            self._count(known, key, -1)
            del self._members[key][uid]
            if not self._members[key]:
                del self._members[key]
        self._note(known)

    def gang_changed(self, key: GangKey) -> None:
        """Look at the slots of a gang anew."""
        self._of_gang.pop(key, None)
        if key in self._members:
            self._changed()

    def put(self, fact: DeviceFact) -> None:
        """Take in a slice, class, claim, template or rule."""
        self._index.put(fact)
        self._fact_changed(fact)

    def drop(self, fact: DeviceFact) -> None:
        """Forget one."""
        self._index.drop(fact)
        self._fact_changed(fact)

    def _fact_changed(self, fact: DeviceFact) -> None:
        """Look anew at the gangs whose claims may be others; of slices their claims say nothing."""
        match fact:
            case ResourceClaim():
                for key in self._by_claim.get(fact.key, ()):
                    self._of_gang.pop(key, None)
            case ReadSlice():
                pass
            case _:
                self._of_gang.clear()
        self._changed()

    def follow(self, version: str) -> None:
        """Take in which version of Kubernetes it is."""
        self._index.follow(version)
        self._of_gang.clear()
        self._changed()

    def see(self, kind: type[DeviceFact]) -> None:
        """Answer by the facts of a kind: all were told."""
        self._index.see(kind)
        self._changed()

    def lose_sight(self, kind: type[DeviceFact]) -> None:
        """Pass nothing by facts that may be out of date."""
        self._index.lose_sight(kind)

    def _changed(self) -> None:
        self._coming, self._far, self._news = None, None, True

    def take_news(self) -> set[str]:
        """Return the nodes with decided devices if anything has changed since the last call.

        Where devices may be reached by several nodes these are all nodes.
        """
        news, self._news = self._news, False
        return set(self._known_nodes if self._may_be_far else self.coming) if news else set()

    @property
    def _may_be_far(self) -> bool:
        return "" in self._index.nodes_with_slices

    @property
    def coming(self) -> Mapping[str, Coming]:
        """Return the pods that are to be allocated devices, by node."""
        if self._coming is None:
            others = (pod for pod in self._claiming() if not self._is_of_a_gang(pod))
            of_gangs = dict(self._of_gangs())
            self._coming = coming_to_nodes(of_gangs, others, self._index, self._known_nodes)
        return self._coming

    def _claiming(self) -> Iterator[ObservedPod]:
        return filter(self._claims_any, self._pods.values())

    def _of_gangs(self) -> Iterator[tuple[GangKey, OfGang]]:
        for key in self._members.keys() & self._gangs.keys():
            if key not in self._of_gang:
                pods = filter(self._claims_any, self._members[key].values())
                mine = [pod for pod in pods if self._is_of_a_gang(pod)]
                found = coming_of_gang(self._gangs[key], mine, self._index, self._known_nodes)
                self._of_gang[key] = found
            yield key, self._of_gang[key]

    def _is_of_a_gang(self, pod: ObservedPod) -> bool:
        gang = self._gangs.get(pod.member.gang) if pod.member is not None else None
        return (
            gang is not None
            and pod.member is not None
            and (gang.cluster_uid == pod.member.cluster_uid)
        )

    # ---- what is asked

    def claims(self, pod: ObservedPod) -> Claims | None:
        """Return what a pod is to be allocated; None where not all of its claims are known."""
        return claims_of(pod, self._index)

    @property
    def resources(self) -> Mapping[str, str]:
        """Return the class of each resource that a node may give though it lists none of it."""
        return self._index.classes_of_resources

    def _far_demand(self) -> FarDemand | None:
        """Return what is decided of devices that several nodes reach; None where nothing is."""
        if not self._may_be_far or not self.coming:
            return None
        index = self._index_of_nodes()
        if self._far is None or self._far.index is not index:
            others = (pod for pod in self._claiming() if pod.node and not self._is_of_a_gang(pod))
            found = ((pod.node, self.claims(pod)) for pod in others if not pod.terminal)
            bound = [(node, claims) for node, claims in found if claims]
            self._far = FarDemand(self.coming, bound, index, self._known_nodes)
        return self._far if self._far.wanted else None

    def _judged(
        self, nodes: tuple[Node, ...], at: Positions, far: FarDemand | None
    ) -> Mapping[int, Node]:
        """Return the places at which a pod might take decided devices."""
        coming, found = self.coming, ((n, nodes[each]) for n, each in enumerate(at.tolist()))
        return {n: node for n, node in found if far is not None or node.name in coming}

    def _lacks_any(self, pod: ObservedPod, judged: Iterable[Node]) -> bool:
        """Say whether any of these nodes lists none of a resource that the pod asks for.

        Most pods that ask for GPUs ask for those of a device plugin.
        """
        names = [name for name, amount in pod.used if amount > 0 and is_extended(name)]
        return any(not node.allocatable.get(name) for node in judged for name in names)

    def _asked_on_all(
        self, pod: ObservedPod, nodes: Mapping[int, Node]
    ) -> Mapping[int, Claims | None]:
        """Return what a pod is to be allocated on each node: the same on all for claims alone."""
        if not pod.extended and not any(is_extended(name) for name, _ in pod.used):
            return dict.fromkeys(nodes, self.claims(pod))
        return {n: self._asked_on(pod, node) for n, node in nodes.items()}

    def _asked_on(self, pod: ObservedPod, node: Node) -> Claims | None:
        """Return what a pod is to be allocated on a node, by claim or as resources of classes."""
        if pod.extended:
            return claims_of(pod, self._index, node)
        claims, lacking = self.claims(pod), lacking_on(pod.used, node)
        if claims is None or not lacking:
            return claims
        classes = self.resources
        if any(resource not in classes for resource, _ in lacking):
            return None
        requests = (
            Request(resource, DeviceRequest(resource, classes[resource], count=amount))
            for resource, amount in lacking
        )
        return (*claims, ClaimSpec(tuple(requests)))

    def kept_from(
        self,
        pod: ObservedPod,
        nodes: tuple[Node, ...],
        at: Positions,
        in_flight: Iterable[InFlightClaims] | None,
    ) -> Mask:
        """Say at which of these nodes devices are kept from the pod.

        `in_flight` are pods that were passed and are not seen bound; None where not all are known.
        """
        kept = np.zeros(len(at), dtype=np.bool_)
        far = self._far_demand()
        here = self._judged(nodes, at, far)
        if not pod.claims and not self._lacks_any(pod, here.values()):
            return kept
        asked = {n: each for n, each in self._asked_on_all(pod, here).items() if each != ()}
        kept[[*asked]] = True
        if in_flight is None or self._index.unseen or not self.is_current():
            return kept
        steps, passed_before = StepBudget(STEPS), [*in_flight]
        for (claims, there), where in self._alike(asked, here, passed_before).items():
            places = np.array(where, dtype=np.intp)
            judge = Judge(claims, there, far, self._in_flight(passed_before, here[where[0]]))
            passed = self._passes(judge, nodes, at[places], steps)
            kept[places[passed]] = False
        return kept

    def _alike(
        self,
        asked: Mapping[int, Claims | None],
        here: Mapping[int, Node],
        in_flight: Sequence[InFlightClaims],
    ) -> Mapping[tuple[Claims, OnTheWay], list[int]]:
        """Put places together where the pod asks for the same, and pods with the same claims come.

        Where it is not known what the pod asks for there is nothing to judge.
        """
        found: defaultdict[tuple[Claims, OnTheWay], list[int]] = defaultdict(list)
        for n, claims in asked.items():
            if claims is not None:
                there = [each for each in in_flight if each.at[n]]
                found[claims, self._beside(here[n], there)].append(n)
        return found

    def _beside(self, node: Node, in_flight: Sequence[InFlightClaims]) -> OnTheWay:
        """Return what is decided on a node beside the pods that may be there."""
        coming = self.coming.get(node.name, NOTHING)
        if not in_flight:
            return coming.alone
        claims = [(each, self._asked_on(each.pod, node)) for each in in_flight]
        passed = {each.pod.uid: found or () for each, found in claims if each.surely}
        perhaps = [found for each, found in claims if found and not each.surely]
        there = coming.beside(passed, perhaps)
        return replace(there, unread=there.unread or any(found is None for _, found in claims))

    def _in_flight(self, in_flight: Sequence[InFlightClaims], node: Node) -> InFlightByUid:
        return {each.pod.uid: self._asked_on(each.pod, node) for each in in_flight}

    def _passes(
        self, judge: Judge, nodes: tuple[Node, ...], at: Positions, steps: StepBudget
    ) -> Mask:
        """Judge nodes to which the same pods come, one of those that are alike for all."""
        index = self._index_of_nodes()
        kinds = tuple(dict.fromkeys((judge.asked, *judge.there.kinds)))
        passes = np.zeros(len(at), dtype=np.bool_)
        try:
            numbers = index.alike(kinds, nodes, at, steps)
            for number in np.unique(numbers).tolist():
                alike = numbers == number
                one = index.of(nodes[int(at[np.flatnonzero(alike)[0]])])
                budget = StepBudget(min(NODE_STEPS, steps.left))
                before = budget.left
                passes[alike] = judge.passes(one, index.rules, budget)
                steps.spend(LOOK + before - budget.left)
        except OutOfSteps:
            pass  # what was not judged does not pass
        return passes

    def _index_of_nodes(self) -> NodeDevicesIndex:
        facts = known_devices(self._index, self._selectors)
        known = self._nodes
        self._nodes = NodeDevicesIndex(facts) if known is None else known.renewed(facts)
        return self._nodes
