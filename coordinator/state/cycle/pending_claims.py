"""Lists by node the device claims of assigned pods that are not allocated yet.

kube-scheduler allocates in its own cycle, and the API server reports that later. Until then a pod
that was released, or that has a slot, takes devices that no object shows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import repeat

from coordinator.state.known import Known
from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import unallocated, with_names
from kube.devices.class_requests import claimed_on, to_be_claimed
from reservation.claims import by_kind
from reservation.slots import slot_of, vacant_slots
from scheduling.devices.node_index import Pending
from scheduling.model.gang import GangKey
from scheduling.model.shape.restrictions import Claims


def pending_claims(known: Known) -> Mapping[str, Pending]:
    """List the claims of all gangs, and of pods that left their gang."""
    found: dict[str, Counter[Claims]] = {}
    named: set[tuple[str, str]] = set()
    for key in sorted(known.cache.devices.gangs | _foreseen(known), key=str):
        for node, claims in (*_of_pods(known, key, named), *_of_kept_slots(known, key, named)):
            if claims:
                found.setdefault(node, Counter())[claims] += 1
    return {node: tuple(counts.items()) for node, counts in found.items()}


def _foreseen(known: Known) -> Set[GangKey]:
    """Return the gangs that have room and no pods yet, and may claim devices."""
    by_class = known.cache.devices.index.classes_of_resources
    found = known.cache.foreseen if by_class else known.cache.foreseen.claiming
    return {key for key in found if _pods_to_come(known, key)}


def _pods_to_come(known: Known, key: GangKey) -> Sequence[ObservedPod]:
    view = known.views.get(key)
    if view is None or view.reservation.placement is None:
        return ()
    gives = known.cache.devices.index.gives_any
    return [p for p in view.held.expected.foresight.pods if p.claims or gives(p.extended)]


def _of_pods(
    known: Known, key: GangKey, named: set[tuple[str, str]]
) -> Iterator[tuple[str, Claims]]:
    """Yield the nodes of pods that are pinned or bound, or have a slot.

    What pods share is allocated once: `named` are the claims that were counted.
    """
    slots = {pod.uid: node for pod, node in _with_slot(known, key)}
    index = known.cache.devices.index
    for pod in known.cache.pods_of(key):
        node = slots.get(pod.uid) or pod.settled_on
        if node and not pod.terminal and _lacks_devices(known, pod):
            claims = [each for _, each in with_names(pod, index) if each.key not in named]
            named |= {each.key for each in claims}
            there = known.cache.nodes.get(node)
            yield node, (*unallocated(claims), *to_be_claimed(pod, there, index))


def _of_kept_slots(
    known: Known, key: GangKey, named: set[tuple[str, str]]
) -> Iterator[tuple[str, Claims]]:
    """Yield the nodes of slots that no pod has: one like the others of its kind may come."""
    view = known.views.get(key)
    placement = view.reservation.placement if view is not None else None
    if view is None or placement is None or not view.reservation.reserved.slots:
        return  # most gangs have a pod in each slot, and are many
    pods = known.cache.members(key, view.cluster_uid)
    left = vacant_slots(placement, pods)
    left.subtract(slot for pod, node in _with_slot(known, key) if (slot := slot_of(pod, node)))
    index = known.cache.devices.index
    alike = by_kind((*_pods_to_come(known, key), *pods), index)
    for slot, count in (+left).items():
        pod = alike.get((slot.kind.pod_set, slot.kind.shape))
        if pod is None:
            continue
        claims, node = with_names(pod, index), known.cache.nodes.get(slot.node)
        own = tuple(c.spec for asked, c in claims if asked.template)
        yield from repeat((slot.node, (*own, *claimed_on(pod, node, index))), count)
        shared = [c for asked, c in claims if not asked.template and c.key not in named]
        named |= {each.key for each in shared}
        yield slot.node, unallocated(shared)


def _lacks_devices(known: Known, pod: ObservedPod) -> bool:
    """Say whether a claim of a pod is not allocated: of most pods that are bound none is."""
    index = known.cache.devices.index
    unallocated = index.unallocated
    lacks = any(not c.claim or (pod.namespace, c.claim) in unallocated for c in pod.claims)
    return lacks or index.gives_any(pod.extended)


def _with_slot(known: Known, key: GangKey) -> Iterator[tuple[ObservedPod, str]]:
    view = known.views.get(key)
    for each in view.survey.standing if view is not None else ():
        yield from each.with_slot
