"""How do the parts of the coordinator hang together, from start to stop?

Reflectors feed the loop from the start, in every replica. A replica that is synced contends for
the Lease; while it leads, an executor carries out what the state machine asks for.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import structlog

from coordinator import events as happened
from coordinator import metrics
from coordinator.events import Event
from coordinator.executor import Executor
from coordinator.loop import Loop
from coordinator.moment import Patience
from coordinator.settings import Settings
from coordinator.state import CoordinatorState
from kube.client import Client
from kube.errors import Timeout
from kube.leader import Election, Term, Timing
from kube.names import LEASE_NAME, RAY_NODE_TYPE, RAY_NODE_TYPES
from kube.objects import Gang, Namespace, Node, Pod, PriorityClass, RayCluster
from kube.observed import ObservedPod, observe
from kube.resources import GANGS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, RAY_CLUSTERS
from kube.watch import (
    Changed,
    Deleted,
    Reflector,
    Selection,
    Sink,
    Watched,
    WatchEvent,
    settle_heap,
)
from scheduling.model import GangKey

log = structlog.get_logger()

T = TypeVar("T", bound=Watched)

REFRESH_TIMEOUT = 30.0  # seconds for the consistent lists at the start of a term
RAY_PODS = f"{RAY_NODE_TYPE} in ({','.join(RAY_NODE_TYPES)})"
OTHER_PODS = f"{RAY_NODE_TYPE} notin ({','.join(RAY_NODE_TYPES)})"
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


class Coordinator:
    """One replica."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings = settings
        self._client = client
        patience = Patience(bind=settings.bind_patience, torn=settings.torn_patience)
        self.loop = Loop(CoordinatorState(patience=patience), settings.debounce)
        feed = self.loop.feed
        self._gangs = Reflector(client, GANGS, Gang, _sink(feed, _gang_event))
        self._ray_pods = Reflector(
            client,
            PODS,
            Pod,
            _sink(feed, _pod_event),
            project=observe,
            selection=Selection(label_selector=RAY_PODS),
        )
        self.reflectors: dict[str, Reflector[Any]] = {
            "gangs": self._gangs,
            "raypods": self._ray_pods,
            # Ended pods hold nothing: they never travel.
            "pods": Reflector(
                client,
                PODS,
                Pod,
                _sink(feed, _pod_event),
                project=observe,
                selection=Selection(label_selector=OTHER_PODS, field_selector=NOT_ENDED),
            ),
            "nodes": Reflector(client, NODES, Node, _sink(feed, _node_event)),
            "rayclusters": Reflector(client, RAY_CLUSTERS, RayCluster, _sink(feed, _cluster_event)),
            "namespaces": Reflector(client, NAMESPACES, Namespace, _sink(feed, _namespace_event)),
            "priorityclasses": Reflector(
                client, PRIORITY_CLASSES, PriorityClass, _sink(feed, _priority_event)
            ),
        }

    @property
    def synced(self) -> bool:
        """Whether every watch has its first list."""
        return all(reflector.synced for reflector in self.reflectors.values())

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            for reflector in self.reflectors.values():
                tasks.create_task(reflector.run())
            tasks.create_task(self._contend())

    async def _contend(self) -> None:
        for reflector in self.reflectors.values():
            await reflector.wait_synced()
        settle_heap()
        log.info("synced", pods=len(self.loop.state.cache.pods))
        settings = self._settings
        timing = Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)
        election = Election(
            self._client,
            settings.namespace,
            LEASE_NAME,
            settings.identity,
            timing=timing,
            floor=self._highest_epoch,
        )
        await election.run(self._lead)

    def _highest_epoch(self) -> int:
        gangs = self.loop.state.cache.gangs.values()
        return max((gang.status.epoch or 0 for gang in gangs), default=0)

    async def _lead(self, term: Term) -> None:
        """Lead: first see all that an earlier leader may have written, then act."""
        try:
            await asyncio.gather(
                self._gangs.refresh(REFRESH_TIMEOUT), self._ray_pods.refresh(REFRESH_TIMEOUT)
            )
        except Timeout as error:
            log.warning("term given up: cannot see what was written before", error=str(error))
            return
        await self._act(term)

    async def _act(self, term: Term) -> None:
        """Carry out what the state machine asks for, until cancelled."""
        settings = self._settings
        executor = Executor(
            self._client,
            term,
            self.loop.feed,
            identity=settings.identity,
            concurrency=settings.concurrency,
        )
        self.loop.appoint(term.epoch, executor.submit)
        metrics.LEADER.set(1)
        metrics.EPOCH.set(term.epoch)
        try:
            await asyncio.Event().wait()
        finally:
            metrics.LEADER.set(0)
            self.loop.dismiss()
            await executor.close()


def _sink(
    feed: Callable[[Iterable[Event]], None], translate: Callable[[WatchEvent[T]], Event | None]
) -> Sink[T]:
    def sink(batch: list[WatchEvent[T]]) -> None:
        feed([event for told in batch if (event := translate(told)) is not None])

    return sink


def _pod_event(told: WatchEvent[ObservedPod]) -> Event | None:
    match told:
        case Changed(obj=pod):
            return happened.PodSeen(pod)
        case Deleted(obj=pod):
            return happened.PodGone(pod.namespace, pod.name, pod.uid)
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
