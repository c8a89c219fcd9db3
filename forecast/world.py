"""Carries out the writes of a state machine on a simulated cluster without faults.

A write is stored and echoed, a released pod is bound and ready at once, a pod that is evicted is
made again with our gate. Nothing here decides. What is simulated is the API server, KubeRay, the
scheduler that binds pinned pods, the kubelet, and the program `wrapper`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from appwrapper.gang.stand_in import StandIn
from appwrapper.phases import Phase
from coordinator.gang.held_start.foresight import foresight_of
from coordinator.messages.actions import (
    Action,
    CreateGang,
    DeleteGang,
    DeletePod,
    EvictPod,
    FencePod,
    NominatePod,
    PatchGangSpec,
    QueueAction,
    ReadBudgets,
    ReleasePod,
    ResumeRayCluster,
    ResumeRayJob,
    SuspendRayCluster,
    SuspendRayJob,
    TryEviction,
    TrySuspension,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from coordinator.messages.events import (
    ClusterGone,
    ClusterSeen,
    CycleDue,
    Event,
    GangGone,
    GangSeen,
    PodGone,
    PodSeen,
    QueueSeen,
    RayOwnerGone,
    RayOwnerSeen,
    Teller,
    TermStarted,
    TimePassed,
)
from coordinator.messages.write_ends import (
    BudgetsRead,
    EvictionTried,
    NominationEnded,
    PodPatchEnded,
    QueueWriteEnded,
    RayClusterWriteEnded,
    RayJobWriteEnded,
    WriteEnded,
)
from coordinator.state_machine import CoordinatorState
from forecast.devices import Giving, TakenBack, seen
from forecast.pods import bound, fenced, made_again, of_gang
from kube.codec.observed_pod import ObservedPod
from kube.gang.source import Stage
from kube.objects import names
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster, RayJob
from kube.ray.ray_cluster import resumed
from kube.ray.ray_owner import suspension_note
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

FIRST_VERSION = 1 << 63
"""Resource versions of what is written here are above all that were read, and the lack of one."""

AGAIN = "~"
"""In no name of an object: marks what is made again in a forecast."""

RAY_PODS = Teller.RAY_POD_WATCH

MOST_ROUNDS = 1000
"""Cycles at one moment, after which it is taken for settled: no cluster has come near."""


@dataclass
class World:
    """A cluster around one leader, at one moment of its own time."""

    state: CoordinatorState
    moment: Moment
    cycles: int = 0
    """How many were run."""
    placed: set[GangKey] = field(default_factory=set)
    """The gangs of which pods were released since this was last emptied."""
    put_back: set[GangKey] = field(default_factory=set)
    """The gangs of which pods were evicted, or made anew, since this was last emptied."""
    _versions: Iterator[int] = field(default_factory=lambda: count(FIRST_VERSION))
    _made: Iterator[int] = field(default_factory=lambda: count(1))
    _suspended: dict[str, tuple[RayCluster, tuple[ObservedPod, ...]]] = field(default_factory=dict)

    # ---- time and events

    def pass_to(self, wall: float) -> None:
        """Let the time come to a moment, in seconds since 1970; never back."""
        later = max(0.0, wall - self.moment.wall)
        at = self.moment.wall + later
        stamp = datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.moment = Moment(self.moment.now + later, stamp, at)

    def lead(self) -> None:
        """Have the state machine lead, and look at every gang."""
        recorded = (each.status.epoch or 0 for each in self.state.known.cache.gangs.values())
        started = TermStarted(1 + max(recorded, default=0), clean=True)
        self._act(self._handle([started]))

    def see(self, events: Sequence[Event]) -> None:
        """Tell events and carry out what follows at once; decide nothing."""
        self._act(self._handle(events))

    def tell(self, events: Sequence[Event], more: Callable[[], bool] = lambda: True) -> None:
        """Tell events, carry out what follows, and have it decided, until it rests.

        Or until there is no `more` time: then the world is left half way, and is not to be read.
        """
        self._act(self._handle([TimePassed(), *events]), more)
        for _ in range(MOST_ROUNDS):
            if not (self.state.cycle_wanted and more()):
                return
            self.cycles += 1
            self._act(self._handle([CycleDue()]), more)

    def _handle(self, events: Sequence[Event]) -> list[Action]:
        return self.state.handle(events, self.moment) if events else []

    def _act(self, actions: Iterable[Action], more: Callable[[], bool] = lambda: True) -> None:
        left = deque(actions)
        while left and more():
            action = left.popleft()
            if isinstance(action, ReleasePod):
                events = [*self._released([action, *_releases(left)])]
            else:
                events = [*self._carried_out(action)]
            left.extend(self._handle(events))

    # ---- what ends

    def end(self, key: GangKey) -> list[Event]:
        """Return what is seen of a gang's end: its object goes, with all of its pods."""
        cache = self.state.known.cache
        source = cache.sources.get(key)
        events = [*self.gone(cache.pods_of(key))]
        if source is not None:
            owner = cache.owners.owner_of(source)
            events += [RayOwnerGone(owner.metadata.uid)] if owner is not None else []
            events += [ClusterGone(key, source.metadata.uid), GangGone(key)]
        return events

    # ---- actions

    def _carried_out(self, action: Action) -> Iterator[Event]:
        """Carry out an action; yields what is seen of that. Events and logs change nothing."""
        match action:
            case CreateGang() | PatchGangSpec() | WriteGangStatus() | DeleteGang():
                yield from self._gang_written(action)
            case WriteQueueStatus() | WriteQueueFinalizers():
                yield from self._queue_stored(action)
            case FencePod() | DeletePod() | EvictPod() | NominatePod():
                yield from self._pod_written(action)
            case TryEviction() | TrySuspension() | ReadBudgets():
                yield _allowed(action)
            case ResumeRayCluster() | SuspendRayCluster():
                yield from self._cluster_written(action)
            case SuspendRayJob(gang=key, job=job, suspended_for=preemptor):
                yield from self._job_suspended(key, job, preemptor)
            case ResumeRayJob(gang=key, job=job):
                yield from self._job_resumed(key, job)

    # ---- Gangs and queues

    def _gang_written(
        self, action: CreateGang | PatchGangSpec | WriteGangStatus | DeleteGang
    ) -> Iterator[Event]:
        match action:
            case CreateGang(key, body):
                uid = f"{AGAIN}{next(self._made)}"
                yield from self._stored(key, {**body, "metadata": {**body["metadata"], "uid": uid}})
            case PatchGangSpec(key=key, spec=spec):
                yield from self._changed(key, {"spec": spec})
            case WriteGangStatus(key=key, status=status):
                yield from self._changed(key, {"status": {**self._of_people(key), **status}})
                yield from self._created_by_wrapper(key, status)
            case DeleteGang(key=key):
                yield from (GangGone(key), WriteEnded(key, None))

    def _of_people(self, key: GangKey) -> dict[str, Any]:
        """Return of the status what people ask for; a write of the coordinator leaves it."""
        gang = self.state.known.cache.gangs.get(key)
        moves = gang.status.moves if gang is not None else None
        return {"moves": msgspec.to_builtins(moves)} if moves is not None else {}

    def _changed(self, key: GangKey, part: dict[str, Any]) -> Iterator[Event]:
        gang = self.state.known.cache.gangs.get(key)
        if gang is not None:
            yield from self._stored(key, {**msgspec.to_builtins(gang), **part})

    def _stored(self, key: GangKey, body: dict[str, Any]) -> Iterator[Event]:
        meta = {**body["metadata"], "resourceVersion": self.version()}
        yield GangSeen(msgspec.convert({**body, "metadata": meta}, Gang))
        yield WriteEnded(key, None)

    def _queue_stored(self, action: QueueAction) -> Iterator[Event]:
        found = self.state.known.queues.objects.get(action.name)
        if found is not None:
            body = msgspec.to_builtins(found)
            body["metadata"]["resourceVersion"] = self.version()
            if isinstance(action, WriteQueueStatus):
                body["status"] = action.status
            else:
                body["metadata"]["finalizers"] = action.finalizers
            yield QueueSeen(msgspec.convert(body, GangQueue))
        yield QueueWriteEnded(action.name, None)

    # ---- pods

    def _pod_written(
        self, action: FencePod | DeletePod | EvictPod | NominatePod
    ) -> Iterator[Event]:
        uid = action.uid if isinstance(action, DeletePod | EvictPod) else action.pod.metadata.uid
        pod = self._pod(action.gang, uid)
        if isinstance(action, NominatePod):
            yield NominationEnded(action.gang, uid)
            return
        match action:
            case FencePod(token=token) if pod is not None:
                yield PodSeen(fenced(pod, token, self.version()), RAY_PODS)
            case DeletePod() | EvictPod() if pod is not None:
                yield from self.deleted(action.gang, pod)
        yield PodPatchEnded(action.gang, uid, None)

    def _released(self, releases: Iterable[ReleasePod]) -> Iterator[Event]:
        giving = Giving(self.state.known)
        for each in releases:
            uid = each.pod.metadata.uid
            pod = self._pod(each.gang, uid)
            if pod is not None:
                self.placed.add(each.gang)
                yield from self.bound(pod, each.node, giving)
            yield PodPatchEnded(each.gang, uid, None)

    def bound(self, pod: ObservedPod, node: str, giving: Giving) -> Iterator[Event]:
        """Yield what is seen of a pod that is bound, with its devices."""
        with_devices, claims = giving.to(pod, node)
        yield from seen(claims)
        yield PodSeen(bound(with_devices, node, self.version()), RAY_PODS)

    def gone(self, pods: Iterable[ObservedPod]) -> Iterator[Event]:
        """Yield what is seen of pods that are gone, and of their claims."""
        taken = TakenBack(self.state.known.cache.devices.index.claims)
        for pod in pods:
            yield PodGone(pod.namespace, pod.name, pod.uid, Teller.ANSWER)
            yield from taken.of(pod)

    def _pod(self, key: GangKey, uid: str) -> ObservedPod | None:
        return next((pod for pod in self.state.known.cache.pods_of(key) if pod.uid == uid), None)

    def deleted(self, key: GangKey, pod: ObservedPod) -> Iterator[Event]:
        """Yield what is seen of a deleted pod: another one, where its controller makes one."""
        self.put_back.add(key)
        yield from self.gone((pod,))
        source = self.state.known.cache.sources.get(key)
        member = pod.member
        if source is None or member is None or source.suspended or not pod.alive:
            return
        if source.metadata.deletion_timestamp is None and source.replaces(member.pod_set):
            again = made_again(pod, next(self._made), self.version())
            yield PodSeen(again, RAY_PODS)

    # ---- Ray objects

    def _cluster_written(self, action: ResumeRayCluster | SuspendRayCluster) -> Iterator[Event]:
        key, cluster = action.gang, action.cluster
        if isinstance(action, ResumeRayCluster):
            yield from self._created(key, resumed(cluster))
        else:
            self.put_back.add(key)
            yield from self.gone(self.state.known.cache.pods_of(key))
            spec = replace(cluster.spec, suspend=True)
            yield ClusterSeen(self._next(replace(cluster, spec=spec)))
        yield RayClusterWriteEnded(key, cluster.metadata.uid, None)

    def _created_by_wrapper(self, key: GangKey, status: Mapping[str, Any]) -> Iterator[Event]:
        """Have the objects of an AppWrapper created whose gang has its place."""
        source = self.state.known.cache.sources.get(key)
        if source is None or source.stage is not Stage.QUEUED or not status.get("placement"):
            return
        form = getattr(source, "form", None)
        if isinstance(form, StandIn):  # else it is sent to another cluster, and created there
            yield from self._created(key, replace(resumed(form), phase=Phase.RUNNING))

    def _created(self, key: GangKey, cluster: RayCluster) -> Iterator[Event]:
        """Have the pods made that a held gang waits with."""
        known = self.state.known
        admission = known.cache.admission.admission(key.namespace, known.cache.priority_classes)
        source = known.cache.sources[key].resumed()
        pods = foresight_of(source.foresee(admission), known.profiles).pods
        yield ClusterSeen(self._next(cluster))
        yield from (PodSeen(pod, RAY_PODS) for pod in pods)

    def _next(self, cluster: RayCluster) -> RayCluster:
        meta = cluster.metadata
        later = replace(meta, generation=meta.generation + 1, resource_version=self.version())
        return replace(cluster, metadata=later)

    def _job_suspended(self, key: GangKey, job: RayJob, preemptor: str) -> Iterator[Event]:
        """Have KubeRay delete the RayCluster of a suspended RayJob."""
        self.put_back.add(key)
        source = self.state.known.cache.sources.get(key)
        form, pods = getattr(source, "form", None), self.state.known.cache.pods_of(key)
        if form is not None:
            self._suspended[job.metadata.uid] = form, tuple(each for each in pods if each.member)
            yield from self.gone(pods)
            yield from (ClusterGone(key, form.metadata.uid), GangGone(key))
        note = {names.SUSPENDED_FOR: suspension_note(job, preemptor)}
        meta = replace(job.metadata, annotations=note, resource_version=self.version())
        status = replace(job.status, job_deployment_status="Suspended", ray_cluster_name="")
        spec = replace(job.spec, suspend=True)
        yield RayOwnerSeen(replace(job, metadata=meta, status=status, spec=spec))
        yield RayJobWriteEnded(key, job.metadata.uid, None)

    def _job_resumed(self, key: GangKey, job: RayJob) -> Iterator[Event]:
        """Have KubeRay make the RayCluster of a RayJob anew, with gated pods."""
        kept = self._suspended.pop(job.metadata.uid, None)
        name = f"{kept[0].metadata.name}{AGAIN}{next(self._made)}" if kept else ""
        meta = replace(job.metadata, annotations={}, resource_version=self.version())
        status = replace(job.status, job_deployment_status="Initializing", ray_cluster_name=name)
        spec = replace(job.spec, suspend=False)
        yield RayOwnerSeen(replace(job, metadata=meta, status=status, spec=spec))
        yield RayJobWriteEnded(key, job.metadata.uid, None)
        if kept is not None:
            yield from self._made_anew(name, *kept)

    def _made_anew(
        self, name: str, cluster: RayCluster, pods: Sequence[ObservedPod]
    ) -> Iterator[Event]:
        meta = replace(cluster.metadata, name=name, uid=f"{cluster.metadata.uid}{name}")
        self.put_back.add(GangKey(meta.namespace, name))
        yield ClusterSeen(replace(cluster, metadata=meta))
        for pod in pods:
            again = made_again(pod, next(self._made), self.version())
            yield PodSeen(of_gang(again, GangKey(meta.namespace, name), meta.uid), RAY_PODS)

    def version(self) -> str:
        """Return a resource version above all before."""
        return str(next(self._versions))


def _releases(left: deque[Action]) -> Iterator[ReleasePod]:
    """Take the releases that come next; each is of another pod."""
    while left and isinstance(left[0], ReleasePod):
        yield left[0]
        left.popleft()


def _allowed(action: TryEviction | TrySuspension | ReadBudgets) -> Event:
    """Answer a question as a cluster does in which nothing is against evictions."""
    match action:
        case TryEviction(gang=key, uid=uid):
            return EvictionTried(key, uid, None)
        case TrySuspension(gang=key, job=job):
            return EvictionTried(key, job.metadata.uid, None)
        case ReadBudgets(gang=key, namespace=namespace):
            return BudgetsRead(key, namespace, ())
