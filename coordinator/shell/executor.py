"""Carries actions out, and feeds back how they ended.

One task per action, a bounded number at a time. Right before each send the leader's term is
asked: a process that was stopped for a minute must not send what it decided before. Every
outcome becomes events. Where a patch failed or its outcome is unknown, the pod or the gang is
read again first, so that the state machine decides on what is really there.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import singledispatchmethod
from typing import Protocol

import structlog

from coordinator.messages.actions import (
    Action,
    AskForNodes,
    CreateGang,
    DeleteGang,
    DeletePod,
    DropNodeRequest,
    EmitEvent,
    EvictPod,
    FencePod,
    LogDecision,
    NominatePod,
    PatchGangSpec,
    ReadBudgets,
    Regarding,
    ReleasePod,
    ResumeRayCluster,
    ResumeRayJob,
    SuspendRayCluster,
    SuspendRayJob,
    TryEviction,
    TrySuspension,
    WakeKubeRay,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from coordinator.messages.events import (
    BudgetsRead,
    Event,
    EvictionTried,
    GangGone,
    GangSeen,
    NodeRequestGone,
    NodeRequestSeen,
    NodeRequestWriteEnded,
    NominationEnded,
    PodGone,
    PodPatchEnded,
    PodSeen,
    QueueWriteEnded,
    RayClusterWriteEnded,
    RayJobWriteEnded,
    Teller,
    WriteEnded,
)
from coordinator.metrics import (
    EVENTS_DROPPED,
    EVICTIONS,
    GATE_REMOVAL,
    NOMINATIONS_FORBIDDEN,
    WRITES,
)
from coordinator.shell import decision_log
from coordinator.shell.event_recorder import Recorder
from coordinator.shell.node_asker import NodeAsker
from coordinator.shell.stopper import Stopper
from coordinator.shell.suspicion import UNSUSPECTED, Suspicion
from coordinator.shell.write_lanes import Lanes
from kube.api.client import Client, decode
from kube.api.errors import (
    ApiError,
    Conflict,
    Invalid,
    KubeError,
    NotFound,
    is_of_budget,
    is_of_role,
    is_of_what_goes,
)
from kube.api.resources import BUDGETS, GANG_QUEUES, GANGS, PODS
from kube.codec.budget import Budget, budget_of
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.pod_patches import (
    Operation,
    fence_patch,
    nomination_patch,
    release_patch,
    unpinned_release_patch,
)
from kube.codec.status_patches import fields_patch
from kube.objects.core import Pod
from kube.objects.gang import Gang
from kube.objects.names import RAY_NODE_TYPE, RAY_NODE_TYPES
from kube.objects.policy import BudgetList
from kube.objects.queue import GangQueue
from kube.objects.ray import RayCluster, RayJob
from scheduling.model.gang import GangKey

log = structlog.get_logger()

_NO_RIGHT_TO_NOMINATE = (
    "grant patch on pods/status to the coordinator (manifests/base/coordinator-rbac.yaml), "
    "or set MUSTER_COORDINATOR_GUARD to Extender or None"
)

COURTESY = 1.0  # seconds that a write which only informs lets others pass

Feed = Callable[[Iterable[Event]], None]


class Leadership(Protocol):
    """The one question that is asked before each send."""

    def valid(self) -> bool:
        """Whether we may still write."""
        ...


class Executor:
    """Carries out the actions of one term with at most `concurrency` requests under way.

    They go gang by gang (`Lanes`), so that one that was begun is finished before the next. What
    only informs (Events, a status that decides nothing, what is written to GangQueues) lets the
    rest pass, and so do nominations, for a second at most. Events on the Gang and on the head pod,
    which say what that on the RayCluster says, come after everything else, of each only the newest.
    """

    def __init__(
        self,
        client: Client,
        term: Leadership,
        feed: Feed,
        *,
        identity: str,
        concurrency: int,
        reduce: Callable[[Pod], ObservedPod] = observe,
        suspicion: Suspicion = UNSUSPECTED,
    ) -> None:
        self._client = client
        self._reduce = reduce
        self._suspicion = suspicion
        self._term = term
        self._feed = feed
        self._recorder = Recorder(client, identity)
        self._stopper = Stopper(client)
        self._node_asker = NodeAsker(client)
        self._concurrency = concurrency
        self._urgent = Lanes()
        self._courtesy: deque[tuple[float, Action]] = deque()
        self._echoes: dict[tuple[Regarding, str], EmitEvent] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()
        self._error: BaseException | None = None
        self._in_doubt = False
        self._informed = False
        self._forbidden = False
        self._asked_at: dict[str, float] = {}
        """When the release of a pod was asked for, by its uid."""

    def submit(self, actions: Iterable[Action]) -> None:
        """Queue the actions and start as many as may run; decisions go into the log at once."""
        now = time.monotonic()
        for action in actions:
            match action:
                case LogDecision():
                    decision_log.write(action)
                case EmitEvent(regarding=Regarding() as regarding):
                    self._echoes[regarding, action.reason] = action
                case NominatePod() if action.node:
                    self._courtesy.append((now + COURTESY, action))
                case EmitEvent() | WriteGangStatus(decides=False):
                    self._courtesy.append((now + COURTESY, action))
                case WriteQueueStatus() | WriteQueueFinalizers():
                    self._courtesy.append((now + COURTESY, action))
                case ReleasePod():
                    self._asked_at[action.pod.metadata.uid] = now
                    self._urgent.add(action, now)
                case _:
                    self._urgent.add(action, now)
        self._start_some()

    async def run(self) -> None:
        """Wait for ever; a bug in an action comes out here, so that it ends the process."""
        await self._broken.wait()
        assert self._error is not None
        raise self._error

    async def close(self, seconds: float = 0.0) -> bool:
        """Send no more, and let what is under way end; returns whether all that was sent is over.

        What is not answered in `seconds` is cancelled, and the next term finds out what became of
        it, as of every request of this term whose outcome is unknown.
        """
        self._urgent.clear()
        self._courtesy.clear()
        self._echoes.clear()
        self._asked_at.clear()
        NOMINATIONS_FORBIDDEN.set(0)
        left = set(self._running)
        if left and seconds > 0:
            _, left = await asyncio.wait(left, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return not left and not self._in_doubt and self._error is None

    def _start_some(self) -> None:
        queued = (self._urgent, self._courtesy, self._echoes)
        while len(self._running) < self._concurrency and any(queued):
            task = asyncio.create_task(self._carry_out(self._next()))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _next(self) -> Action:
        """Of what only informs and is overdue at most every other: thousands may be."""
        now = time.monotonic()
        overdue = bool(self._courtesy) and self._courtesy[0][0] <= now
        self._informed = not self._urgent or (overdue and not self._informed)
        if not self._informed:
            return self._urgent.pop(now)
        if self._courtesy:
            return self._courtesy.popleft()[1]
        return self._echoes.pop(next(iter(self._echoes)))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        self._error = self._error or task.exception()
        if self._error is not None:
            self._broken.set()
        self._start_some()

    async def _carry_out(self, action: Action) -> None:
        if self._term.valid():
            self._feed(await self._do(action))

    @singledispatchmethod
    async def _do(self, action: Action) -> list[Event]:
        raise TypeError(f"no way to carry out {action!r}")

    @_do.register
    async def _create_gang(self, action: CreateGang) -> list[Event]:
        path = GANGS.path(action.key.namespace)
        return await self._write_gang(
            action.key, "create", self._client.create(path, action.body, as_=Gang)
        )

    @_do.register
    async def _patch_spec(self, action: PatchGangSpec) -> list[Event]:
        path = GANGS.path(action.key.namespace, action.key.name)
        operations = [*_unchanged(action), *fields_patch("spec", action.spec, action.before)]
        return await self._write_gang(
            action.key, "spec", self._client.json_patch(path, operations, as_=Gang)
        )

    @_do.register
    async def _write_status(self, action: WriteGangStatus) -> list[Event]:
        if action.decides:
            self._suspicion.placed()
        path = GANGS.path(action.key.namespace, action.key.name, "status")
        operations = [*_unchanged(action), *fields_patch("status", action.status, action.before)]
        return await self._write_gang(
            action.key, "status", self._client.json_patch(path, operations, as_=Gang)
        )

    @_do.register
    async def _delete_gang(self, action: DeleteGang) -> list[Event]:
        path = GANGS.path(action.key.namespace, action.key.name)
        try:
            await self._client.delete(path, uid=action.uid)
        except KubeError as error:
            self._failed("gang_delete", error)
            return [*await self._read_gang(action.key), WriteEnded(action.key, str(error))]
        WRITES.labels("gang_delete", "done").inc()
        left = await self._what_is_left(action)
        return [*left, WriteEnded(action.key, None if left else "deleted, and not read since")]

    async def _what_is_left(self, action: DeleteGang) -> list[Event]:
        """Read whether the Gang is gone: a finalizer may hold it after a DELETE that succeeded."""
        gone = GangGone(action.key, action.uid)
        match await self._read_gang(action.key):
            case [GangSeen(gang)] if gang.metadata.uid == action.uid:
                return [GangSeen(gang)]
            case [GangSeen() as another]:
                return [gone, another]
            case [GangGone()]:
                return [gone]
            case _:
                return []  # the watch will tell; until then it may be there still

    def _failed(self, what: str, error: KubeError) -> None:
        """Count a failed write; one that may yet be carried out leaves the term in doubt."""
        WRITES.labels(what, _outcome(error)).inc()
        self._in_doubt |= error.outcome_unknown

    async def _write_gang(self, key: GangKey, what: str, request: Awaitable[Gang]) -> list[Event]:
        sent = time.monotonic()
        try:
            gang = await request
        except KubeError as error:
            self._failed(f"gang_{what}", error)
            if not is_of_what_goes(error):
                log.info("gang write failed", gang=str(key), what=what, error=str(error))
            return [*await self._read_gang(key), WriteEnded(key, str(error))]
        self._suspicion.wrote("gangs", sent)
        WRITES.labels(f"gang_{what}", "done").inc()
        return [GangSeen(gang), WriteEnded(key, None)]

    async def _read_gang(self, key: GangKey) -> list[Event]:
        try:
            path = GANGS.path(key.namespace, key.name)
            return [GangSeen(await self._client.get(path, as_=Gang))]
        except NotFound:
            return [GangGone(key)]
        except KubeError:
            return []  # the watch will tell

    @_do.register
    async def _release(self, action: ReleasePod) -> list[Event]:
        operations = (
            release_patch(action.pod, action.node, action.queue)
            if action.node
            else unpinned_release_patch(action.pod)
        )
        asked_at = self._asked_at.pop(action.pod.metadata.uid, None)
        events = await self._patch_pod(action.gang, action.pod, "release", operations)
        if asked_at is not None and _was_patched(events):
            GATE_REMOVAL.observe(time.monotonic() - asked_at)
        return events

    @_do.register
    async def _fence(self, action: FencePod) -> list[Event]:
        operations = fence_patch(action.pod, action.token)
        return await self._patch_pod(action.gang, action.pod, "fence", operations)

    async def _patch_pod(
        self, gang: GangKey, pod: Pod, what: str, operations: list[Operation]
    ) -> list[Event]:
        meta, sent = pod.metadata, time.monotonic()
        path = PODS.path(meta.namespace, meta.name)
        try:
            patched = await self._client.json_patch(path, operations, as_=Pod)
        except KubeError as error:
            self._failed(f"pod_{what}", error)
            return await self._after_failed_patch(gang, pod, what, error)
        of_ray = patched.metadata.labels.get(RAY_NODE_TYPE) in RAY_NODE_TYPES
        self._suspicion.wrote("raypods" if of_ray else "wrappedpods", sent)
        WRITES.labels(f"pod_{what}", "done").inc()
        log.debug("pod patched", gang=str(gang), pod=meta.name, what=what)
        return [PodSeen(self._reduce(patched), Teller.ANSWER), PodPatchEnded(gang, meta.uid, None)]

    async def _after_failed_patch(
        self, gang: GangKey, pod: Pod, what: str, error: KubeError
    ) -> list[Event]:
        meta = pod.metadata
        if not is_of_what_goes(error):
            log.info("pod patch failed", gang=str(gang), pod=meta.name, what=what, error=str(error))
        try:
            now = await self._client.get(PODS.path(meta.namespace, meta.name), as_=Pod)
        except NotFound:
            return [
                PodGone(meta.namespace, meta.name, meta.uid, Teller.ANSWER),
                PodPatchEnded(gang, meta.uid, str(error), unknown=error.outcome_unknown),
            ]
        except KubeError:
            unknown = error.outcome_unknown
            return [PodPatchEnded(gang, meta.uid, str(error), unknown=unknown)]
        # The very object that we tested is still there: it was the change that was refused.
        unchanged = now.metadata.resource_version == meta.resource_version
        refused = _is_refusal(error) and unchanged
        return [
            PodSeen(self._reduce(now), Teller.ANSWER),
            PodPatchEnded(gang, meta.uid, str(error), refused, error.outcome_unknown),
        ]

    @_do.register
    async def _nominate(self, action: NominatePod) -> list[Event]:
        meta = action.pod.metadata
        path = PODS.path(meta.namespace, meta.name, "status")
        operations = nomination_patch(action.pod, action.node, action.scheduler)
        try:
            patched = await self._client.json_patch(path, operations, as_=Pod)
        except KubeError as error:
            self._failed("pod_nomination", error)
            self._not_nominated(action, error)
            return [NominationEnded(action.gang, meta.uid, forbidden=is_of_role(error))]
        WRITES.labels("pod_nomination", "done").inc()
        self._note_right(error=None)
        return [
            PodSeen(self._reduce(patched), Teller.ANSWER),
            NominationEnded(action.gang, meta.uid),
        ]

    def _not_nominated(self, action: NominatePod, error: KubeError) -> None:
        name = action.pod.metadata.name
        if is_of_role(error):
            self._note_right(error)
        elif not is_of_what_goes(error):
            log.info("pod not nominated", gang=str(action.gang), pod=name, error=str(error))

    def _note_right(self, error: KubeError | None) -> None:
        """Say once that no pod can be nominated, and what helps; note when that is over."""
        if error is not None and not self._forbidden:
            log.warning(
                "nominations may not be written", error=str(error), remedy=_NO_RIGHT_TO_NOMINATE
            )
        self._forbidden = error is not None
        NOMINATIONS_FORBIDDEN.set(self._forbidden)

    @_do.register
    async def _delete_pod(self, action: DeletePod) -> list[Event]:
        path, version = PODS.path(action.namespace, action.name), action.resource_version
        try:
            if action.of_job:
                version = await self._stopper.take_from_job(
                    action.namespace, action.name, action.uid, version
                )
            await self._client.delete(path, uid=action.uid, resource_version=version)
        except NotFound:
            WRITES.labels("pod_delete", "gone").inc()
            gone = PodGone(action.namespace, action.name, action.uid, Teller.ANSWER)
            return [gone, PodPatchEnded(action.gang, action.uid, None)]
        except KubeError as error:
            self._failed("pod_delete", error)
            return [PodPatchEnded(action.gang, action.uid, str(error))]
        WRITES.labels("pod_delete", "done").inc()
        return [PodPatchEnded(action.gang, action.uid, None)]

    @_do.register
    async def _try_eviction(self, action: TryEviction) -> list[Event]:
        request = self._stopper.try_to_evict(action.namespace, action.name, action.uid)
        return [await self._tried(action.gang, action.uid, request)]

    @_do.register
    async def _try_suspension(self, action: TrySuspension) -> list[Event]:
        request = self._stopper.try_to_suspend(action.job, action.suspended_for)
        return [await self._tried(action.gang, action.job.metadata.uid, request)]

    async def _tried(self, gang: GangKey, uid: str, dry_run: Awaitable[None]) -> EvictionTried:
        """Return what the API server said to a dry run; what is gone is in no way."""
        try:
            await dry_run
        except NotFound:
            return EvictionTried(gang, uid, None)
        except KubeError as error:
            EVICTIONS.labels("would_be_refused").inc()
            return EvictionTried(gang, uid, str(error), is_of_budget(error))
        EVICTIONS.labels("would_be_accepted").inc()
        return EvictionTried(gang, uid, None)

    @_do.register
    async def _read_budgets(self, action: ReadBudgets) -> list[Event]:
        found: list[Budget] = []
        try:
            async for page in self._client.list(BUDGETS.path(action.namespace)):
                found += map(budget_of, decode(page, BudgetList).items)
        except KubeError as error:
            return [BudgetsRead(action.gang, action.namespace, (), str(error))]
        return [BudgetsRead(action.gang, action.namespace, tuple(found))]

    @_do.register
    async def _evict(self, action: EvictPod) -> list[Event]:
        try:
            await self._stopper.evict(action.namespace, action.name, action.uid)
        except NotFound:
            EVICTIONS.labels("gone").inc()
            gone = PodGone(action.namespace, action.name, action.uid, Teller.ANSWER)
            return [gone, PodPatchEnded(action.gang, action.uid, None)]
        except KubeError as error:
            EVICTIONS.labels("refused" if isinstance(error, ApiError) else "error").inc()
            self._in_doubt |= error.outcome_unknown
            refused, unknown = isinstance(error, ApiError), error.outcome_unknown
            return [PodPatchEnded(action.gang, action.uid, str(error), refused, unknown)]
        EVICTIONS.labels("accepted").inc()
        return [PodPatchEnded(action.gang, action.uid, None)]

    @_do.register
    async def _suspend(self, action: SuspendRayJob) -> list[Event]:
        request = self._stopper.suspend(action.job, action.suspended_for)
        return await self._write_ray_job(action.gang, action.job, "rayjob_suspend", request)

    @_do.register
    async def _resume(self, action: ResumeRayJob) -> list[Event]:
        request = self._stopper.resume(action.job)
        return await self._write_ray_job(action.gang, action.job, "rayjob_resume", request)

    async def _write_ray_job(
        self, gang: GangKey, job: RayJob, what: str, request: Awaitable[RayJob]
    ) -> list[Event]:
        """Patch a RayJob; what became of it is told by its watch alone."""
        uid = job.metadata.uid
        try:
            await request
        except KubeError as error:
            self._failed(what, error)
            if not is_of_what_goes(error):
                log.info("RayJob write failed", gang=str(gang), what=what, error=str(error))
            unknown = error.outcome_unknown
            return [RayJobWriteEnded(gang, uid, str(error), _is_refusal(error), unknown)]
        WRITES.labels(what, "done").inc()
        return [RayJobWriteEnded(gang, uid, None)]

    @_do.register
    async def _resume_cluster(self, action: ResumeRayCluster) -> list[Event]:
        request = self._stopper.resume_cluster(action.cluster)
        return await self._write_ray_cluster(
            action.gang, action.cluster, "raycluster_resume", request
        )

    @_do.register
    async def _suspend_cluster(self, action: SuspendRayCluster) -> list[Event]:
        request = self._stopper.suspend_cluster(action.cluster)
        return await self._write_ray_cluster(
            action.gang, action.cluster, "raycluster_suspend", request
        )

    @_do.register
    async def _wake(self, action: WakeKubeRay) -> list[Event]:
        """Change an annotation; where that fails KubeRay looks by itself, some minutes later."""
        try:
            await self._stopper.wake(action.cluster, action.at)
        except KubeError as error:
            self._failed("raycluster_wake", error)
            return []
        WRITES.labels("raycluster_wake", "done").inc()
        return []

    async def _write_ray_cluster(
        self, gang: GangKey, cluster: RayCluster, what: str, request: Awaitable[None]
    ) -> list[Event]:
        """Patch a RayCluster; what became of it is told by its watch alone."""
        uid = cluster.metadata.uid
        try:
            await request
        except KubeError as error:
            self._failed(what, error)
            if not is_of_what_goes(error):
                log.info("RayCluster write failed", gang=str(gang), what=what, error=str(error))
            return [RayClusterWriteEnded(gang, uid, str(error), _is_refusal(error))]
        WRITES.labels(what, "done").inc()
        return [RayClusterWriteEnded(gang, uid, None)]

    @_do.register
    async def _ask_for_nodes(self, action: AskForNodes) -> list[Event]:
        try:
            request = await self._node_asker.ask(action)
        except KubeError as error:
            return self._node_request_failed("node_request_create", action.gang, action.name, error)
        WRITES.labels("node_request_create", "done").inc()
        ended = NodeRequestWriteEnded(action.gang, action.name, None)
        return [*([NodeRequestSeen(request)] if request is not None else []), ended]

    @_do.register
    async def _drop_node_request(self, action: DropNodeRequest) -> list[Event]:
        name = action.request.name
        try:
            await self._node_asker.drop(action.request)
        except KubeError as error:
            return self._node_request_failed("node_request_delete", action.gang, name, error)
        WRITES.labels("node_request_delete", "done").inc()
        gone = NodeRequestGone(action.request)
        return [gone, NodeRequestWriteEnded(action.gang, name, None)]

    def _node_request_failed(
        self, what: str, gang: GangKey, name: str, error: KubeError
    ) -> list[Event]:
        self._failed(what, error)
        log.info("node request failed", gang=str(gang), what=what, error=str(error))
        return [NodeRequestWriteEnded(gang, name, str(error))]

    @_do.register
    async def _write_queue_status(self, action: WriteQueueStatus) -> list[Event]:
        path = GANG_QUEUES.path(None, action.name, "status")
        operations = [*_unchanged(action), *fields_patch("status", action.status, action.before)]
        return await self._write_queue(action.name, "queue_status", path, operations)

    @_do.register
    async def _write_queue_finalizers(self, action: WriteQueueFinalizers) -> list[Event]:
        change: Operation = {
            "op": "add",
            "path": "/metadata/finalizers",
            "value": list(action.finalizers),
        }
        path = GANG_QUEUES.path(None, action.name)
        operations = [*_unchanged(action), change]
        return await self._write_queue(action.name, "queue_finalizers", path, operations)

    async def _write_queue(
        self, name: str, what: str, path: str, operations: list[Operation]
    ) -> list[Event]:
        """Patch a GangQueue; what became of it is told by its watch alone."""
        try:
            await self._client.json_patch(path, operations, as_=GangQueue)
        except KubeError as error:
            self._failed(what, error)
            if not is_of_what_goes(error):
                log.info("queue write failed", queue=name, what=what, error=str(error))
            outdated = isinstance(error, Invalid | Conflict | NotFound)
            return [QueueWriteEnded(name, str(error), outdated)]
        WRITES.labels(what, "done").inc()
        return [QueueWriteEnded(name, None)]

    @_do.register
    async def _emit(self, action: EmitEvent) -> list[Event]:
        try:
            await self._recorder.write(action)
        except KubeError as error:
            self._failed("event", error)
            EVENTS_DROPPED.inc()
            if not is_of_what_goes(error):
                log.info("event not written", gang=str(action.key), error=str(error))
            return []
        WRITES.labels("event", "done").inc()
        return []


def _unchanged(
    action: PatchGangSpec | WriteGangStatus | WriteQueueStatus | WriteQueueFinalizers,
) -> list[Operation]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": action.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": action.resource_version},
    ]


def _is_refusal(error: KubeError) -> bool:
    """Say whether the API server judged a change; a webhook that gives no code says 400."""
    return isinstance(error, ApiError) and error.status in (400, 403, 422)


def _was_patched(events: Iterable[Event]) -> bool:
    """Whether the patch of a pod, which ended in these events, was accepted."""
    return any(isinstance(each, PodPatchEnded) and each.error is None for each in events)


def _outcome(error: KubeError) -> str:
    if is_of_what_goes(error):
        return "gone"
    match error:
        case Invalid() | Conflict():
            return "conflict"
        case _:
            return "unknown" if error.outcome_unknown else "error"
