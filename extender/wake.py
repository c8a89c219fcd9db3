"""Makes kube-scheduler try refused pods again soon after a reservation has ended.

kube-scheduler puts every pod that an extender refused back into its queue on any event of the kinds
that it watches. One of these kinds, CSIStorageCapacity, is namespaced, and has no effect where its
storage class does not exist. So the right to wake the scheduler is the right to write one object in
our own namespace, and not nodes or pods. It is written only when room came free in which a refused
pod would fit, and once a second at most.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.unscheduled_pods import UnscheduledPods
from kube.api.client import Client
from kube.api.errors import KubeError, NotFound
from kube.api.resources import Resource

log = structlog.get_logger(__name__)

CAPACITIES = Resource(
    group="storage.k8s.io", version="v1", plural="csistoragecapacities", namespaced=True
)
WAKE_NAME = "muster-wake"
_ANNOTATION = "muster.dev/woken"
_LEAST_PAUSE = 0.05
"""Between two looks, however much happens."""


class Signal(Protocol):
    """What makes kube-scheduler try refused pods again."""

    async def send(self) -> None:
        """Do it; raises KubeError where it could not be done."""


class StorageSignal:
    """Annotates an object that kube-scheduler watches, and makes it where there is none."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def send(self) -> None:
        """Write the time into the annotation."""
        annotations = {_ANNOTATION: str(time.time_ns())}
        path = CAPACITIES.path(self._namespace, WAKE_NAME)
        try:
            await self._client.merge_patch(path, {"metadata": {"annotations": annotations}})
        except NotFound:
            await self._client.create(CAPACITIES.path(self._namespace), _wake_object(annotations))


def _wake_object(annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": WAKE_NAME, "annotations": annotations},
        "storageClassName": "muster.dev-no-such-class",
    }


class Waker:
    """Looks whether room came free for a refused pod, and sends the signal."""

    def __init__(
        self,
        ledger: Ledger,
        in_flight_pods: InFlightPods,
        unscheduled: UnscheduledPods,
        signal: Signal,
        metrics: Metrics,
        *,
        pause: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._in_flight_pods = in_flight_pods
        self._unscheduled = unscheduled
        self._signal = signal
        self._metrics = metrics
        self._pause = pause
        self._clock = clock
        self._news = asyncio.Event()
        self._again = True  # an earlier process may have refused pods that still wait

    def tell(self) -> None:
        """Something came free, or may have."""
        self._news.set()

    async def run(self) -> None:
        """Look whenever there is news, and every now and then for what ends by time alone."""
        while True:
            try:
                async with asyncio.timeout(self._pause):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            woke = await self._wake_if_due()
            await asyncio.sleep(self._pause if woke else _LEAST_PAUSE)

    async def _wake_if_due(self) -> bool:
        if not self._due():
            return False
        try:
            await self._signal.send()
        except KubeError as error:
            log.warning("could not wake the scheduler", error=str(error))
            self._again = True
            return True
        self._unscheduled.woken()
        self._metrics.wakes.inc()
        return True

    def _due(self) -> bool:
        snapshot, in_flight = self._ledger.snapshot(), self._in_flight_pods.view(self._clock())
        nodes, self._ledger.freed = self._ledger.freed, set()
        if self._unscheduled.ask_for_devices:
            nodes |= self._ledger.devices.take_news()
        ended, self._again = self._in_flight_pods.take_ended() or self._again, False
        if ended:
            nodes = set(snapshot.bound.names)
        return bool(nodes) and self._unscheduled.any_fits(nodes, snapshot, in_flight)
