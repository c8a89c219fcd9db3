"""Keeps the observed devices and claims, and which gangs have pods that claim devices.

While no gang claims devices, the coordinator watches none of them, and nothing is kept here.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Set
from typing import TypeVar

from coordinator.cluster.foreseen_gangs import ForeseenGangs
from coordinator.messages.events import DeviceApiSeen
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_facts import DEVICE_WATCHES, DeviceFact
from kube.devices.device_index import DeviceIndex
from kube.devices.selectors import CelSelectors
from scheduling.model.devices.features import OLDEST, version_of
from scheduling.model.devices.resource_claim import ResourceClaim, ResourceClaimTemplate
from scheduling.model.gang import GangKey
from scheduling.state.node_snapshot import NodeAttributes

INSTEAD = "ask for the extended resource of a device plugin instead"

Key = tuple[str, str]
K = TypeVar("K", bound=Hashable)


class Devices:
    """The facts, the selectors in them, and the gangs that they concern."""

    def __init__(
        self, foreseen: ForeseenGangs | None = None, gates_off: Collection[str] = ()
    ) -> None:
        self.index = DeviceIndex(gates_off)
        self._foreseen = foreseen or ForeseenGangs()
        self.selectors = CelSelectors()
        self._api: DeviceApiSeen | None = None
        self._pods: Counter[GangKey] = Counter()
        self._by_claim: defaultdict[Key, Counter[GangKey]] = defaultdict(Counter)
        self._by_template: defaultdict[Key, Counter[GangKey]] = defaultdict(Counter)
        self._by_resource: defaultdict[str, Counter[GangKey]] = defaultdict(Counter)
        self._given: tuple[object, Mapping[str, str]] = (None, {})

    # ---- what is asked of a cluster

    def put_api(self, api: DeviceApiSeen) -> bool:
        """Take in which version of Kubernetes it is; says whether that is news."""
        before, self._api = self._api, api
        self.index.follow(api.version)
        return before != api

    @property
    def unsupported(self) -> str:
        """Say why claims are not supported in this cluster; "" where they are, or may be."""
        api = self._api
        if api is None:
            return ""
        where = f"resourceClaims on Kubernetes {api.version}"
        if not api.served:
            return f"{where}, which does not serve resource.k8s.io/v1 ({INSTEAD})"
        if version_of(api.version) < OLDEST:
            return f"{where} ({INSTEAD}; allowed from 1.34 on)"
        return ""

    @property
    def unseen(self) -> str:
        """Say what is not known of this cluster yet; "" where all is."""
        if self._api is None:
            return "the version of Kubernetes"
        unseen = (each for each in DEVICE_WATCHES if each.fact in self.index.unseen)
        return ", ".join(each.resource.plural for each in unseen)

    # ---- which gangs ask

    def count(self, pod: ObservedPod, sign: int) -> None:
        """Count a pod of a gang that may be given devices, or with -1 take it back."""
        if pod.member is None:
            return
        gang = pod.member.gang
        for each in pod.extended:
            _count_at(self._by_resource, each.resource, gang, sign)
        if pod.claims:
            self._count_claims(pod, gang, sign)

    def _count_claims(self, pod: ObservedPod, gang: GangKey, sign: int) -> None:
        _count(self._pods, gang, sign)
        for each in pod.claims:
            if each.claim:
                _count_at(self._by_claim, (pod.namespace, each.claim), gang, sign)
            if each.template:
                _count_at(self._by_template, (pod.namespace, each.template), gang, sign)

    @property
    def gangs(self) -> Set[GangKey]:
        """The gangs whose pods claim devices, or ask for resources that classes give."""
        others = self.gangs_by_class | self._foreseen.claiming.keys()
        return self._pods.keys() | others if others else self._pods.keys()

    def asks(self, gang: GangKey) -> bool:
        """Say whether a gang is among these."""
        return (
            gang in self._pods
            or gang in self._foreseen.claiming
            or any(
                gang in self._by_resource[resource]
                for resource in self._by_resource.keys() & self.index.classes_of_resources.keys()
            )
        )

    @property
    def gangs_by_class(self) -> Set[GangKey]:
        """The gangs whose pods ask for resources that classes give."""
        asked = self._by_resource.keys() & self.index.classes_of_resources.keys()
        return {gang for resource in asked for gang in self._by_resource[resource]}

    def given_on(self, nodes: NodeAttributes) -> Mapping[str, str]:
        """Return by which class some of the nodes give which resource.

        A resource that each node with devices lists itself is given by device plugins alone.
        """
        stamp = nodes, self.index.offered
        if self._given[0] != stamp:
            self._given = stamp, self._given_by_class(nodes)
        return self._given[1]

    def _given_by_class(self, nodes: NodeAttributes) -> Mapping[str, str]:
        named = self.index.nodes_with_slices
        positions = (nodes.index[name] for name in named if name in nodes.index)
        found = nodes.nodes if "" in named else [nodes.nodes[at] for at in positions]
        return {
            name: of_class
            for name, of_class in self.index.classes_of_resources.items()
            if any(not node.allocatable.get(name) for node in found)
        }

    def users(self, claim: ResourceClaim) -> int:
        """How many pods use a claim: those of gangs that name it, and those that it is for."""
        pods = sum(self._by_claim.get(claim.key, Counter()).values())
        return max(pods, len(claim.reserved_for))

    def gangs_of(self, fact: DeviceFact) -> Set[GangKey]:
        """The gangs that wait for this very object, or have it; of what all see none is named."""
        match fact:
            case ResourceClaim():
                return self._by_claim.get(fact.key, Counter()).keys()
            case ResourceClaimTemplate():
                return {*self._by_template.get(fact.key, ()), *self._to_come(fact)}
        return frozenset()

    def _to_come(self, template: ResourceClaimTemplate) -> Iterator[GangKey]:
        for gang, names in self._foreseen.claiming.items():
            if template.name in names and gang.namespace == template.namespace:
                yield gang


def _count(counts: Counter[GangKey], gang: GangKey, sign: int) -> None:
    counts[gang] += sign
    if counts[gang] <= 0:
        del counts[gang]


def _count_at(by: defaultdict[K, Counter[GangKey]], key: K, gang: GangKey, sign: int) -> None:
    _count(by[key], gang, sign)
    if not by[key]:
        del by[key]
