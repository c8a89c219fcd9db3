"""Asks Muster for its verdict on the gang of a world."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain

import msgspec

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.nominations import counts_others
from coordinator.messages.events import Teller
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.volumes.storage import WATCHES
from kube.objects import core as core_objects
from kube.objects.names import RAY_NODE_TYPE
from scheduling.cycle import run_cycle
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Refusal
from scheduling.state.pod_index import ExistingPods
from tests.oracle.model import Json, World, name_of, pod_set_of


@dataclass(frozen=True)
class Yes:
    """The gang is admitted: its pods wave by wave, as they are released, each with its node."""

    waves: tuple[tuple[tuple[Json, str], ...], ...]
    may_be_nominated: bool
    """Whether the coordinator might nominate the gang before it releases it."""

    @property
    def pods(self) -> tuple[tuple[Json, str], ...]:
        """All pods in the order of their release."""
        return tuple(chain.from_iterable(self.waves))


def ask(world: World, namespaces: list[Json]) -> Yes | Refusal:
    """Decide the gang by what the API server has stored, as the coordinator would."""
    cache = cache_of(world, namespaces)
    shapes = [(pod, _shape(pod, cache)) for pod in world.gang]
    counts = Counter((pod_set_of(pod), shape) for pod, shape in shapes)
    groups = tuple(Group(name, "", shape, count) for (name, shape), count in counts.items())
    members = tuple(
        Member(pod_set_of(pod), shape, labels_of(pod), mounts=_seen(pod, cache).mounts)
        for pod, shape in shapes
    )
    key = GangKey(world.namespaces[0], "gang")
    priority = min(pod["spec"].get("priority", 0) for pod in world.gang)
    gang = PendingGang(key, 0, 0.0, groups, members=members, pod_priority=priority)
    existing, volumes = ExistingPods(cache.pod_index), Volumes(cache.storage)
    [decision] = run_cycle([gang], cache.columns(), existing=existing, volumes=volumes)
    match decision.verdict:
        case Admitted() as admitted:
            waits = not any(counts_others(shape) for _, shape in shapes)
            return Yes(released(shapes, admitted), waits)
        case refusal:
            return refusal


def cache_of(world: World, namespaces: list[Json]) -> ClusterCache:
    """Take in all that is seen of the world."""
    cache = ClusterCache()
    for each in namespaces:
        cache.put_namespace(msgspec.convert(each, core_objects.Namespace))
    for watch in WATCHES:
        for each in (each for each in world.objects if each["kind"] == watch.kind.__name__):
            cache.storage.put(watch.read(msgspec.convert(each, watch.kind)))
        cache.storage.see(watch.fact)
    for node in world.nodes:
        cache.put_node(msgspec.convert(node, core_objects.Node))
    for pod in world.residents:
        cache.put_pod(observe(msgspec.convert(pod, core_objects.Pod)), Teller.POD_WATCH)
    for pod in world.gang:
        owned = msgspec.convert(_owned(pod), core_objects.Pod)
        cache.put_pod(observe(owned), Teller.RAY_POD_WATCH)
    return cache


def _owned(pod: Json) -> Json:
    """Make the pod one of a RayCluster; the API server would collect it for want of an owner."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "gang", "controller": True}
    meta = pod["metadata"]
    labels = {**meta.get("labels", {}), RAY_NODE_TYPE: "worker"}
    owned = {"labels": labels, "ownerReferences": [{**owner, "uid": "u"}]}
    return {**pod, "metadata": {**meta, **owned}}


def _seen(pod: Json, cache: ClusterCache) -> ObservedPod:
    return cache.pods[pod["metadata"]["namespace"], name_of(pod)]


def _shape(pod: Json, cache: ClusterCache) -> PodShape:
    member = _seen(pod, cache).member
    assert member is not None
    assert member.shape is not None
    return member.shape


def released(
    shapes: list[tuple[Json, PodShape]], admitted: Admitted
) -> tuple[tuple[tuple[Json, str], ...], ...]:
    """Give the slots of a placement to the pods, the head first in its wave."""
    slots: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for each in admitted.placement.assignments:
        for node, count in each.nodes:
            slots[each.pod_set, each.shape] += [(each.wave, node)] * count
    waves: defaultdict[int, list[tuple[Json, str]]] = defaultdict(list)
    for pod, shape in sorted(shapes, key=lambda it: (pod_set_of(it[0]) != "head", name_of(it[0]))):
        wave, node = slots[pod_set_of(pod), shape.key].pop()
        waves[wave].append((pod, node))
    return tuple(tuple(waves[wave]) for wave in sorted(waves))


def labels_of(pod: Json) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(pod["metadata"]["labels"].items()))
