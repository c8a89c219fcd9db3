"""Puts the parts of the coordinator together, from start to stop.

Reflectors feed the loop from the start, in every replica. A replica that is synced contends for
the Lease; while it leads, an executor carries out what the state machine asks for.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, assert_never

import structlog

from appwrapper.gang.stand_in import StandIn
from appwrapper.gang.watched import AppWrapperReading, as_gang
from coordinator import metrics
from coordinator.gang.nominations import Guard
from coordinator.gang.priority import AllowedClasses
from coordinator.messages import events as happened
from coordinator.messages.clock import Patience
from coordinator.messages.events import Event, Teller
from coordinator.replay.recorder import Recorder
from coordinator.settings import Settings
from coordinator.shell import scheduler_lease
from coordinator.shell.definitions import Definitions
from coordinator.shell.executor import Executor
from coordinator.shell.loop import Loop
from coordinator.shell.suspicion import Suspicion
from coordinator.state_settings import StateSettings
from kube.api.client import Client, Resource
from kube.api.errors import Timeout
from kube.api.leader_election import Election, Term, Timing
from kube.api.reflector import Reflector, Selection
from kube.api.resources import (
    APP_WRAPPERS,
    DEVICE_CLASSES,
    GANG_QUEUES,
    GANGS,
    LIMIT_RANGES,
    MCAD_APP_WRAPPERS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
)
from kube.api.watch_events import (
    Blind,
    Changed,
    Deleted,
    Sighted,
    Sink,
    Synced,
    Unreadable,
    Watched,
    WatchEvent,
)
from kube.codec.node import whole_node
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.provisioning import node_request_of
from kube.codec.storage import WATCHES, ObservedFact
from kube.codec.written_profiles import profiles_of
from kube.objects.admission import AdmissionRule, LimitRange, ResourceQuota, RuntimeClass
from kube.objects.app_wrapper import AppWrapper
from kube.objects.core import BareNode, BarePod, DeviceClass, Namespace, Node, Pod, PriorityClass
from kube.objects.gang import Gang
from kube.objects.names import (
    APP_WRAPPER,
    LEASE_NAME,
    NODES_FOR,
    RAY_NODE_TYPE,
    RAY_NODE_TYPES,
)
from kube.objects.provisioning import ProvisioningRequest
from kube.objects.queue import GangQueue
from kube.objects.ray import RayCluster, RayJob, RayService
from kube.ray.ray_cluster import essential
from kube.ray.ray_owner import essential_job, essential_service
from kube.ray.wrapped_by import WrapperOf, is_made_for_wrapper, unwrapped, wrapped_by
from runtime.slicing import settle_heap
from scheduling.diagnosis.holes import GpuPools
from scheduling.model.gang import GangKey
from scheduling.model.holder import is_wrapper_gang
from scheduling.model.volume import Fact

log = structlog.get_logger()

T = TypeVar("T", bound=Watched)

TRUSTED_SILENCE = 1.0  # seconds: a watch that has just told something is connected
LAST_ANSWERS = 2.0  # seconds at the end of a term for what was sent; all of it may be answered
SERVER_DEADLINE = 60.0  # seconds: the API server's --request-timeout by default
ARRIVAL_MARGIN = 30.0
REFRESH_TIMEOUT = 30.0  # seconds for the consistent lists at the start of a term
ADMISSION_RULES: dict[type[AdmissionRule], Resource] = {
    LimitRange: LIMIT_RANGES,
    ResourceQuota: RESOURCE_QUOTAS,
    RuntimeClass: RUNTIME_CLASSES,
}
RAY_PODS = f"{RAY_NODE_TYPE} in ({','.join(RAY_NODE_TYPES)})"
OTHER_PODS = f"{RAY_NODE_TYPE} notin ({','.join(RAY_NODE_TYPES)})"
WRAPPED_PODS = f"{OTHER_PODS},{APP_WRAPPER}"
UNWRAPPED_PODS = f"{OTHER_PODS},!{APP_WRAPPER}"
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


def state_settings(settings: Settings) -> StateSettings:
    """Return what the state machine is built with."""
    return StateSettings(
        patience=Patience(
            bind=settings.bind_patience,
            torn=settings.torn_patience,
            slot=settings.slot_patience,
            arrival=SERVER_DEADLINE + settings.request_timeout + ARRIVAL_MARGIN,
            setback=2 * settings.torn_patience,
            refusal=settings.refusal_memory,
        ),
        allowed=AllowedClasses(settings.priority_classes, settings.app_wrapper_priorities),
        home=settings.namespace,
        waiting_per_namespace=settings.waiting_per_namespace,
        profiles=profiles_of(settings.profiles),
        guard=settings.guard,
        gpu_pools=GpuPools(settings.gpu_resources, settings.pool_labels),
        may_ask_for_nodes=settings.provisioning,
    )


class Coordinator:
    """One replica; where there is a recorder it is told of each step of the state machine."""

    def __init__(
        self, settings: Settings, client: Client, recorder: Recorder | None = None
    ) -> None:
        self._settings = settings
        self._client = client
        of_state = state_settings(settings)
        self._profiles = of_state.profiles
        self._wrapper_of = wrapped_by if settings.app_wrappers else unwrapped
        self.definitions = Definitions(client)
        self.loop = Loop(of_state.build(), settings.debounce, recorder)
        feed = self.loop.feed
        self._gangs = Reflector(client, GANGS, Gang, _sink(feed, "gangs", _gang_event))
        event = partial(_pod_event, teller=Teller.RAY_POD_WATCH)
        self._ray_pods = self._pods(
            "raypods", event, Selection(label_selector=RAY_PODS, bare=BarePod)
        )
        selector = UNWRAPPED_PODS if settings.app_wrappers else OTHER_PODS
        # Ended pods hold nothing: they never travel.
        others = Selection(label_selector=selector, field_selector=NOT_ENDED, bare=BarePod)
        self.reflectors: dict[str, Reflector[Any]] = {
            "gangs": self._gangs,
            "raypods": self._ray_pods,
            "pods": self._pods("pods", _pod_event, others),
            **self._surroundings(),
            **self._ray_owners(),
            **(self._app_wrappers() if settings.app_wrappers else {}),
        }
        # Without these only held gangs wait, and what is out of date does no harm.
        self.admission: dict[str, Reflector[Any]] = {
            resource.plural: Reflector(client, resource, kind, _admission_sink(feed, kind))
            for kind, resource in ADMISSION_RULES.items()
        }
        # Without these nothing but requests for nodes stops.
        self.provisioning = self._node_requests() if settings.provisioning else {}
        # Without these only gangs that mount volumes wait, so nothing else waits for them.
        self.storage: dict[str, Reflector[ObservedFact]] = {
            watch.resource.plural: Reflector(
                client,
                watch.resource,
                watch.kind,
                _fact_sink(feed, watch.fact),
                project=watch.observe,
                selection=Selection(may_be_absent=True),
            )
            for watch in WATCHES
        }

        self._suspicion = Suspicion(self.watches)

    def _pods(
        self,
        watch: str,
        event: Callable[[WatchEvent[ObservedPod]], Event | None],
        selection: Selection,
    ) -> Reflector[ObservedPod]:
        sink = _sink(self.loop.feed, watch, event)
        return Reflector(self._client, PODS, Pod, sink, project=self._reduce, selection=selection)

    def _surroundings(self) -> dict[str, Reflector[Any]]:
        """The watches of what is neither a gang nor a pod, and that every gang needs."""
        client, feed = self._client, self.loop.feed
        cluster_event = partial(_ray_cluster_event, wrapper_of=self._wrapper_of)
        return {
            "nodes": Reflector(
                client,
                NODES,
                Node,
                _sink(feed, "nodes", _node_event),
                project=whole_node,
                selection=Selection(bare=BareNode),
            ),
            "rayclusters": Reflector(
                client,
                RAY_CLUSTERS,
                RayCluster,
                _sink(feed, "rayclusters", cluster_event),
                project=essential,
            ),
            "namespaces": Reflector(
                client, NAMESPACES, Namespace, _sink(feed, "namespaces", _namespace_event)
            ),
            "priorityclasses": Reflector(
                client,
                PRIORITY_CLASSES,
                PriorityClass,
                _sink(feed, "priorityclasses", _priority_event),
            ),
            "gangqueues": Reflector(
                client, GANG_QUEUES, GangQueue, _sink(feed, "gangqueues", _queue_event)
            ),
            "deviceclasses": Reflector(
                client,
                DEVICE_CLASSES,
                DeviceClass,
                _sink(feed, "deviceclasses", _device_class_event),
                selection=Selection(may_be_absent=True),
            ),
        }

    def _ray_owners(self) -> dict[str, Reflector[Any]]:
        """The watches of what makes RayClusters; there is none where no such kind is served."""
        client, sink = self._client, partial(_sink, self.loop.feed)
        lenient = Selection(may_be_absent=True)
        return {
            "rayjobs": Reflector(
                client,
                RAY_JOBS,
                RayJob,
                sink("rayjobs", _ray_owner_event),
                project=essential_job,
                selection=lenient,
            ),
            "rayservices": Reflector(
                client,
                RAY_SERVICES,
                RayService,
                sink("rayservices", _ray_owner_event),
                project=essential_service,
                selection=lenient,
            ),
        }

    def _app_wrappers(self) -> dict[str, Reflector[Any]]:
        """The watches of AppWrappers, as what stands in for a RayCluster, and of their pods.

        Pods that ended tell how many of a Job are still to come.
        """
        event = partial(_pod_event, teller=Teller.WRAPPED_POD_WATCH)
        pods = Selection(label_selector=WRAPPED_PODS, bare=BarePod)
        return {
            "appwrappers": self._wrappers("appwrappers", APP_WRAPPERS),
            "mcadappwrappers": self._wrappers("mcadappwrappers", MCAD_APP_WRAPPERS),
            "wrappedpods": self._pods("wrappedpods", event, pods),
        }

    def _wrappers(self, watch: str, resource: Resource) -> Reflector[StandIn]:
        """Watch the AppWrappers of one API group, which need not be served."""
        return Reflector(
            self._client,
            resource,
            AppWrapper,
            _sink(self.loop.feed, watch, _app_wrapper_event),
            project=AppWrapperReading(),
            selection=Selection(may_be_absent=True),
        )

    def _node_requests(self) -> dict[str, Reflector[Any]]:
        """Watch what was asked of an autoscaler, which need not be there."""
        selection = Selection(label_selector=NODES_FOR, may_be_absent=True)
        sink = _node_request_sink(self.loop.feed)
        kind, resource = ProvisioningRequest, PROVISIONING_REQUESTS
        return {resource.plural: Reflector(self._client, resource, kind, sink, selection=selection)}

    def _reduce(self, pod: Pod | BarePod) -> ObservedPod:
        """Reduce a pod, once in each version: the watch repeats what an answer to us has told."""
        meta = pod.metadata
        version = meta.uid, meta.resource_version
        known = self.loop.state.cache.pods.get((meta.namespace, meta.name))
        if known is not None and (known.uid, known.resource_version) == version:
            return known
        return observe(pod, self._profiles, self._wrapper_of)

    @property
    def watches(self) -> dict[str, Reflector[Any]]:
        """All watches by resource."""
        return {**self.reflectors, **self.storage, **self.admission, **self.provisioning}

    @property
    def synced(self) -> bool:
        """Whether every watch that all gangs need has its first list."""
        return all(reflector.synced for reflector in self.reflectors.values())

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            for reflector in self.watches.values():
                tasks.create_task(reflector.run())
            tasks.create_task(self._suspicion.run())
            tasks.create_task(self._contend())
            if self._settings.guard is Guard.NOMINATION:
                tasks.create_task(scheduler_lease.follow(self._client, self.loop.feed))

    async def _contend(self) -> None:
        for reflector in self.reflectors.values():
            await reflector.wait_synced()
        settle_heap()
        log.info("synced", pods=len(self.loop.state.cache.pods))
        settings = self._settings
        timing = Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)

        def election() -> Election:
            return Election(
                self._client,
                settings.namespace,
                LEASE_NAME,
                settings.identity,
                timing=timing,
                floor=self._highest_epoch,
            )

        await self.definitions.run_while_whole(lambda: election().run(self._lead))

    def _highest_epoch(self) -> int:
        gangs = self.loop.state.cache.gangs.values()
        return max((gang.status.epoch or 0 for gang in gangs), default=0)

    async def _lead(self, term: Term) -> None:
        """Lead: first see all that an earlier leader may have written, then act."""
        try:
            await asyncio.gather(*(each.refresh(REFRESH_TIMEOUT) for each in self._doubtful()))
        except Timeout as error:
            log.warning("term given up: cannot see what was written before", error=str(error))
            return
        await self._act(term)

    def _doubtful(self) -> list[Reflector[Any]]:
        """The watches that must be listed anew before the first decision of a term.

        Those of what an earlier leader wrote, always. Of the rest those that were silent of late:
        a term often begins where an outage ended, which may have left connections that are dead
        without a word, and a decision on what they told last would be one on stale data.
        """
        since = time.monotonic() - TRUSTED_SILENCE
        written = (self._gangs, self._ray_pods, self.reflectors.get("wrappedpods"))
        seeing = (each for each in self.storage.values() if each.synced and not each.blind)
        return [
            each
            for each in (*self.reflectors.values(), *seeing)
            if each in written or (each.last_contact or 0.0) < since
        ]

    async def _act(self, term: Term) -> None:
        """Carry out what the state machine asks for, until cancelled."""
        settings = self._settings
        executor = Executor(
            self._client,
            term,
            self.loop.feed,
            identity=settings.identity,
            concurrency=settings.concurrency,
            reduce=self._reduce,
            suspicion=self._suspicion,
        )
        self.loop.appoint(happened.TermStarted(term.epoch, term.clean), executor.submit)
        metrics.LEADER.set(1)
        metrics.EPOCH.set(term.epoch)
        try:
            await executor.run()
        finally:
            metrics.LEADER.set(0)
            fenced = self.loop.state.has_fenced(term.epoch)
            self.loop.dismiss()
            term.answered = await executor.close(min(LAST_ANSWERS, term.remaining())) and fenced


def _sink(
    feed: Callable[[Iterable[Event]], None],
    watch: str,
    translate: Callable[[WatchEvent[T]], Event | None],
) -> Sink[T]:
    def event_of(told: WatchEvent[T]) -> Event | None:
        match told:
            case Blind():
                return happened.SightLost(watch)
            case Sighted():
                return happened.SightRegained(watch)
            case _:
                return translate(told)

    def sink(batch: list[WatchEvent[T]]) -> None:
        feed([event for told in batch if (event := event_of(told)) is not None])

    return sink


def _admission_sink(
    feed: Callable[[Iterable[Event]], None], kind: type[AdmissionRule]
) -> Sink[Any]:
    def sink(batch: list[WatchEvent[Any]]) -> None:
        events = (_admission_event(told, kind) for told in batch)
        feed([event for event in events if event is not None])

    return sink


def _admission_event(told: WatchEvent[Any], kind: type[AdmissionRule]) -> Event | None:
    match told:
        case Changed(obj=rule):
            return happened.AdmissionRuleSeen(rule)
        case Deleted(obj=rule):
            return happened.AdmissionRuleGone(rule)
        case Synced():
            return happened.AdmissionRulesListed(kind)
        case _:
            return None


def _node_request_sink(feed: Callable[[Iterable[Event]], None]) -> Sink[ProvisioningRequest]:
    def sink(batch: list[WatchEvent[ProvisioningRequest]]) -> None:
        feed([event for told in batch if (event := _node_request_event(told)) is not None])

    return sink


def _node_request_event(told: WatchEvent[ProvisioningRequest]) -> Event | None:
    match told:
        case Changed(obj=found) if (request := node_request_of(found)) is not None:
            return happened.NodeRequestSeen(request)
        case Deleted(obj=found) if (request := node_request_of(found)) is not None:
            return happened.NodeRequestGone(request)
        case Synced():
            return happened.NodeRequestsListed()
        case _:
            return None


def _fact_sink(feed: Callable[[Iterable[Event]], None], kind: type[Fact]) -> Sink[ObservedFact]:
    """One fact that cannot be read is as bad as a watch that is down, until a list has none.

    It may be a disk that would then not be counted.
    """
    unread = False

    def sink(batch: list[WatchEvent[ObservedFact]]) -> None:
        nonlocal unread
        is_list = any(isinstance(told, Synced) for told in batch)
        unread = any(isinstance(told, Unreadable) for told in batch) or (unread and not is_list)
        events = [_fact_event(told, kind) for told in batch]
        lost = happened.FactsLost(kind)
        feed([lost if unread and event == happened.FactsSeen(kind) else event for event in events])

    return sink


def _fact_event(told: WatchEvent[ObservedFact], kind: type[Fact]) -> Event:
    match told:
        case Changed(obj=seen):
            return happened.FactSeen(seen.fact)
        case Deleted(obj=seen):
            return happened.FactGone(seen.fact)
        case Synced() | Sighted():
            return happened.FactsSeen(kind)
        case Blind() | Unreadable():
            return happened.FactsLost(kind)
        case _:
            assert_never(told)


def _pod_event(told: WatchEvent[ObservedPod], teller: Teller = Teller.POD_WATCH) -> Event | None:
    match told:
        case Changed(obj=pod):
            return happened.PodSeen(pod, teller)
        case Deleted(obj=pod):
            return happened.PodGone(pod.namespace, pod.name, pod.uid, teller)
        case _:
            return None


def _node_event(told: WatchEvent[Node]) -> Event | None:
    match told:
        case Changed(obj=node):
            return happened.NodeSeen(node)
        case Deleted(obj=node):
            return happened.NodeGone(node.metadata.name)
        case _:
            return None


def _ray_cluster_event(
    told: WatchEvent[RayCluster], wrapper_of: WrapperOf = wrapped_by
) -> Event | None:
    """Take a RayCluster that is wrapped for none: its pods are of the gang of its AppWrapper."""
    match told:
        case Changed(obj=cluster) if is_made_for_wrapper(cluster.metadata, wrapper_of):
            return _cluster_event(Deleted(cluster))
        case Changed(obj=cluster) | Deleted(obj=cluster) if _is_named_as_wrapped(cluster):
            return None  # KubeRay makes no pods for a RayCluster of such a name
        case _:
            return _cluster_event(told)


def _is_named_as_wrapped(cluster: RayCluster) -> bool:
    return is_wrapper_gang(GangKey("", cluster.metadata.name))


def _app_wrapper_event(told: WatchEvent[StandIn]) -> Event | None:
    match told:
        case Changed(obj=kept):
            return _cluster_event(Changed(as_gang(kept)))
        case Deleted(obj=kept):
            return _cluster_event(Deleted(as_gang(kept)))
        case _:
            return None


def _cluster_event(told: WatchEvent[RayCluster]) -> Event | None:
    match told:
        case Changed(obj=cluster):
            return happened.ClusterSeen(cluster)
        case Deleted(obj=cluster):
            return happened.ClusterGone(
                GangKey(cluster.metadata.namespace, cluster.metadata.name), cluster.metadata.uid
            )
        case _:
            return None


def _ray_owner_event(told: WatchEvent[RayJob] | WatchEvent[RayService]) -> Event | None:
    match told:
        case Changed(obj=owner):
            return happened.RayOwnerSeen(owner)
        case Deleted(obj=owner):
            return happened.RayOwnerGone(owner.metadata.uid)
        case _:
            return None


def _gang_event(told: WatchEvent[Gang]) -> Event | None:
    match told:
        case Changed(obj=gang):
            return happened.GangSeen(gang)
        case Deleted(obj=gang):
            return happened.GangGone(
                GangKey(gang.metadata.namespace, gang.metadata.name), gang.metadata.uid
            )
        case _:
            return None


def _namespace_event(told: WatchEvent[Namespace]) -> Event | None:
    match told:
        case Changed(obj=namespace):
            return happened.NamespaceSeen(namespace)
        case Deleted(obj=namespace):
            return happened.NamespaceGone(namespace.metadata.name)
        case _:
            return None


def _priority_event(told: WatchEvent[PriorityClass]) -> Event | None:
    match told:
        case Changed(obj=priority_class):
            return happened.PriorityClassSeen(priority_class)
        case Deleted(obj=priority_class):
            return happened.PriorityClassGone(priority_class.metadata.name)
        case _:
            return None


def _queue_event(told: WatchEvent[GangQueue]) -> Event | None:
    match told:
        case Changed(obj=queue):
            return happened.QueueSeen(queue)
        case Deleted(obj=queue):
            return happened.QueueGone(queue.metadata.name)
        case _:
            return None


def _device_class_event(told: WatchEvent[DeviceClass]) -> Event | None:
    match told:
        case Changed(obj=device_class):
            return happened.DeviceClassSeen(device_class)
        case Deleted(obj=device_class):
            return happened.DeviceClassGone(device_class.metadata.name)
        case _:
            return None
