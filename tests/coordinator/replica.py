"""One replica of the coordinator without its shell: it hears, decides and acts when told to."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import msgspec

from appwrapper.gang.dispatched import SendingReading
from appwrapper.gang.offered import readers_of_offers
from coordinator.cluster.admission_rules import KINDS
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.nominations import Guard
from coordinator.gang.priority import AllowedClasses
from coordinator.messages.actions import Action, EmitEvent, LogDecision, ReleasePod
from coordinator.messages.events import (
    AdmissionRulesListed,
    CycleDue,
    Event,
    FactsSeen,
    NodeRequestsListed,
    TermEnded,
    TermStarted,
    TimePassed,
)
from coordinator.shell import sinks
from coordinator.shell.writes.executor import Executor
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from kube.api.client import Client as RealClient
from kube.api.watch.events import Changed, Deleted
from kube.codec.observed_pod import ObservedPod
from kube.codec.volumes.storage import WATCHES
from kube.gang.dispatched import (
    RayOwnerObject,
    as_watched,
    job_as_watched,
    service_as_watched,
)
from kube.gang.offer import as_listed
from kube.objects import core as core_objects
from kube.objects import gang as gang_objects
from kube.objects import ray as ray_objects
from kube.objects.admission import LimitRange, ResourceQuota, RuntimeClass
from kube.objects.app_wrapper import AppWrapper
from kube.objects.clusters.gang_offer import GangOffer
from kube.objects.provisioning import ProvisioningRequest
from kube.objects.queues import queue as queue_objects
from runtime.controller.moment import Moment
from scheduling.model.amounts import OF_CLASS
from tests.coordinator.api import Api, Change, Watch, stamp_at
from tests.coordinator.client import Client, Outcome
from tests.coordinator.device_world import (
    ALL_SEEN,
    WATCHED,
    device_event,
)
from tests.coordinator.held import foresee_in

Reduce = Callable[[core_objects.Pod], ObservedPod]

WALL = datetime(2026, 1, 1, tzinfo=UTC).timestamp()  # when the worlds begin
MOST_ACTIONS = 20_000  # between two rests of a world

_READERS: dict[str, tuple[type[Any], Any]] = {
    **{
        each.resource.plural: (each.kind, partial(sinks.fact_event, kind=each.fact))
        for each in WATCHES
    },
    "pods": (core_objects.Pod, sinks.pod_event),
    "nodes": (core_objects.Node, sinks.node_event),
    "namespaces": (core_objects.Namespace, sinks.namespace_event),
    "priorityclasses": (core_objects.PriorityClass, sinks.priority_event),
    "deviceclasses": (core_objects.DeviceClass, sinks.device_class_event),
    "limitranges": (LimitRange, partial(sinks.admission_event, kind=LimitRange)),
    "resourcequotas": (ResourceQuota, partial(sinks.admission_event, kind=ResourceQuota)),
    "runtimeclasses": (RuntimeClass, partial(sinks.admission_event, kind=RuntimeClass)),
    "gangqueues": (queue_objects.GangQueue, sinks.queue_event),
    "rayclusters": (ray_objects.RayCluster, sinks.ray_cluster_event),
    "appwrappers": (AppWrapper, sinks.app_wrapper_event),
    "gangoffers": (GangOffer, sinks.offer_event),
    "rayjobs": (RayOwnerObject, sinks.ray_owner_event),
    "rayservices": (RayOwnerObject, sinks.ray_owner_event),
    "gangs": (gang_objects.Gang, sinks.gang_event),
    "provisioningrequests": (ProvisioningRequest, sinks.node_request_event),
}
_PROJECTED: dict[str, Any] = {each.resource.plural: each.observe for each in WATCHES}


def event_of(change: Change, reduce: Reduce) -> Event | None:
    """What the reflector of a resource makes of a change."""
    kind, translate = _READERS[change.key.plural]
    content = change.new or change.old or {}
    obj = msgspec.json.decode(msgspec.json.encode(content), type=kind)
    projected = {
        **_PROJECTED,
        "pods": reduce,
        "rayclusters": as_watched,
        "appwrappers": SendingReading(),
        "gangoffers": partial(as_listed, readers=readers_of_offers()),
        "rayjobs": job_as_watched,
        "rayservices": service_as_watched,
    }
    whole, obj = obj, projected.get(change.key.plural, lambda found: found)(obj)
    if change.key.plural == "appwrappers":
        assert obj.metadata.name == whole.metadata.name  # a reflector finds it again by its name
    told = Changed(obj) if change.new is not None else Deleted(obj)
    return cast(Event | None, translate(told))


class Replica:
    """One coordinator: its state, its watch, and the actions that it has not carried out yet."""

    def __init__(
        self, api: Api, reduce: Reduce, allowed: AllowedClasses, guard: Guard, home: str
    ) -> None:
        self._home = home
        self.asks_for_nodes = True
        self.api = api
        self.guard = guard
        self._allowed = allowed
        self._reduce = reduce
        self.client = Client(api)
        self.todo: list[Action] = []
        self.log: list[Action] = []
        self.emitted: list[EmitEvent] = []  # on RayClusters
        self.echoed: list[EmitEvent] = []  # on Gangs and head pods
        self.logged: list[LogDecision] = []
        self.leading = False
        self.claims_watched = False
        self.clock_off = 0.0
        """Seconds by which the clock of its machine is ahead of that of the API server."""
        self._executor = Executor(
            cast(RealClient, self.client),
            self,
            self._hear,
            identity="test",
            concurrency=1,
            reduce=reduce,
        )
        self.restart()

    def valid(self) -> bool:
        return self.leading

    def restart(self) -> None:
        """Begin anew with lists, as after a crash; what was in flight stays in flight."""
        known = Known(
            allowed=self._allowed,
            cache=ClusterCache(self._home, may_ask_for_nodes=self.asks_for_nodes),
            foresee=foresee_in(self.api),
            guard=self.guard,
        )
        self.state = CoordinatorState(known)
        self.todo = []
        self.leading = self.synced = self.claims_watched = False
        self.watch: Watch = self.api.watch()

    # ---- hearing

    def handle(self, events: Iterable[Event]) -> list[Action]:
        actions = self.state.handle(list(events), self._moment())
        for action in actions:
            self._note(action)
        return actions

    def _note(self, action: Action) -> None:
        """Keep what is to be carried out apart from what is only told."""
        match action:
            case LogDecision():
                self.logged.append(action)
            case EmitEvent(regarding=None):
                self.log.append(action)
                self.emitted.append(action)
            case EmitEvent():
                self.echoed.append(action)
            case _:
                self.log.append(action)
                self.todo.append(action)

    def hear(self, plural: str, most: int = 1 << 30) -> None:
        """Be told the next changes of one resource."""
        queue = self.watch.queues[plural]
        changes = [queue.popleft() for _ in range(min(most, len(queue)))]
        self.handle([event for change in changes for event in self._events(change)])

    def _events(self, change: Change) -> Iterator[Event]:
        """A DeviceClass is told twice: by the watch of all, and by that for claims."""
        if change.key.plural in WATCHED:
            yield device_event(change)
        told = event_of(change, self._reduce) if change.key.plural in _READERS else None
        if told is not None:
            yield told

    def hear_all(self) -> None:
        for plural in self.watch.waiting():
            self.hear(plural)
        if not self.synced:
            self.handle([FactsSeen(each.fact) for each in WATCHES])
            self.handle([AdmissionRulesListed(each) for each in KINDS])
            self.handle([NodeRequestsListed()])
        cache = self.state.known.cache
        named = any(not name.startswith(OF_CLASS) for name in cache.given_by_classes)
        if (cache.devices.gangs or named) and not self.claims_watched:
            self.claims_watched = True
            self.handle(ALL_SEEN)
        self.synced = True

    def cycle(self) -> None:
        if self.state.cycle_wanted:
            self.handle([CycleDue()])

    def tick(self) -> None:
        at = self.state.next_wake
        if at is not None and at <= self.api.now:
            self.handle([TimePassed()])

    def _hear(self, events: Iterable[Event]) -> None:
        self.handle(events)

    def _moment(self) -> Moment:
        seconds = self.api.now + self.clock_off
        return Moment(self.api.now, stamp_at(seconds), WALL + seconds)

    # ---- leading

    def lead(self, epoch: int, *, clean: bool = False) -> None:
        """Begin a term: all that was written to gangs and Ray pods before it is seen first."""
        self.hear("gangs")
        self.hear("pods")
        self.leading = True
        self._executor._outcomes.in_doubt = False  # each term has an executor of its own
        self.handle([TermStarted(epoch, clean)])

    def has_answers(self, epoch: int) -> bool:
        """Whether it would say at the end of this term that all requests are over."""
        return (
            self.leading and self.state.has_fenced(epoch) and not self._executor._outcomes.in_doubt
        )

    def resign(self) -> None:
        self.leading = False
        self.todo = []
        self.handle([TermEnded()])

    # ---- acting

    def act(
        self, at: int = 0, outcome: Outcome = Outcome.DONE, *, reads_fail: bool = False
    ) -> Action:
        """Carry out one action with the real executor."""
        action = self.todo.pop(at)
        if not self.leading:
            return action  # the executor asks its term before it sends anything
        for event in self.carried_out(action, outcome, reads_fail=reads_fail):
            self.handle([event])
        return action

    def carried_out(
        self, action: Action, outcome: Outcome, *, reads_fail: bool = False
    ) -> list[Event]:
        self.client.outcome, self.client.reads_fail = outcome, reads_fail
        doing = self._executor._carry_out(action)
        try:
            doing.send(None)
        except StopIteration as done:
            return cast(list[Event], done.value)
        finally:
            self.client.reads_fail = False
        raise AssertionError("an executor that waits for something else than the client")

    def act_all(self) -> None:
        """Carry out all that is to be done; what asks for itself again without end is an error."""
        for _ in range(MOST_ACTIONS):
            if not self.todo:
                return
            self.act()
        raise AssertionError(f"no end of writes: {self.todo[:3]}")

    def act_all_but(self, *kinds: type[Action]) -> None:
        """Carry out everything except these kinds of action."""
        while others := [at for at, each in enumerate(self.todo) if not isinstance(each, kinds)]:
            self.act(others[0])

    def releases(self) -> list[tuple[str, str]]:
        """Pod and node of every release that was asked for so far."""
        return [(a.pod.metadata.name, a.node) for a in self.log if isinstance(a, ReleasePod)]
