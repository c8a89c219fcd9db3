"""Asks Muster for its verdict on a gang whose pods claim devices."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from coordinator.cluster.cache import ClusterCache
from coordinator.cluster.devices import Devices
from coordinator.gang.claims.of_pods import Surroundings, claimed
from coordinator.gang.pods.pod_sets import Standing, survey
from coordinator.messages.events import DeviceApiSeen
from kube.codec.devices.extended_requests import extended_requests
from kube.codec.devices.pod_claims import pod_claims
from kube.codec.node import node
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod, unallocated
from kube.devices.class_requests import class_requests
from kube.devices.device_facts import DEVICE_WATCHES
from kube.objects.core import DeviceClass, DeviceObject, Node, Pod
from kube.objects.names import RAY_GROUP
from kube.ray.gang_terms import GangTerms, PodSetTerms
from scheduling.cycle import NodeFacts, next_cycle
from scheduling.devices.node_index import DeviceFacts, Pending
from scheduling.devices.selection import Rules
from scheduling.model import node as model
from scheduling.model.devices.class_requests import class_claims
from scheduling.model.devices.resource_claim import ResourceClaim
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.shape.restrictions import Claims
from scheduling.model.verdict import Admitted, Refusal
from scheduling.queueing.queues import one_queue
from testbed.recipes import chosen_kubernetes
from tests.oracle.devices.device_worlds import FOREIGN, is_foreign
from tests.oracle.model import Json, World, name_of, pod_set_of
from tests.oracle.question import Yes, cache_of, labels_of, released

_PLURALS = {
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}


def ask_for_devices(world: World, namespaces: list[Json]) -> Yes | Refusal:
    """Decide the gang by what the API server has stored, claims included."""
    members = [_in_group(pod) for pod in world.gang if not is_foreign(pod)]
    cache = cache_of(replace(world, gang=members), namespaces)
    tell(cache.devices, world.objects)
    for each in (each for each in world.objects if each["kind"] == "DeviceClass"):
        cache.put_device_class(msgspec.convert(each, DeviceClass))
    surroundings = Surroundings(cache.columns().traits)
    found = claimed(_standing(members, cache), cache.devices, surroundings)
    if found.hindrance is not None:
        return Refusal(found.hindrance.reason, found.hindrance.message)
    gang, shapes = _gang(world, members, found.standing)
    facts = NodeFacts(devices=facts_of(world, cache.devices))
    decisions, _ = next_cycle(one_queue([gang]), cache.columns(), None, facts=facts)
    match decisions[0].verdict:
        case Admitted() as admitted:
            return Yes(released(shapes, admitted), may_be_nominated=False)
        case refusal:
            return refusal


def _in_group(pod: Json) -> Json:
    """Name the worker group of a pod as KubeRay does."""
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "labels": {**meta["labels"], RAY_GROUP: pod_set_of(pod)}}}


def tell(devices: Devices, objects: Iterable[Json]) -> None:
    """Take in all objects that say something of devices."""
    devices.put_api(DeviceApiSeen(chosen_kubernetes().rpartition(".")[0], served=True))
    watches = {watch.resource.plural: watch for watch in DEVICE_WATCHES}
    for each in objects:
        watch = watches[_PLURALS[each["kind"]]]
        devices.index.put(watch.read(msgspec.convert(each, DeviceObject)))
    for watch in DEVICE_WATCHES:
        devices.index.see(watch.fact)


def _standing(members: list[Json], cache: ClusterCache) -> Standing:
    counts = Counter(map(pod_set_of, members))
    sets = tuple(PodSetTerms(name, count, count, 1) for name, count in counts.items())
    pods = [cache.pods[pod["metadata"]["namespace"], name_of(pod)] for pod in members]
    return survey(GangTerms("", "", sets), pods, None, {})


def _gang(
    world: World, members: list[Json], standing: Standing
) -> tuple[PendingGang, list[tuple[Json, PodShape]]]:
    by_name = {pod.name: _shape(pod) for each in standing for pod in each.waiting}
    shapes = [(pod, by_name[name_of(pod)]) for pod in members]
    counts = Counter((pod_set_of(pod), shape) for pod, shape in shapes)
    groups = tuple(Group(name, "", shape, count) for (name, shape), count in counts.items())
    of_gang = tuple(Member(pod_set_of(pod), shape, labels_of(pod)) for pod, shape in shapes)
    key = GangKey(world.namespaces[0], "gang")
    return PendingGang(key, 0, 0.0, groups, members=of_gang, pod_priority=0), shapes


def _shape(pod: ObservedPod) -> PodShape:
    assert pod.member is not None
    assert pod.member.shape is not None
    return pod.member.shape


def facts_of(world: World, devices: Devices) -> DeviceFacts:
    """Return all that is known of devices."""
    index = devices.index
    return DeviceFacts(
        slices=tuple(index.slices.values()),
        taken=index.taken_by_pool,
        rules=Rules(index.classes, devices.selectors, index.features),
        edition=index.edition,
        pending=_pending(world, devices),
        resources=index.classes_of_resources.keys(),
    )


def _pending(world: World, devices: Devices) -> Mapping[str, Pending]:
    """List the pods of others by node: they are on their way, and hold their claims."""
    found: defaultdict[str, Counter[Claims]] = defaultdict(Counter)
    nodes = {name_of(each): node(msgspec.convert(each, Node)) for each in world.nodes}
    for each in filter(is_foreign, world.gang):
        name = each["metadata"]["labels"][FOREIGN]
        own = unallocated(claims_of(each, devices))
        found[name][(*own, *extended_claims(each, nodes[name], devices))] += 1
    return {node: tuple(counts.items()) for node, counts in found.items()}


def extended_claims(pod: Json, on: model.Node, devices: Devices) -> Claims:
    """Return the claim that kube-scheduler makes for a pod on a node."""
    asked = extended_requests(msgspec.convert(pod, Pod))
    requests = class_requests(asked, devices.index.classes_of_resources)
    names = (each.resource for each in requests)
    return class_claims(requests, frozenset(n for n in names if not on.allocatable.get(n)))


def claims_of(pod: Json, devices: Devices) -> tuple[ResourceClaim, ...]:
    """Return the claims of a pod, all of which are made."""
    meta, asked = pod["metadata"], pod_claims(msgspec.convert(pod, Pod))
    found = claims_of_pod(meta["namespace"], meta["name"], meta["uid"], asked, devices.index)
    assert not isinstance(found, ClaimNotReady), found
    return found
