"""Runs a coordinator's state machine on a picture of the cluster, and carries out no writes.

So there is no second logic: a coordinator that began to lead now would find the same waiting gangs,
order of queues, reservations, quota and verdict. The object to judge takes part as a gang whose
pods all exist, gated; they are foreseen from its templates.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from cli.fitting.asked import Asked, as_created, as_gang, beside, in_place, job_as_created
from cli.fitting.counts import groups_asked, most_that_fit, with_pods, with_replicas
from cli.fitting.in_place import find_waiting, without
from cli.fitting.queue_alone import by_queue_alone, may_fit
from cli.fitting.unseen_parents import UnseenQueue
from cli.report.fit import (
    Fits,
    Most,
    Verdict,
    by_pod_set,
    devices_unread,
    not_created,
    over_resource_quota,
    unforeseeable,
)
from cli.report.quota_holders import QuotaHolders
from cli.report.snapshot import Snapshot
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.foresight import Foresight, foresight_of, quota_refusal
from coordinator.gang.source import source_of
from coordinator.gang.view import GangView
from coordinator.messages.events import (
    ClusterGone,
    ClusterSeen,
    CycleDue,
    Event,
    GangGone,
    GangSeen,
    PodGone,
    PodSeen,
    RayOwnerSeen,
    Teller,
    TermStarted,
)
from coordinator.reconcile.status.message import explain
from coordinator.state.cycle.what_if import would_admit
from coordinator.state_machine import CoordinatorState
from kube.foreseen.claim_quota import with_claims
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.gang import Gang, GangMeta
from kube.objects.ray import RayCluster
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Reason

CYCLES = 3
"""That are run at most until all are answered: a cycle may leave a question to the next one."""

MOST_GROUPS = 8
"""Worker groups of one object that are searched for how many replicas would fit."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What takes part for one object, so that it can be taken back."""

    key: GangKey
    uid: str
    events: tuple[Event, ...]
    back: tuple[Event, ...]


class Simulation:
    """A picture of the cluster with a leader.

    Where it is `roomless`, nodes and pods could not be read: gangs are judged by their queue alone.
    """

    def __init__(self, state: CoordinatorState, moment: Moment, *, roomless: bool = False) -> None:
        self._state, self._moment, self._roomless = state, moment, roomless
        self._made: dict[GangKey, Mapping[str, int]] = {}
        recorded = (gang.status.epoch or 0 for gang in state.known.cache.gangs.values())
        state.handle([TermStarted(1 + max(recorded, default=0), clean=True)], moment)

    def placed(self, asked: Asked) -> Asked:
        """Return what is asked about as it would stand in the cluster."""
        key = GangKey(asked.namespace, asked.cluster.metadata.name)
        mine = as_gang(asked, self._state.known.cache.namespace_labels(asked.namespace))
        waiting = find_waiting(self._state, asked)
        if waiting is not None:
            self._state.handle(waiting.gone, self._moment)
            self._made[key] = waiting.made
            return in_place(mine, waiting.reason, waiting.created)
        return beside(mine) if key in self._state.known.cache.sources else mine

    def verdicts(self, asked: Sequence[Asked]) -> list[Verdict]:
        """Answer for objects that are created together; those that fit keep their room."""
        stamp = self._moment.stamp
        jobs = [job_as_created(each.job, each.cluster, stamp) for each in asked if each.job]
        self._state.handle([RayOwnerSeen(each) for each in jobs], self._moment)
        found = [self._foreseen(each.cluster) for each in asked]
        parts = [each for each in found if isinstance(each, _Part)]
        self._decide(parts)
        return [self._verdict(each.key) if isinstance(each, _Part) else each for each in found]

    def most(self, asked: Asked) -> tuple[Most, ...]:
        """Search for each worker group how many of its replicas would fit, the rest as asked."""
        groups = list(groups_asked(asked.cluster).items())
        searched, others = groups[:MOST_GROUPS], groups[MOST_GROUPS:]
        return (
            *(
                Most(group, count, self._most_of(asked.cluster, group, count, hosts))
                for group, (count, hosts) in searched
            ),
            *(Most(group, count, None, searched=False) for group, (count, _) in others),
        )

    def _most_of(self, cluster: RayCluster, group: str, count: int, hosts: int) -> int | None:
        """Search where it waits; where its pods would not be created, among those that would be."""
        meta = cluster.metadata
        key = GangKey(meta.namespace, meta.name)
        if key in self._state.known.views:
            return self._most_placed(key, group, count, hosts)
        created = most_that_fit(
            count, lambda n: self._would_be_created(with_replicas(cluster, group, n))
        )
        if created is None:
            return None
        part = self._foreseen(with_replicas(cluster, group, created))
        assert isinstance(part, _Part), "what would be created is foreseen"
        self._decide([part])
        no = self._verdict(key).fits is Fits.NO
        most = self._most_placed(key, group, created, hosts) if no else created
        self._state.handle(part.back, self._moment)
        return most

    def _would_be_created(self, cluster: RayCluster) -> bool:
        return isinstance(self._foreseen(cluster), _Part)

    def _most_placed(self, key: GangKey, group: str, refused: int, hosts: int) -> int | None:
        asked = self._state.known.views[key].queueing.asked
        if not isinstance(asked, PendingGang):
            return None
        return most_that_fit(
            refused, lambda n: self._would_be_placed(with_pods(asked, group, n * hosts))
        )

    def _would_be_placed(self, asked: PendingGang) -> bool:
        if self._roomless:
            return may_fit(asked, self._state.known.queues)
        return would_admit(self._state.known, asked, self._moment)

    def who_has_quota(self, verdict: Verdict) -> tuple[str, ...]:
        """Say who has the quota that a gang lacks; nothing where parents could not be read."""
        queues = tuple(self._state.known.queues.objects.values())
        if any(isinstance(each, UnseenQueue) for each in queues):
            return ()
        found = Snapshot(gangs=tuple(self._state.known.cache.gangs.values()), queues=queues)
        return QuotaHolders(found).of(verdict.queue, verdict.message)

    # ---- one gang

    def _foreseen(self, cluster: RayCluster) -> _Part | Verdict:
        """Work out the pods of a RayCluster, or say why there are none."""
        cache, namespace = self._state.known.cache, cluster.metadata.namespace
        source = source_of(cluster)
        admission = cache.admission.admission(namespace, cache.priority_classes)
        foresight = foresight_of(source.foresee(admission), self._state.known.profiles)
        if foresight.unforeseeable:
            return unforeseeable(foresight.unforeseeable)
        if foresight.refused:
            return not_created(foresight.refused)
        if cache.devices.unseen and any(pod.claims for pod in foresight.pods):
            return devices_unread()
        refused = self._quota_refusal(foresight, cluster)
        return over_resource_quota(refused) if refused else self._part(cluster, foresight)

    def _quota_refusal(self, foresight: Foresight, cluster: RayCluster) -> str:
        assert foresight.found is not None
        cache, meta = self._state.known.cache, cluster.metadata
        key = GangKey(meta.namespace, meta.name)
        others, claimed = cache.foreseen.claimed_beside(key)
        index, mine = cache.devices.index, foresight.found
        charged = partial(with_claims, namespace=meta.namespace, index=index)
        if key in self._made:
            claimed = without(claimed, mine, self._made[key], charged)
        quotas = cache.admission.quotas(meta.namespace)
        return quota_refusal(charged(mine), others, claimed, quotas)

    def _part(self, cluster: RayCluster, foresight: Foresight) -> _Part:
        meta = cluster.metadata
        created = as_created(cluster, self._moment.stamp)
        names = [(pod.name, pod.uid) for pod in foresight.pods] if not created.spec.suspend else []
        key = GangKey(meta.namespace, meta.name)
        return _Part(key, meta.uid, seen_of(created, foresight), _back(key, meta.uid, names))

    def _decide(self, parts: Sequence[_Part]) -> None:
        """Run cycles until all are answered; without room there is nothing to decide on."""
        self._state.handle([event for part in parts for event in part.events], self._moment)
        for _ in range(0 if self._roomless else CYCLES):
            self._state.handle([CycleDue()], self._moment)
            if all(self._is_answered(part.key) for part in parts):
                return

    def _is_answered(self, key: GangKey) -> bool:
        view = self._state.known.views[key]
        asks = isinstance(view.queueing.asked, PendingGang)
        answered = view.queueing.refusal is not None or view.reservation.placement is not None
        return answered or not asks

    def _verdict(self, key: GangKey) -> Verdict:
        view = self._state.known.views[key]
        asked, placement = view.queueing.asked, view.reservation.placement
        said = explain(view, asked if isinstance(asked, NotReady) else None)
        verdict = Verdict(Fits.NO, said.reason, said.message, _queue_of(view))
        if placement is not None:
            return replace(verdict, fits=Fits.YES, placement=by_pod_set(placement))
        if verdict.reason == Reason.NOT_REQUIRED:
            return replace(verdict, fits=Fits.YES)
        if not isinstance(asked, PendingGang):
            return verdict
        if self._roomless:
            return by_queue_alone(verdict, asked, self._state.known.queues)
        return replace(verdict, position=view.queueing.position, count_matters=True)


def _queue_of(view: GangView) -> str:
    return view.understood.terms.queue if view.understood.terms is not None else ""


def seen_of(created: RayCluster, foresight: Foresight) -> tuple[Event, ...]:
    """Return what is seen of an object that is created: itself, its Gang, and its pods.

    Of an AppWrapper no pod exists before its gang has its place: the state machine foresees them.
    """
    pods = () if created.spec.suspend else foresight.pods
    seen = (PodSeen(pod, Teller.RAY_POD_WATCH) for pod in pods)
    return ClusterSeen(created), GangSeen(_record(created.metadata)), *seen


def _record(meta: ObjectMeta) -> Gang:
    """Make the Gang that the coordinator would create: a cycle asks no gang without a record."""
    owner = OwnerReference(kind="RayCluster", name=meta.name, uid=meta.uid)
    mine = GangMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=f"{meta.uid}-gang",
        resource_version="1",
        owner_references=(owner,),
    )
    return Gang(metadata=mine)


def _back(key: GangKey, uid: str, pods: Iterable[tuple[str, str]]) -> tuple[Event, ...]:
    """List what undoes that an object took part."""
    gone = (PodGone(key.namespace, name, of, Teller.RAY_POD_WATCH) for name, of in pods)
    return (*gone, GangGone(key, ""), ClusterGone(key, uid))
