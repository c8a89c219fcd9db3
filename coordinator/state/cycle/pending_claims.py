"""Lists the pods that are to come to a node and whose claims of devices are not allocated yet.

kube-scheduler allocates in its own cycle, and the API server tells of it later. Until then a pod
that was released, or that has a slot, takes devices that no object tells of.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import repeat

from coordinator.state.known import Known
from kube.codec.observed_pod import ObservedPod
from reservation.claims import claims_of, claims_of_slots
from reservation.slots import slot_of, vacant_slots
from scheduling.devices.node_index import Pending
from scheduling.model.gang import GangKey
from scheduling.model.shape.restrictions import Claims


def pending_claims(known: Known) -> Mapping[str, Pending]:
    """List those of all gangs, and of pods that left theirs."""
    found: dict[str, Counter[Claims]] = {}
    for key in sorted(known.cache.devices.gangs, key=str):
        for node, claims in (*_of_pods(known, key), *_of_kept_slots(known, key)):
            if claims:
                found.setdefault(node, Counter())[claims] += 1
    return {node: tuple(counts.items()) for node, counts in found.items()}


def _of_pods(known: Known, key: GangKey) -> Iterator[tuple[str, Claims]]:
    """Yield the nodes of pods that are pinned or bound, or have a slot."""
    slots = {pod.uid: node for pod, node in _with_slot(known, key)}
    for pod in known.cache.pods_of(key):
        node = slots.get(pod.uid) or pod.settled_on
        if pod.claims and node and not pod.terminal:
            yield node, claims_of(pod, known.cache.devices.index) or ()


def _of_kept_slots(known: Known, key: GangKey) -> Iterator[tuple[str, Claims]]:
    """Yield the nodes of slots that no pod has: one like the others of its kind may come."""
    view = known.views.get(key)
    placement = view.reservation.placement if view is not None else None
    if view is None or placement is None:
        return
    pods = known.cache.members(key, view.cluster_uid)
    left = vacant_slots(placement, pods)
    left.subtract(slot for pod, node in _with_slot(known, key) if (slot := slot_of(pod, node)))
    for slot, count, claims in claims_of_slots(left, pods, known.cache.devices.index):
        yield from repeat((slot.node, claims or ()), count)


def _with_slot(known: Known, key: GangKey) -> Iterator[tuple[ObservedPod, str]]:
    view = known.views.get(key)
    for each in view.survey.standing if view is not None else ():
        yield from each.with_slot
