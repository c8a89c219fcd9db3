"""Simulates a cluster around the coordinator's state machine, in simulated time.

Jobs come, their pods wait with a gate, and every action of the state machine is carried out at
once: a write is stored and echoed, a released pod is bound and ready. A job ends so long after its
last pod was bound. Nothing here decides; what is simulated is KubeRay, the API server, the
scheduler that binds pinned pods, and the kubelet.
"""

import heapq
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from coordinator.messages.actions import (
    Action,
    CreateGang,
    DeleteGang,
    PatchGangSpec,
    QueueAction,
    ReleasePod,
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
    NamespaceSeen,
    NodeSeen,
    PodGone,
    PodSeen,
    QueueSeen,
    TermStarted,
    TimePassed,
)
from coordinator.messages.write_ends import PodPatchEnded, QueueWriteEnded, WriteEnded
from coordinator.queues.waiting_limit import WaitingLimit
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Namespace, Node, Pod
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

NAMESPACE = "team"
GPU = "nvidia.com/gpu"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Job:
    """One gang to come: seconds, and the requests of its workers."""

    name: str
    arrives: float
    runs: float
    workers: int
    requests: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Course:
    """What became of a job; `began` is None while it waits."""

    job: Job
    arrived: float
    began: float | None = None
    ended: float | None = None
    pods: dict[str, ObservedPod] = field(default_factory=dict)
    raw: dict[str, Pod] = field(default_factory=dict)


class Simulation:
    """The objects there are, and one leading coordinator."""

    def __init__(self, nodes: Iterable[Node], queues: Iterable[GangQueue] = ()) -> None:
        # All jobs are of one namespace, and all of them are to be decided.
        self.state = CoordinatorState(Known(waiting_limit=WaitingLimit(sys.maxsize)))
        self.now = 0.0
        self._version = 0
        self.courses: dict[GangKey, Course] = {}
        self._gangs: dict[GangKey, dict[str, Any]] = {}
        self.writes: Counter[str] = Counter()
        self._queues = {each.metadata.name: self._numbered(each) for each in queues}
        self._ends: list[tuple[float, str, GangKey]] = []
        self.begin(nodes)

    def begin(self, nodes: Iterable[Node]) -> None:
        """Tell the coordinator what there is, and have it lead."""
        self._tell([NamespaceSeen(Namespace(metadata=ObjectMeta(name=NAMESPACE)))])
        self._tell([NodeSeen(node) for node in nodes])
        self._tell([QueueSeen(queue) for queue in self._queues.values()])
        self._tell([TermStarted(1, clean=True)])

    def run(self, jobs: Sequence[Job]) -> list[Course]:
        """Let the jobs come and go until all have ended; return what became of each."""
        for job in jobs:
            while self._ends and self._ends[0][0] <= job.arrives:
                self._end_next()
            self.now = job.arrives
            self._arrive(job)
        while self._ends:
            self._end_next()
        return list(self.courses.values())

    def come(self, jobs: Iterable[Job]) -> None:
        """Let the jobs come, all of them before anything is decided, and start those that fit."""
        self.observe(self.arrivals(jobs))

    def arrivals(self, jobs: Iterable[Job]) -> list[tuple[float, list[Event]]]:
        """Return when the jobs come, and what is seen of them then."""
        found = []
        for job in jobs:
            self.now = job.arrives
            found.append((self.now, self._arrival(job)))
        return found

    def observe(self, arrivals: Iterable[tuple[float, list[Event]]]) -> None:
        """Let the coordinator see jobs come, and decide when all have."""
        for self.now, events in arrivals:
            self._act(self.handle(events))
        self._tell([])

    def end_one(self) -> float:
        """End a running gang; return how many CPU seconds the cycle took that followed."""
        self._act(self.handle(self._end()))
        began = time.process_time()
        actions = self.handle([CycleDue()])
        took = time.process_time() - began
        self._act(actions)
        return took

    def end_one_and_wait(self, seconds: float) -> None:
        """End a running gang, and let so much time pass."""
        self._tell(self._end())
        self.wait(seconds)

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""
        until = self.now + seconds
        while (at := self.state.next_wake) is not None and at <= until:
            self.now = max(self.now, at)
            self._tell([TimePassed()])
        self.now = until

    def change(self, queue: GangQueue) -> None:
        """Give the queue of that name other rules."""
        name = queue.metadata.name
        found = msgspec.structs.replace(self._queues[name], spec=queue.spec)
        self._queues[name] = found
        self._tell([QueueSeen(found)])

    def queue(self, name: str) -> GangQueue:
        """Return a GangQueue as it is."""
        return self._queues[name]

    def status(self, key: GangKey) -> Mapping[str, Any]:
        """Return the status that the Gang has."""
        found: Mapping[str, Any] = self._gangs[key].get("status", {})
        return found

    def moment(self) -> Moment:
        """Return the moment that it is."""
        wall = BEGIN + self.now
        return Moment(self.now, _stamp(wall), wall)

    def seen(self) -> list[Event]:
        """Return what lists would show now, but for the nodes."""
        there = [(key, each) for key, each in self.courses.items() if each.ended is None]
        return [
            NamespaceSeen(Namespace(metadata=ObjectMeta(name=NAMESPACE))),
            *map(QueueSeen, self._queues.values()),
            *(ClusterSeen(_cluster(each.job, each.arrived)) for _, each in there),
            *(GangSeen(msgspec.convert(each, Gang)) for each in self._gangs.values()),
            *(PodSeen(pod) for _, each in there for pod in each.pods.values()),
        ]

    # ---- what happens around the coordinator

    def _arrive(self, job: Job) -> None:
        self._tell(self._arrival(job))

    def _arrival(self, job: Job) -> list[Event]:
        course = self.courses[GangKey(NAMESPACE, job.name)] = Course(job, self.now)
        for pod in _pods(job):
            course.raw[pod.metadata.uid] = pod
            course.pods[pod.metadata.uid] = observe(pod)
        return [ClusterSeen(_cluster(job, self.now)), *map(PodSeen, course.pods.values())]

    def _end_next(self) -> None:
        self.now = self._ends[0][0]
        self._tell(self._end())

    def _end(self) -> list[Event]:
        _, _, key = heapq.heappop(self._ends)
        course = self.courses[key]
        course.ended = self.now
        gone: list[Event] = [ClusterGone(key, f"uid-{key.name}")]
        gone += [PodGone(NAMESPACE, pod.name, uid) for uid, pod in course.pods.items()]
        if self._gangs.pop(key, None) is not None:
            gone.append(GangGone(key))
        return gone

    def _bind(self, key: GangKey, uid: str, node: str) -> Iterator[Event]:
        course = self.courses[key]
        pod = _bound(course.raw[uid], node, self.next_version())
        course.pods[uid] = observe(pod)
        yield PodSeen(course.pods[uid])
        yield PodPatchEnded(key, uid, None)
        if all(each.node for each in course.pods.values()) and course.began is None:
            course.began = self.now
            heapq.heappush(self._ends, (self.now + course.job.runs, key.name, key))

    def _store(self, key: GangKey, gang: dict[str, Any]) -> Iterator[Event]:
        gang["metadata"]["resourceVersion"] = self.next_version()
        self._gangs[key] = gang
        yield GangSeen(msgspec.convert(gang, Gang))
        yield WriteEnded(key, None)

    def _store_queue(self, action: QueueAction) -> Iterator[Event]:
        queue = msgspec.to_builtins(self._queues[action.name])
        queue["metadata"]["resourceVersion"] = self.next_version()
        if isinstance(action, WriteQueueStatus):
            queue["status"] = action.status
        else:
            queue["metadata"]["finalizers"] = action.finalizers
        found = self._queues[action.name] = msgspec.convert(queue, GangQueue)
        yield QueueSeen(found)
        yield QueueWriteEnded(action.name, None)

    def _numbered(self, queue: GangQueue) -> GangQueue:
        version = self.next_version()
        metadata = msgspec.structs.replace(queue.metadata, resource_version=version)
        return msgspec.structs.replace(queue, metadata=metadata)

    def next_version(self) -> str:
        """Return a resource version above all before."""
        self._version += 1
        return str(self._version)

    # ---- the coordinator at work

    def _tell(self, events: Sequence[Event]) -> None:
        """Tell events, carry out what follows, and let it decide, until it rests."""
        self._act(self.handle(events))
        while self.state.cycle_wanted:
            self._act(self.handle([CycleDue()]))

    def _act(self, actions: Iterable[Action]) -> None:
        """Carry out actions, and those that follow from them."""
        left = deque(actions)
        while left:
            left.extend(self.handle(list(self.carry_out(left.popleft()))))

    def handle(self, events: Sequence[Event]) -> list[Action]:
        """Let the coordinator hear of events; returns what it asks for."""
        return self.state.handle(events, self.moment()) if events else []

    def carry_out(self, action: Action) -> Iterator[Event]:
        """Carry out an action; yields what is seen of that."""
        match action:
            case CreateGang(key, body):
                meta = {**body["metadata"], "uid": f"gang-{key.name}"}
                yield from self._store(key, {**body, "metadata": meta})
            case PatchGangSpec(key=key, spec=spec):
                yield from self._store(key, {**self._gangs[key], "spec": spec})
            case WriteGangStatus(key=key, status=status):
                self.writes[_kind(self.status(key), status)] += 1
                yield from self._store(key, {**self._gangs[key], "status": status})
            case WriteQueueStatus() | WriteQueueFinalizers():
                self.writes["queue"] += 1
                yield from self._store_queue(action)
            case DeleteGang(key=key):
                self._gangs.pop(key, None)
                yield GangGone(key)
                yield WriteEnded(key, None)
            case ReleasePod(gang=key, pod=pod, node=node):
                yield from self._bind(key, pod.metadata.uid, node)


def _kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say what a write of a Gang's status is for."""
    for field_ in ("placement", "phase", "reason"):
        if before.get(field_) != after.get(field_):
            return field_
    return "numbers"


def gpu_node(name: str, gpus: int) -> Node:
    """Return a node with so many GPUs, and CPU and memory to match."""
    offers = {"cpu": "96", "memory": "1Ti", GPU: str(gpus), "pods": "110"}
    return msgspec.convert({"metadata": {"name": name}, "status": {"allocatable": offers}}, Node)


def _stamp(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cluster(job: Job, now: float) -> RayCluster:
    group = {"groupName": "workers", "replicas": job.workers, "minReplicas": 0, "maxReplicas": 100}
    metadata = {
        "name": job.name,
        "namespace": NAMESPACE,
        "uid": f"uid-{job.name}",
        "generation": 1,
        "creationTimestamp": _stamp(BEGIN + now),
        "labels": {names.OPT_IN: "true", **job.labels},
        "annotations": dict(job.annotations),
    }
    return msgspec.convert(
        {"metadata": metadata, "spec": {"workerGroupSpecs": [group]}}, RayCluster
    )


def _pods(job: Job) -> Iterator[Pod]:
    """Yield the head, which asks for CPU alone, and the workers."""
    yield _pod(job, "head", names.RAY_HEAD_GROUP, {"cpu": "1", "memory": "4Gi"})
    for at in range(job.workers):
        yield _pod(job, f"worker-{at}", "workers", job.requests)


def _pod(job: Job, suffix: str, group: str, requests: Mapping[str, str]) -> Pod:
    name = f"{job.name}-{suffix}"
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": job.name,
        "uid": f"uid-{job.name}",
        "controller": True,
    }
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "labels": {
            names.RAY_CLUSTER: job.name,
            names.RAY_GROUP: group,
            names.RAY_NODE_TYPE: "head" if group == names.RAY_HEAD_GROUP else "worker",
        },
        "ownerReferences": [owner],
    }
    containers = [{"name": "ray", "resources": {"requests": dict(requests)}}]
    spec = {"containers": containers, "schedulingGates": [{"name": names.GATE}]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def _bound(pod: Pod, node: str, version: str) -> Pod:
    """The pod as the API server holds it once it is released, bound and ready."""
    raw = msgspec.to_builtins(pod)
    raw["metadata"]["resourceVersion"] = version
    raw["spec"].update(nodeName=node, schedulingGates=[], affinity=_pin(node))
    raw["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return msgspec.convert(raw, Pod)


def _pin(node: str) -> dict[str, Any]:
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
