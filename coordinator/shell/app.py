"""Puts the parts of the coordinator together, from start to stop.

Reflectors feed the loop from the start, in every replica. A replica that is synced contends for
the Lease; while it leads, an executor carries out what the state machine asks for.
"""

import asyncio
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

import structlog

from appwrapper.gang.dispatched import SendingReading
from appwrapper.gang.offered import readers_of_offers
from appwrapper.gang.watched import AppWrapperReading
from coordinator import metrics
from coordinator.gang.nominations import Guard
from coordinator.gang.priority import AllowedClasses
from coordinator.messages import events as happened
from coordinator.messages.clock import Patience
from coordinator.messages.events import Teller
from coordinator.replay.recorder import Recorder
from coordinator.settings import Settings
from coordinator.shell import scheduler_lease, sinks
from coordinator.shell.definitions import Definitions
from coordinator.shell.loop import Loop
from coordinator.shell.suspicion import Suspicion
from coordinator.shell.writes.executor import Executor
from coordinator.state_settings import StateSettings
from kube.api.client import Client
from kube.api.leader_election import Term
from kube.api.leading import election, lead_on_fresh_lists, wait_synced
from kube.api.resources import (
    APP_WRAPPERS,
    DEVICE_CLASSES,
    GANG_OFFERS,
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
    Resource,
)
from kube.api.watch.events import feeding
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.codec.node import whole_node
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.profiles.written_profiles import profiles_of
from kube.codec.volumes.storage import WATCHES, ObservedFact
from kube.device_watches import DeviceWatches
from kube.gang.dispatched import (
    RayOwnerObject,
    as_watched,
    job_as_watched,
    service_as_watched,
)
from kube.gang.offer import as_listed
from kube.objects.admission import AdmissionRule, LimitRange, ResourceQuota, RuntimeClass
from kube.objects.app_wrapper import AppWrapper
from kube.objects.clusters.gang_offer import GangOffer
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
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster, RayJob, RayService
from kube.ray.ray_cluster import essential
from kube.ray.ray_owner import essential_job, essential_service
from kube.ray.wrapped_by import unwrapped, wrapped_by
from runtime.slicing import settle_heap
from scheduling.diagnosis.holes import GpuPools
from scheduling.model.gang import GangKey

log = structlog.get_logger()

TRUSTED_SILENCE = 1.0  # seconds: a watch that has just told something is connected
LAST_ANSWERS = 2.0  # seconds at the end of a term for what was sent; all of it may be answered
SERVER_DEADLINE = 60.0  # seconds: the API server's --request-timeout by default
ARRIVAL_MARGIN = 30.0
ADMISSION_RULES: dict[type[AdmissionRule], Resource] = {
    LimitRange: LIMIT_RANGES,
    ResourceQuota: RESOURCE_QUOTAS,
    RuntimeClass: RUNTIME_CLASSES,
}
LENIENT: dict[str, Any] = {"selection": Selection(may_be_absent=True)}
"""How to watch what an API server need not serve."""

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
        gates_off=settings.feature_gates_off,
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
        self.loop = Loop(of_state.build(), settings.debounce, recorder, self._note_claiming)
        feed = self.loop.feed
        self._gangs = self._watch("gangs", GANGS, Gang, sinks.gang_event)
        event = partial(sinks.pod_event, teller=Teller.RAY_POD_WATCH)
        ray_pods = Selection(label_selector=RAY_PODS, bare=BarePod)
        self._ray_pods = self._pods("raypods", event, ray_pods)
        selector = UNWRAPPED_PODS if settings.app_wrappers else OTHER_PODS
        # Ended pods hold nothing: they never travel.
        others = Selection(label_selector=selector, field_selector=NOT_ENDED, bare=BarePod)
        self.reflectors: dict[str, Reflector[Any]] = {
            "gangs": self._gangs,
            "raypods": self._ray_pods,
            "pods": self._pods("pods", sinks.pod_event, others),
            **self._surroundings(),
            **(self._app_wrappers() if settings.app_wrappers else {}),
            **(self._offers() if settings.gang_offers else {}),
        }
        # Without these only held gangs wait, and what is out of date does no harm.
        self.admission: dict[str, Reflector[Any]] = {
            resource.plural: Reflector(client, resource, kind, sinks.admission_sink(feed, kind))
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
                sinks.fact_sink(feed, watch.fact),
                project=watch.observe,
                **LENIENT,
            )
            for watch in WATCHES
        }

        # Without these only gangs with claims of devices wait; most clusters have none.
        self.devices = DeviceWatches(
            client,
            partial(sinks.device_sink, feed),
            lambda api: feed([happened.DeviceApiSeen(*api)]),
        )
        self._suspicion = Suspicion({**self.watches, **self.devices.all})

    def _watch(
        self,
        watch: str,
        resource: Resource,
        kind: type[Any],
        event: sinks.Translate[Any],
        **how: Any,
    ) -> Reflector[Any]:
        """Make a watch that every gang needs."""
        sink = sinks.watch_sink(self.loop.feed, watch, event)
        return Reflector(self._client, resource, kind, sink, **how)

    def _pods(
        self, watch: str, event: sinks.Translate[ObservedPod], selection: Selection
    ) -> Reflector[ObservedPod]:
        return self._watch(watch, PODS, Pod, event, project=self._reduce, selection=selection)

    def _surroundings(self) -> dict[str, Reflector[Any]]:
        """The watches of what is neither a gang nor a pod, and that every gang needs."""
        nodes = {"project": whole_node, "selection": Selection(bare=BareNode)}
        cluster_event = partial(sinks.ray_cluster_event, wrapper_of=self._wrapper_of)
        sends = self._settings.dispatch
        clusters = {"project": as_watched if sends else essential}
        jobs = {"project": job_as_watched if sends else essential_job, **LENIENT}
        services = {"project": service_as_watched if sends else essential_service, **LENIENT}
        device_classes = {"project": self._noted_class, **LENIENT}
        found: list[tuple[Resource, type[Any], sinks.Translate[Any], dict[str, Any]]] = [
            (NODES, Node, sinks.node_event, nodes),
            (RAY_CLUSTERS, RayCluster, cluster_event, clusters),
            (NAMESPACES, Namespace, sinks.namespace_event, {}),
            (PRIORITY_CLASSES, PriorityClass, sinks.priority_event, {}),
            (GANG_QUEUES, GangQueue, sinks.queue_event, {}),
            (DEVICE_CLASSES, DeviceClass, sinks.device_class_event, device_classes),
            (RAY_JOBS, RayOwnerObject if sends else RayJob, sinks.ray_owner_event, jobs),
            (
                RAY_SERVICES,
                RayOwnerObject if sends else RayService,
                sinks.ray_owner_event,
                services,
            ),
        ]
        return {
            resource.plural: self._watch(resource.plural, resource, kind, event, **how)
            for resource, kind, event, how in found
        }

    def _app_wrappers(self) -> dict[str, Reflector[Any]]:
        """The watches of AppWrappers, as what stands in for a RayCluster, and of their pods.

        Pods that ended tell how many of a Job are still to come.
        """
        event = partial(sinks.pod_event, teller=Teller.WRAPPED_POD_WATCH)
        pods = Selection(label_selector=WRAPPED_PODS, bare=BarePod)
        return {
            "appwrappers": self._wrappers("appwrappers", APP_WRAPPERS),
            "mcadappwrappers": self._wrappers("mcadappwrappers", MCAD_APP_WRAPPERS),
            "wrappedpods": self._pods("wrappedpods", event, pods),
        }

    def _wrappers(self, watch: str, resource: Resource) -> Reflector[Any]:
        event = sinks.app_wrapper_event
        project = SendingReading() if self._settings.dispatch else AppWrapperReading()
        return self._watch(watch, resource, AppWrapper, event, project=project, **LENIENT)

    def _offers(self) -> dict[str, Reflector[Any]]:
        """Watch what other clusters ask about."""
        watch, event = GANG_OFFERS.plural, sinks.offer_event
        readers = readers_of_offers() if self._settings.app_wrappers else {}
        how = {"project": partial(as_listed, readers=readers), **LENIENT}
        return {watch: self._watch(watch, GANG_OFFERS, GangOffer, event, **how)}

    def _node_requests(self) -> dict[str, Reflector[Any]]:
        """Watch what was asked of an autoscaler, which need not be there."""
        selection = Selection(label_selector=NODES_FOR, may_be_absent=True)
        sink = feeding(self.loop.feed, sinks.node_request_event)
        kind, resource = ProvisioningRequest, PROVISIONING_REQUESTS
        return {resource.plural: Reflector(self._client, resource, kind, sink, selection=selection)}

    def _reduce(self, pod: Pod | BarePod) -> ObservedPod:
        """Reduce a pod, once in each version: the watch repeats what an answer to us has told."""
        meta = pod.metadata
        version = meta.uid, meta.resource_version
        known = self.loop.state.known.cache.pods.get((meta.namespace, meta.name))
        if known is not None and (known.uid, known.resource_version) == version:
            return known
        found = observe(pod, self._profiles, self._wrapper_of)
        self.devices.note(found)
        return found

    def _note_claiming(self, gang: GangKey) -> None:
        self.devices.note_gang(gang)

    def _noted_class(self, found: DeviceClass) -> DeviceClass:
        self.devices.note_class(found)
        return found

    @property
    def watches(self) -> dict[str, Reflector[Any]]:
        """All watches that run, by resource."""
        usual = {**self.reflectors, **self.storage, **self.admission, **self.provisioning}
        return {**usual, **self.devices.started}

    @property
    def synced(self) -> bool:
        """Whether every watch that all gangs need has its first list."""
        return all(reflector.synced for reflector in self.reflectors.values())

    @property
    def tells_each_scheduler(self) -> bool:
        """Whether each kube-scheduler that starts is told of all nominations."""
        settings = self._settings
        return settings.guard is Guard.NOMINATION and settings.scheduler_forgets

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            for reflector in self.watches.values():
                tasks.create_task(reflector.run())
            tasks.create_task(self.devices.run())
            tasks.create_task(self._suspicion.run())
            tasks.create_task(self._contend())
            if self.tells_each_scheduler:
                tasks.create_task(scheduler_lease.follow(self._client, self.loop.feed))

    async def _contend(self) -> None:
        await wait_synced(self.reflectors.values())
        settle_heap()
        log.info("synced", pods=len(self.loop.state.known.cache.pods))
        settings, floor = self._settings, self._highest_epoch

        def contend() -> Coroutine[Any, Any, None]:
            by = election(self._client, settings.namespace, LEASE_NAME, settings, floor)
            return by.run(self._lead)

        await self.definitions.run_while_whole(contend)

    def _highest_epoch(self) -> int:
        gangs = self.loop.state.known.cache.gangs.values()
        return max((gang.status.epoch or 0 for gang in gangs), default=0)

    async def _lead(self, term: Term) -> None:
        await lead_on_fresh_lists(self._doubtful(), self._act, term)

    def _doubtful(self) -> list[Reflector[Any]]:
        """The watches that must be listed anew before the first decision of a term.

        Those of what an earlier leader wrote, always. Of the rest those that were silent of late:
        a term often begins where an outage ended, which may have left connections that are dead
        without a word, and a decision on what they told last would be one on stale data.
        """
        since = time.monotonic() - TRUSTED_SILENCE
        written = (self._gangs, self._ray_pods, self.reflectors.get("wrappedpods"))
        lenient = (*self.storage.values(), *self.devices.started.values())
        seeing = (each for each in lenient if each.synced and not each.blind)
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
            self.loop.dismiss(happened.TermEnded())
            term.answered = await executor.close(min(LAST_ANSWERS, term.remaining())) and fenced
