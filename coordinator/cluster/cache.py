"""Keeps the observed state of the cluster, and sums over it.

It holds observed facts only: pods, nodes, Ray clusters, Gang objects, namespaces, priority classes.
Decisions whose effect is not seen yet live in `state`, apart from the cache, so that a late watch
event can never undo a decision. The cache ignores a pod event that is older than what it knows (the
answer to the coordinator's own patch came first), and one about a pod that is already gone.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType

from coordinator.cluster.admission_rules import AdmissionRules
from coordinator.cluster.devices import Devices
from coordinator.cluster.foreseen_gangs import ForeseenGangs
from coordinator.cluster.node_requests import NodeRequests
from coordinator.cluster.ray_owners import RayOwners
from coordinator.cluster.together_index import TogetherIndex
from coordinator.messages.events import Teller
from kube.codec.node import node, resources_of_class
from kube.codec.observed_pod import ObservedPod
from kube.gang.offer import OfferForm
from kube.gang.source import GangSource
from kube.objects import core as core_objects
from kube.objects.core import DeviceClass, Namespace, PriorityClass
from kube.objects.gang import Gang
from kube.objects.names import DEFAULT_NAMESPACE
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.state.daemon_usage import DaemonUsage
from scheduling.state.holder_index import HolderIndex
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable
from scheduling.state.pod_index import NominatedPod, PodIndex
from scheduling.state.volume_index import VolumeIndex

NO_LABELS: Mapping[str, str] = MappingProxyType({})
TOMBSTONES = 20_000  # remembered uids of vanished objects; a late answer is seconds old, not hours


class ClusterCache:
    """The observed cluster. Methods that take an event return the gangs it may concern."""

    def __init__(
        self,
        home: str = DEFAULT_NAMESPACE,
        *,
        may_ask_for_nodes: bool | None = None,
        gates_off: Collection[str] = (),
    ) -> None:
        self.home = home
        """The namespace of Muster."""
        self.node_requests = NodeRequests(allowed=may_ask_for_nodes)
        self.table = NodeTable()
        self.pod_index = PodIndex()
        self.holders = HolderIndex()
        self.daemons = DaemonUsage()
        self.storage = VolumeIndex()
        self.pods: dict[tuple[str, str], ObservedPod] = {}
        self.sources: dict[GangKey, GangSource] = {}
        self.owners = RayOwners()
        self.together = TogetherIndex()
        self.offers: dict[GangKey, OfferForm] = {}
        """All GangOffers, by their gangs; those that are open, or Started, are sources too."""
        self._followers: defaultdict[str, set[GangKey]] = defaultdict(set)
        self.gangs: dict[GangKey, Gang] = {}
        self.moves: set[GangKey] = set()
        """Those of them for which others are to move."""
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self._device_classes: dict[str, tuple[str, ...]] = {}
        self._members: defaultdict[GangKey, dict[str, ObservedPod]] = defaultdict(dict)
        self._constrained: set[str] = set()
        self._mounting: set[str] = set()
        self.admission = AdmissionRules()
        self.foreseen = ForeseenGangs()
        self.devices = Devices(self.foreseen, gates_off)
        self._spread = Counter[str]()
        self._tellers: dict[str, Teller] = {}
        self._gone: dict[str, None] = {}
        self.counted_on: Callable[[ObservedPod], str] = attrgetter("expected_on")
        """Names the node on which a pod takes room; `ReservedRoom` has it say otherwise of some."""

    # --- pods -----------------------------------------------------------------------------

    def put_pod(self, pod: ObservedPod, teller: Teller) -> ObservedPod | None:
        """Take in a pod; returns it, or None where it is older than what is known.

        An answer to a request of ours may come after the watch has told of the pod's end, so it
        only ever changes a pod that is known.
        """
        known = self.pods.get(pod.key)
        same = known is not None and known.uid == pod.uid
        if teller is Teller.ANSWER and not same:
            return None
        self._tellers[pod.uid] = self._tellers.get(pod.uid, Teller.ANSWER) | teller
        if known is not None and _older(pod, known):
            return None
        if known is not None:
            self._forget(known)
            if not same:
                self._tellers.pop(known.uid, None)
        self.pods[pod.key] = pod
        self._remember(pod)
        return pod

    def renew_pod(self, pod: ObservedPod, teller: Teller) -> bool:
        """Take in another version of a pod; return False, and do nothing, where it brings news.

        Most versions of running pods bring none. A new version of a gated pod is always news,
        because the next patch is tested against it.
        """
        known = self.pods.get(pod.key)
        if known is None or known.gated or pod.gated or _older(pod, known):
            return False
        if replace(known, resource_version=pod.resource_version) != pod:
            return False
        self._tellers[pod.uid] = self._tellers.get(pod.uid, Teller.ANSWER) | teller
        self.pods[pod.key] = pod
        if pod.member is not None:
            self._members[pod.member.gang][pod.uid] = pod
        return True

    def remove_pod(self, namespace: str, name: str, uid: str, teller: Teller) -> ObservedPod | None:
        """Forget a pod, unless another watch tells of it; returns what was known of it.

        A pod whose label is changed leaves one watch and comes into the other, in either order.
        """
        left = self._tellers.get(uid, Teller.ANSWER) & ~teller
        if teller is not Teller.ANSWER and left:
            self._tellers[uid] = left
            return None
        self._tellers.pop(uid, None)
        known = self.pods.get((namespace, name))
        if known is None or known.uid != uid:
            return None
        del self.pods[known.key]
        self._forget(known)
        return known

    def _remember(self, pod: ObservedPod) -> None:
        self.count_room(pod, 1)
        self.devices.count(pod, 1)
        if pod.member is not None:
            self._members[pod.member.gang][pod.uid] = pod
        if _has_constraints(pod):
            self._constrained.add(pod.uid)
            self._spread[pod.namespace] += _counts_pinned(pod)
        if pod.gated and pod.mounts:
            self._mounting.add(pod.uid)

    def _forget(self, pod: ObservedPod) -> None:
        self.count_room(pod, -1)
        self.devices.count(pod, -1)
        if pod.uid in self._constrained:
            self._constrained.discard(pod.uid)
            self._spread[pod.namespace] -= _counts_pinned(pod)
        self._mounting.discard(pod.uid)
        if pod.member is not None:
            members = self._members[pod.member.gang]
            members.pop(pod.uid, None)
            if not members:
                del self._members[pod.member.gang]

    def count_room(self, pod: ObservedPod, sign: int) -> None:
        """Add a pod to the sums, or with -1 take it back."""
        if node := self.counted_on(pod):
            self.table.use(node, pod.used, sign)
            self.holders.use(pod.holder, node, pod.used, sign)
            self._count_in_index(pod, node, sign)
            if pod.is_daemon:
                self.daemons.use(node, pod.used, sign)
            if pod.nominated is not None:
                self.table.nominate(node, pod.used, pod.nominated, sign)
            if pod.mounts:
                self.storage.use(pod.namespace, pod.mounts, node, sign)

    def _count_in_index(self, pod: ObservedPod, node: str, sign: int) -> None:
        if pod.nominated is None:
            self.pod_index.use(pod.kind, pod.anti_affinity, node, sign, pod.stay)
        else:
            expected = NominatedPod(pod.kind, pod.anti_affinity, node, pod.nominated)
            self.pod_index.nominate(expected, sign)

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > TOMBSTONES:
            del self._gone[next(iter(self._gone))]

    def members(self, key: GangKey, cluster_uid: str) -> list[ObservedPod]:
        """The pods of this very RayCluster (not of an earlier one of its name), by name."""
        pods = self._members.get(key, {}).values()
        mine = [p for p in pods if p.member is not None and p.member.cluster_uid == cluster_uid]
        return sorted(mine, key=lambda pod: pod.name)

    def pods_of(self, key: GangKey) -> Collection[ObservedPod]:
        """The pods of all RayClusters of this name, earlier ones as well."""
        return self._members.get(key, {}).values()

    def keys_of_pods(self) -> Set[GangKey]:
        """The gangs by name that any pods are of, also of RayClusters that are gone."""
        return self._members.keys()

    def count(self, key: GangKey) -> int:
        """How many pods of RayClusters of this name there are."""
        return len(self._members.get(key, ()))

    def is_gated(self, key: GangKey) -> bool:
        """Whether our gate is on any of them."""
        return any(pod.gated for pod in self._members.get(key, {}).values())

    def foresee(self, key: GangKey, pods: Collection[ObservedPod]) -> None:
        """Note what the pods bring that a gang is to have; none of them counts as a pod."""
        constrained = any(_has_constraints(pod) for pod in pods)
        mounting = any(pod.mounts for pod in pods)
        templates = frozenset(each.template for pod in pods for each in pod.claims)
        self.foreseen.put(key, constrained=constrained, mounting=mounting, templates=templates)

    @property
    def has_pod_constraints(self) -> bool:
        """Whether any pod has inter-pod constraints: affinity, anti-affinity, or spread."""
        return bool(self._constrained or self.foreseen.constrained)

    def is_spread_over(self, namespace: str) -> bool:
        """Whether a pod of a gang there counts others of its namespace also when it is pinned."""
        return self._spread[namespace] > 0

    @property
    def is_mounting(self) -> bool:
        """Whether any pod that waits mounts a volume of a claim."""
        return bool(self._mounting or self.foreseen.mounting)

    # --- nodes ------------------------------------------------------------------------------

    def put_node(self, seen: core_objects.Node) -> bool:
        """Take in a node; True where something a decision depends on changed.

        Kubelets report every few seconds; nearly all of it is nothing to a decision.
        """
        new = node(seen)
        if self.nodes.get(new.name) == new:
            return False
        self.nodes[new.name] = new
        self.table.put_node(new)
        return True

    def remove_node(self, name: str) -> None:
        """Forget a node; what pods take on it is counted again should it come back."""
        self.nodes.pop(name, None)
        self.table.remove_node(name)

    def columns(self) -> NodeSnapshot:
        """The nodes as they stand, reservations included."""
        return self.table.snapshot()

    # --- RayClusters ------------------------------------------------------------------------

    def put_source(self, key: GangKey, source: GangSource) -> None:
        """Take in a RayCluster in place of the one that was known by its name."""
        self._orphan(key)
        self.sources[key] = source
        if source.takes_over is not None:
            self._followers[source.takes_over.uid].add(key)
        self.owners.adopt(key, source)
        self.together.put(key, source)

    def remove_source(self, key: GangKey) -> None:
        """Forget the RayCluster of a name; an unknown one is no matter."""
        self._orphan(key)
        self.together.drop(key)

    def _orphan(self, key: GangKey) -> None:
        known = self.sources.pop(key, None)
        if known is None:
            return
        self.owners.orphan(key, known)
        made_for = known.takes_over
        if made_for is not None and made_for.uid in self._followers:
            self._followers[made_for.uid].discard(key)
            if not self._followers[made_for.uid]:
                del self._followers[made_for.uid]

    def followers(self, offer_uid: str) -> Set[GangKey]:
        """Return the RayClusters that say that they were made for a GangOffer."""
        return self._followers.get(offer_uid, frozenset())

    # --- the rest ---------------------------------------------------------------------------

    def put_gang(self, gang: Gang) -> bool:
        """Take in a Gang object; False where it is older than what is known or already gone."""
        key = GangKey(gang.metadata.namespace, gang.metadata.name)
        known = self.gangs.get(key)
        if gang.metadata.uid in self._gone:
            return False
        if known is not None and _stale(gang, known):
            return False
        self.gangs[key] = gang
        if gang.status.moves is None:
            self.moves.discard(key)
        else:
            self.moves.add(key)
        return True

    def is_to_move(self, key: GangKey, starts: GangKey) -> bool:
        """Say whether a gang is to move so that another one starts."""
        moves = self.gangs[starts].status.moves if starts in self.moves else None
        return moves is not None and any(
            GangKey(each.namespace, each.name) == key for each in moves.gangs
        )

    def remove_gang(self, key: GangKey, uid: str) -> None:
        """Forget a Gang object; an empty uid means whichever it is.

        That whichever is not buried: the answer may have been overtaken by a new object.
        """
        known = self.gangs.get(key)
        if known is not None and uid in ("", known.metadata.uid):
            del self.gangs[key]
            self.moves.discard(key)
        if uid:
            self._bury(uid)

    def put_namespace(self, namespace: Namespace) -> None:
        """Take in a namespace."""
        self.namespaces[namespace.metadata.name] = namespace
        self.pod_index.put_namespace(namespace.metadata.name, namespace.metadata.labels)

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace; an unknown one is no matter."""
        self.namespaces.pop(name, None)
        self.pod_index.put_namespace(name, None)

    def put_device_class(self, device_class: DeviceClass) -> None:
        """Take in a class of devices."""
        self._device_classes[device_class.metadata.name] = resources_of_class(device_class)
        self._list_claimable()

    def remove_device_class(self, name: str) -> None:
        """Forget a class of devices; an unknown one is no matter."""
        self._device_classes.pop(name, None)
        self._list_claimable()

    def _list_claimable(self) -> None:
        self.table.claim(self.given_by_classes)

    @property
    def given_by_classes(self) -> Set[str]:
        """The resources that nodes may give by devices of a class."""
        return frozenset(chain.from_iterable(self._device_classes.values()))

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; empty where it is not known."""
        namespace = self.namespaces.get(name)
        return namespace.metadata.labels if namespace is not None else NO_LABELS


def _counts_pinned(pod: ObservedPod) -> bool:
    shape = pod.member.shape if pod.member is not None else None
    return shape is not None and bool(shape.pinned_spread)


def _has_constraints(pod: ObservedPod) -> bool:
    shape = pod.member.shape if pod.member is not None else None
    if shape is None:
        return bool(pod.anti_affinity)
    return bool(pod.anti_affinity or shape.affinity or shape.spread)


def _older(pod: ObservedPod, known: ObservedPod) -> bool:
    """Whether the pod is no news: the echo of our own patch, or what was before it."""
    if pod.uid != known.uid:
        return False
    old, new = known.resource_version, pod.resource_version
    return new == old or _version(new) < _version(old)


def _stale(gang: Gang, known: Gang) -> bool:
    old, new = known.metadata, gang.metadata
    return old.uid == new.uid and _version(new.resource_version) <= _version(old.resource_version)


def _version(resource_version: str) -> int:
    # Comparable as integers since Kubernetes 1.35 (KEP-5504), and in every etcd-backed server
    # before; one that is not a number counts as new, so that nothing is ever ignored for it.
    return int(resource_version) if resource_version.isdecimal() else 1 << 62
