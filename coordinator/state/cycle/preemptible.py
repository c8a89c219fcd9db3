"""Lists what preemption can take from running gangs: each minimum, and each replica beyond it.

All that a gang holds is in one of its parts, so that what a cycle counts is what is there; of one
that is opted out what counts against quota.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf

from coordinator.gang.eviction.endings import covered, spare_replicas
from coordinator.gang.eviction.stop_method import Keep
from coordinator.gang.source import opt_in_of
from coordinator.gang.view import GangView
from coordinator.queues.counting import pods_that_count
from coordinator.queues.history import began
from coordinator.reconcile.eviction_dry_run import eviction_method
from coordinator.state.known import Known
from kube.codec.observed_pod import ObservedPod
from kube.ray.ray_cluster import Answer, is_terminating
from reservation.slots import Reserved, Slot, slot_of, take_slot
from runtime.controller.moment import Moment
from scheduling.model.amounts import Requests
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.gang import GangKey
from scheduling.model.pod import LOWEST_PRIORITY
from scheduling.model.preemption import GangPart

ENDING = "ending"
"""Names the part that is pods which end anyway; no replica has the name, for those have a slash."""

STUCK = "stuck"
"""Names the part that is pods which should have ended by now."""

STUCK_AFTER = 60.0
"""Seconds beyond its grace after which a pod that ends is waited for no more."""

OPTED_OUT = "it is opted out: Muster leaves its pods alone"
NOT_GONE = (
    f"pods of it are being deleted and not gone {STUCK_AFTER:.0f} s after their grace, because of "
    "a finalizer or a node that does not answer"
)
NO_GANG = GangKey("", "")
UNKNOWN = "it is of no RayCluster that Muster knows"

Room = tuple[tuple[str, Requests], ...]


def parts_of(known: Known, moment: Moment) -> Iterator[GangPart]:
    """Yield the parts of all gangs that hold anything, in the queues that work.

    Those of a gang of which nothing ends are kept until it is looked at again: time alone changes
    no more than its age.
    """
    kept = known.cycles.parts
    for key in known.quota.gangs:
        if key not in kept or any(each.is_ending for each in kept[key]):
            kept[key] = tuple(_parts_of_name(key, known, moment))
            _ask_again(key, known, moment)
        outlived = _has_outlived(known.views.get(key), known, moment)
        if any(each.outlived is not outlived for each in kept[key]):
            kept[key] = tuple(replace(each, outlived=outlived) for each in kept[key])
        yield from kept[key]


def _parts_of_name(key: GangKey, known: Known, moment: Moment) -> Iterator[GangPart]:
    """Yield the parts of all RayClusters of a name."""
    for uid, held in known.quota.of(key).items():
        if held.queue in known.cycles.waiting.tree.index:
            yield from _parts(key, uid, held.queue, known, moment)


def _parts(key: GangKey, uid: str, queue: str, known: Known, moment: Moment) -> Iterator[GangPart]:
    found = [pod for pod in pods_that_count(known.cache, key, uid) if pod.holds]
    stuck = [pod for pod in found if _is_stuck(pod, moment)]
    pods = [pod for pod in found if not _is_stuck(pod, moment)]
    view = known.views.get(key)
    if view is None or view.cluster_uid != uid:
        first = _stray(key, queue, pods)
        yield replace(first, devices=_devices(pods, known))
    else:
        first = _minimum(view, queue, known, moment)
        yield from _of_gang(view, first, pods, known, moment)
    if stuck:
        part = replace(first, replica=STUCK, room=_room(stuck), is_ending=False)
        devices = _devices(stuck, known)
        yield replace(part, kept_because=NOT_GONE, kept_in_short=NOT_GONE, devices=devices)


def _ask_again(key: GangKey, known: Known, moment: Moment) -> None:
    """Have a cycle run when a pod that ends should be gone."""
    due = (pod.ends_by + STUCK_AFTER for pod in known.cache.pods_of(key) if pod.terminating)
    first = min((at for at in due if at > moment.wall), default=inf)
    if first < inf:
        known.agenda.refresh_by(moment.now + first - moment.wall)


def _is_stuck(pod: ObservedPod, moment: Moment) -> bool:
    """Say whether a pod should be gone, which a finalizer or a dead node may keep for ever."""
    return pod.terminating and pod.ends_by + STUCK_AFTER <= moment.wall


def _of_gang(
    view: GangView, first: GangPart, pods: list[ObservedPod], known: Known, moment: Moment
) -> Iterator[GangPart]:
    if first.is_ending:
        room = (*_room(pods), *_reserved(view))
        yield replace(first, room=room, devices=_devices(pods, known))
    else:
        yield from _of_running(view, first, pods, known, moment)


def _of_running(
    view: GangView, first: GangPart, pods: Sequence[ObservedPod], known: Known, moment: Moment
) -> Iterator[GangPart]:
    """Share out what a gang holds: replicas beyond the minimum, pods that end, and the rest."""
    slots, ends = _Slots(view.reservation.reserved), _ending(view, pods)
    left = {pod.uid: pod for pod in pods}
    spare = (
        []
        if first.kept_because == OPTED_OUT
        else sorted(spare_replicas(view.survey.standing, ends).items())
    )
    found = []
    for name, members in spare:
        mine = [left.pop(pod.uid) for pod in members if pod.uid in left]
        kept = view.eviction.kept_now(name, moment.now)
        room = (*_room(mine), *slots.of(members))
        part = replace(first, replica=name, room=room, devices=_devices(mine, known))
        found.append(replace(part, kept_because=kept.because, kept_in_short=kept.in_short))
    gone = [pod for pod in left.values() if pod.terminating or pod.uid in ends]
    for pod in gone:
        del left[pod.uid]
    going = slots.taken(slot for uid, slot in view.eviction.slots.items() if uid in ends)
    room = (*_room(left.values()), *slots.left())
    yield replace(first, room=room, devices=_devices(left.values(), known))
    yield from found
    if gone or going:
        room, devices = (*_room(gone), *going), _devices(gone, known)
        part = replace(first, replica=ENDING, room=room, kept_because="", is_ending=True)
        yield replace(part, devices=devices)


class _Slots:
    """The slots that no pod holds yet: those of surplus that is on its way, and the rest.

    The room of surplus that is stopped before it is bound is free once its pods are gone.
    """

    def __init__(self, reserved: Reserved) -> None:
        self._requests, self._open = reserved.requests, Counter(reserved.slots)
        self._room = Counter(reserved.room)

    def of(self, pods: Iterable[ObservedPod]) -> Room:
        """Take out the slots that pods are on their way to."""
        unbound = (pod for pod in pods if not pod.holds)
        slots = (slot_of(pod, pod.settled_on) for pod in unbound)
        return self.taken(slot for slot in slots if slot is not None)

    def taken(self, slots: Iterable[Slot]) -> Room:
        """Take slots out; those that are held by now are no room of their own."""
        mine = [slot for slot in slots if take_slot(self._open, slot)]
        room = tuple((slot.node, self._requests[slot.kind]) for slot in mine)
        self._room.subtract(room)
        return room

    def left(self) -> Room:
        """Return the room of those that were not taken out."""
        return _multiplied(+self._room)


def _ending(view: GangView, pods: Sequence[ObservedPod]) -> set[str]:
    """Return the uids of the pods that are to end, also where that is not written yet."""
    endings, terms = view.eviction.endings, view.understood.terms
    on_their_way = (pod for each in view.survey.standing for pod in each.settled)
    members = {pod.uid: pod for pod in (*pods, *on_their_way)}.values()
    decided = (pod.uid for each in endings for pod in covered(each, terms, members))
    return view.pod_writes.leaving.union(decided)


def _minimum(view: GangView, queue: str, known: Known, moment: Moment) -> GangPart:
    """Describe the gang, without what it holds."""
    source, kept = known.cache.sources[view.key], _kept(view, queue, known, moment)
    return GangPart(
        gang=view.key,
        replica="",
        queue=queue,
        priority=view.understood.priority,
        admitted=began(view) or 0.0,
        room=(),
        kept_because=kept.because,
        kept_in_short=kept.in_short,
        is_ending=view.eviction.whole is not None or is_terminating(source.metadata),
    )


def _kept(view: GangView, queue: str, known: Known, moment: Moment) -> Keep:
    """Say why the gang cannot be stopped; nothing where it can."""
    source = known.cache.sources[view.key]
    if opt_in_of(source, known.cache).answer is Answer.NO:
        return Keep(OPTED_OUT, OPTED_OUT)
    method = eviction_method(known.cache, known.queues, source, queue)
    kept = view.eviction.kept_now("", moment.now)
    return method if isinstance(method, Keep) else Keep(kept.because, kept.in_short)


def _has_outlived(view: GangView | None, known: Known, moment: Moment) -> bool:
    terms, start = (view.understood.terms, began(view)) if view is not None else (None, None)
    if terms is None or start is None:
        return False
    duration = terms.expected_duration or known.queues.queue(terms.queue).duration
    return start + duration <= moment.wall


def _stray(key: GangKey, queue: str, pods: list[ObservedPod]) -> GangPart:
    """Return what pods hold whose RayCluster is gone: the garbage collector ends them."""
    ends = all(pod.terminating for pod in pods)
    kept = "" if ends else UNKNOWN
    return GangPart(
        gang=key,
        replica="",
        queue=queue,
        priority=LOWEST_PRIORITY,
        admitted=0.0,
        room=_room(pods),
        kept_because=kept,
        kept_in_short=kept,
        is_ending=ends,
    )


def _room(pods: Iterable[ObservedPod]) -> Room:
    return tuple((pod.holds, pod.used) for pod in pods)


def _devices(pods: Iterable[ObservedPod], known: Known) -> frozenset[TakenDevice]:
    """Return what claims of these pods alone were given: it is free once these are gone."""
    index, found = known.cache.devices.index, set[TakenDevice]()
    claims = index.claims
    for pod in pods if claims else ():
        for name in (*(each.claim for each in pod.claims), pod.extended_claim):
            claim = claims.get((pod.namespace, name)) if name else None
            if claim is not None and claim.owner == pod.uid:
                found.update(index.taken_alone(claim))
    return frozenset(found)


def given_back(known: Known) -> Iterator[GangPart]:
    """Yield the devices of pods that are gone: the garbage collector ends their claims."""
    index = known.cache.devices.index
    if not index.taken:
        return
    pods = {pod.uid for pod in known.cache.pods.values()}
    given = (each for each in index.claims.values() if each.allocation and each.owner)
    left = (each for each in given if pods.isdisjoint((each.owner, *each.reserved_for)))
    found = frozenset(chain.from_iterable(map(index.taken_alone, left)))
    if found:
        yield GangPart(NO_GANG, ENDING, "", LOWEST_PRIORITY, 0.0, (), is_ending=True, devices=found)


def _reserved(view: GangView) -> Room:
    return _multiplied(view.reservation.reserved.room)


def _multiplied(room: Mapping[tuple[str, Requests], int]) -> Room:
    return tuple(
        (node, tuple((resource, amount * pods) for resource, amount in requests))
        for (node, requests), pods in room.items()
    )
