"""Feeds the ledger from watches of pods, nodes and Gangs, and says whether it can be trusted.

Devices by claim are watched from the first pod on that asks for some.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar, assert_never

from extender.devices.guard import DeviceGuard
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.snapshot import WatchedPod
from extender.unscheduled_pods import UnscheduledPods
from kube.api.client import Client
from kube.api.resources import GANGS, NODES, PODS
from kube.api.watch.events import (
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
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.codec.node import whole_node
from kube.device_watches import DeviceWatches
from kube.devices.device_facts import DeviceFact, DeviceWatch, ObservedDeviceFact
from kube.objects.core import BareNode, BarePod, Node, Pod
from kube.objects.gang import Gang
from kube.ray.wrapped_by import WrapperOf, wrapped_by

T = TypeVar("T", bound=Watched)

NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


class Watches:
    """The reflectors, and the ledger that they keep. `on_news` is called after each batch."""

    def __init__(
        self,
        client: Client,
        in_flight_pods: InFlightPods,
        unscheduled: UnscheduledPods,
        *,
        silence: float,
        wrapper_of: WrapperOf = wrapped_by,
        gates_off: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger = Ledger(wrapper_of, gates_off)
        self.on_news: Callable[[], None] = lambda: None
        self._in_flight_pods = in_flight_pods
        self._unscheduled = unscheduled
        self._silence = silence
        self._clock = clock
        self.reflectors: tuple[Reflector[Any], ...] = (
            # Ended pods hold nothing: they never travel.
            Reflector(
                client,
                PODS,
                Pod,
                self._sink(self._pod, self._pod_gone),
                project=self.ledger.reduce,
                selection=Selection(field_selector=NOT_ENDED, bare=BarePod),
            ),
            Reflector(
                client,
                NODES,
                Node,
                self._sink(self._node, self._node_gone),
                project=whole_node,
                selection=Selection(bare=BareNode),
            ),
            Reflector(client, GANGS, Gang, self._sink(self._gang, self._gang_gone)),
        )
        # Without these only pods with claims wait, where gangs are to get devices.
        self.devices = DeviceWatches(
            client, self._device_sink, lambda api: self.ledger.devices.follow(api.version)
        )
        self.ledger.devices.is_current = self._devices_are_current

    @property
    def synced(self) -> bool:
        """Whether every watch has its first list."""
        return all(reflector.synced for reflector in self.reflectors)

    def trusted(self) -> bool:
        """Whether all are synced and none has been silent for too long."""
        return self.synced and self.silent_for() <= self._silence

    def silent_for(self) -> float:
        """Seconds since the watch that is furthest behind was last known to be complete."""
        return self._silence_of(self.reflectors)

    def _silence_of(self, reflectors: Iterable[Reflector[Any]]) -> float:
        now = self._clock()
        told = (reflector.told_until for reflector in reflectors)
        return max(now - at if at is not None else float("inf") for at in told)

    def _devices_are_current(self) -> bool:
        started = self.devices.started.values()
        return bool(started) and self._silence_of(started) <= self._silence

    def _sink(
        self, changed: Callable[[T], None], deleted: Callable[[T], None]
    ) -> Callable[[list[WatchEvent[T]]], None]:
        def sink(batch: list[WatchEvent[T]]) -> None:
            _take(batch, changed, deleted)
            self.on_news()

        return sink

    def _device_sink(self, watch: DeviceWatch) -> Sink[ObservedDeviceFact]:
        def sink(batch: list[WatchEvent[ObservedDeviceFact]]) -> None:
            for told in batch:
                _take_device(told, watch.fact, self.ledger.devices)
            self.on_news()

        return sink

    def _pod(self, seen: WatchedPod) -> None:
        self.devices.note(seen.pod)
        self.ledger.put_pod(seen)
        if seen.pod.node:
            self._settled(seen.pod.uid)

    def _pod_gone(self, seen: WatchedPod) -> None:
        self.ledger.remove_pod(seen.pod.uid)
        self._settled(seen.pod.uid)

    def _settled(self, uid: str) -> None:
        self._in_flight_pods.settled(uid)
        self._unscheduled.forget(uid)

    def _node(self, node: Node) -> None:
        self.ledger.put_node(node)

    def _node_gone(self, node: Node) -> None:
        self.ledger.remove_node(node.metadata.name)

    def _gang(self, gang: Gang) -> None:
        self.ledger.put_gang(gang)

    def _gang_gone(self, gang: Gang) -> None:
        self.ledger.remove_gang(gang)


def _take_device(
    told: WatchEvent[ObservedDeviceFact], kind: type[DeviceFact], devices: DeviceGuard
) -> None:
    match told:
        case Changed(obj=seen):
            devices.put(seen.fact)
        case Deleted(obj=seen):
            devices.drop(seen.fact)
        case Synced() | Sighted():
            devices.see(kind)
        case Blind() | Unreadable():
            devices.lose_sight(kind)
        case _:
            assert_never(told)


def _take(
    batch: Iterable[WatchEvent[T]], changed: Callable[[T], None], deleted: Callable[[T], None]
) -> None:
    for told in batch:
        match told:
            case Changed(obj=obj):
                changed(obj)
            case Deleted(obj=obj):
                deleted(obj)
            case _:
                pass  # what cannot be read counts as it was
