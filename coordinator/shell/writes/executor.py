"""Carries out actions, by one handler for each kind of object, and reports how they ended."""

import time
from collections.abc import Awaitable, Callable, Iterable
from types import UnionType
from typing import Any, TypeAlias, get_args

from coordinator.messages.actions import (
    Action,
    EmitEvent,
    LogDecision,
    NominatePod,
    Regarding,
    ReleasePod,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
    gang_of,
)
from coordinator.messages.events import Event
from coordinator.messages.offer_actions import OfferAction
from coordinator.shell import decision_log
from coordinator.shell.suspicion import UNSUSPECTED, Suspicion
from coordinator.shell.writes.event_writes import EventWrites
from coordinator.shell.writes.eviction_dry_runs import EvictionDryRuns, EvictionQuestion
from coordinator.shell.writes.gang_writes import GangWrite, GangWrites
from coordinator.shell.writes.node_request_writes import NodeRequestWrite, NodeRequestWrites
from coordinator.shell.writes.offer_writes import OfferWrites
from coordinator.shell.writes.pod_writes import PodWrite, PodWrites
from coordinator.shell.writes.queue_writes import QueueWrite, QueueWrites
from coordinator.shell.writes.ray_writes import RayWrite, RayWrites
from coordinator.shell.writes.write_outcomes import Outcomes
from kube.api.client import Client
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects.core import Pod
from runtime.controller.workers import Feed, Leadership, Workers
from runtime.controller.write_lanes import Writes
from scheduling.model.gang import GangKey

Handler: TypeAlias = Callable[[Any], Awaitable[list[Event]]]


class Executor:
    """Carries out the actions of one term with at most `concurrency` requests under way.

    They go gang by gang, so that one that was begun is finished before the next. What only informs
    (Events, a status that decides nothing, what is written to GangQueues) lets the rest pass, and
    so do nominations, for a second at most. Events on the Gang and on the head pod, which say what
    that on the RayCluster says, come after everything else, of each only the newest.
    """

    def __init__(
        self,
        client: Client,
        term: Leadership,
        feed: Feed[Event],
        *,
        identity: str,
        concurrency: int,
        reduce: Callable[[Pod], ObservedPod] = observe,
        suspicion: Suspicion = UNSUSPECTED,
    ) -> None:
        self._outcomes = outcomes = Outcomes()
        self._pods = PodWrites(client, outcomes, suspicion, reduce)
        self._handlers: dict[type, Handler] = {
            EmitEvent: EventWrites(client, outcomes, identity).carry_out,
            **_each(GangWrite, GangWrites(client, outcomes, suspicion).carry_out),
            **_each(PodWrite, self._pods.carry_out),
            **_each(RayWrite, RayWrites(client, outcomes).carry_out),
            **_each(OfferAction, OfferWrites(client, outcomes).carry_out),
            **_each(QueueWrite, QueueWrites(client, outcomes).carry_out),
            **_each(NodeRequestWrite, NodeRequestWrites(client, outcomes).carry_out),
            **_each(EvictionQuestion, EvictionDryRuns(client).carry_out),
        }
        self._writes = Writes[GangKey, Action]()
        self._workers = Workers(self._writes, self._carry_out, feed, term, concurrency)
        self.run = self._workers.run

    def submit(self, actions: Iterable[Action]) -> None:
        """Queue the actions and start as many as may run; decisions go into the log at once."""
        now = time.monotonic()
        for action in actions:
            match action:
                case LogDecision():
                    decision_log.write(action)
                case EmitEvent(regarding=Regarding() as regarding):
                    self._writes.repeat((regarding, action.reason), action)
                case NominatePod() if action.node:
                    self._writes.inform(action, now)
                case EmitEvent() | WriteGangStatus(decides=False):
                    self._writes.inform(action, now)
                case WriteQueueStatus() | WriteQueueFinalizers():
                    self._writes.inform(action, now)
                case ReleasePod():
                    self._pods.asked(action, now)
                    self._writes.add(action.gang, action, now)
                case _:
                    self._writes.add(gang_of(action), action, now)
        self._workers.start()

    async def close(self, seconds: float = 0.0) -> bool:
        """Send no more; returns whether all that was sent in this term is over."""
        self._pods.close()
        return await self._workers.close(seconds) and not self._outcomes.in_doubt

    async def _carry_out(self, action: Action) -> list[Event]:
        return await self._handlers[type(action)](action)


def _each(kinds: UnionType, handler: Handler) -> dict[type, Handler]:
    return dict.fromkeys(get_args(kinds), handler)
